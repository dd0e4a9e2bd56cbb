package door

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/internal/leak"
)

// A body that does not come ends the connection, whoever sends it and whatever
// answers: a stranger must not keep connections, or the house from closing.
func TestServe_bodiesThatDoNotCome(t *testing.T) {
	leak.Goroutines(t, "weir/internal/door")
	locked := New(Options{Authenticator: tokens(t), Known: known, Streams: 10, Concurrency: 10})
	mux := http.NewServeMux()
	mux.Handle("/", locked.Guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			w.WriteHeader(http.StatusBadRequest)
		}
	})))
	mux.Handle("/unread", locked.Guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusTeapot) })))
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, r *http.Request) {})
	for _, c := range []struct {
		name, method, path, headers string
		status                      int
	}{
		{"nobody", "POST", "/", "", 401},
		{"nobody, without a length", "POST", "/", "Transfer-Encoding: chunked\r\n", 401},
		{"a page of another origin", "POST", "/", "Origin: http://evil.example\r\n", 403},
		{"a probe of health", "GET", "/health", "", 200},
		{"a known caller", "POST", "/", "Authorization: Bearer s3cret\r\n", 400},
		{"a known caller whose body nobody wants", "POST", "/unread", "Authorization: Bearer s3cret\r\n", 418},
		{"a stream with a body", "GET", "/unread", "Authorization: Bearer s3cret\r\n", 418},
	} {
		for _, closes := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, closing %v", c.name, closes), func(t *testing.T) {
				t.Parallel()
				listener, err := net.Listen("tcp", "127.0.0.1:0")
				require.NoError(t, err)
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				o := ServeOptions{Drain: 2 * time.Second, Body: time.Hour}
				if !closes {
					o = ServeOptions{Drain: time.Minute, Body: 100 * time.Millisecond}
				}
				served := make(chan error, 1)
				entered := make(chan struct{})
				go func() {
					served <- Serve(ctx, listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						close(entered)
						mux.ServeHTTP(w, r)
					}), o)
				}()
				conn, err := net.Dial("tcp", listener.Addr().String())
				require.NoError(t, err)
				defer conn.Close()
				require.NoError(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
				length := "Content-Length: 1000\r\n"
				if c.headers == "Transfer-Encoding: chunked\r\n" {
					length = ""
				}
				_, err = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: %s\r\n%s%s\r\n5\r\n", c.method, c.path, listener.Addr(), length, c.headers)
				require.NoError(t, err)
				<-entered
				if closes {
					stop()
				}
				in := bufio.NewReader(conn)
				res, err := http.ReadResponse(in, nil)
				require.NoError(t, err)
				require.Equal(t, c.status, res.StatusCode)
				_, err = io.Copy(io.Discard, in)
				require.NoError(t, err, "the connection ends by itself")
				stop()
				require.NoError(t, <-served, "nothing that matters was cut off")
			})
		}
	}
}

// A body that has come leaves its answer all the time that it takes, also while the
// house closes.
func TestServe_answersSlowly(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	served := make(chan error, 1)
	go func() {
		served <- Serve(ctx, listener, New(Options{}).Guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadAll(r.Body)
			stop()
			select {
			case <-r.Context().Done():
				w.WriteHeader(http.StatusTeapot)
			case <-time.After(300 * time.Millisecond): // three times what the body might have taken
			}
		})), ServeOptions{Drain: time.Minute, Body: 100 * time.Millisecond})
	}()
	res, err := http.Post("http://"+listener.Addr().String(), "text/plain", strings.NewReader("x"))
	require.NoError(t, err)
	res.Body.Close()
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.NoError(t, <-served)
	http.DefaultClient.CloseIdleConnections()
}
