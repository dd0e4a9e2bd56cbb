package proxy

import (
	"bufio"
	"io"
	"net/http"
)

// backendStream is a transport whose backend answers with what is written to a
// pipe, as events.
func backendStream(r io.ReadCloser) http.RoundTripper {
	return roundTrip(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {typeSSE}}, Body: r, ContentLength: -1}, nil
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// pipeWriter is the response of a client that reads from a pipe.
type pipeWriter struct {
	*io.PipeWriter
	h http.Header
}

func (w *pipeWriter) Header() http.Header { return w.h }
func (w *pipeWriter) WriteHeader(int)     {}
func (w *pipeWriter) Flush()              {}

func newReader(r io.Reader) *bufio.Reader { return bufio.NewReader(r) }

// discard is the response of a client that does not care.
type discard struct{ h http.Header }

func (w *discard) Header() http.Header         { return w.h }
func (w *discard) WriteHeader(int)             {}
func (w *discard) Write(b []byte) (int, error) { return len(b), nil }
func (w *discard) Flush()                      {}
