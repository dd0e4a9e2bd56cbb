package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// caller is the client of one row.
type caller interface {
	// exchange sends one message and gives the answer, nil to what gets none. It is
	// valid until the next call.
	exchange(message []byte) ([]byte, error)
	// flood keeps calls in flight for d and says how many were answered, and in what
	// time.
	flood(l *load, d time.Duration) (int, time.Duration, error)
}

// load is one kind of call.
type load struct {
	name    string
	message []byte
	at      int // where the id is
	// inFlight is how many wait at once where throughput is measured, 0 where it is
	// not.
	inFlight int
}

// idDigits is how long an id is: it changes in place.
const idDigits = 9

var ids atomic.Int64

// next gives the message with a new id, in buf.
func (l *load) next(buf []byte) []byte {
	if len(buf) != len(l.message) {
		buf = bytes.Clone(l.message)
	}
	n := ids.Add(1)
	for i := l.at + idDigits - 1; i > l.at; i-- {
		buf[i] = byte('0' + n%10)
		n /= 10
	}
	return buf
}

// newLoad makes one of a method and its params.
func newLoad(name, method string, params []byte, inFlight int) *load {
	head := `{"jsonrpc":"2.0","id":`
	return &load{name: name, at: len(head), inFlight: inFlight,
		message: fmt.Appendf(nil, `%s100000000,"method":"%s","params":%s}`+"\n", head, method, params)}
}

var errNoResult = errors.New("the answer has no result")

// checked is an answer that has a result: the beginning tells, whatever the server
// has put first.
func checked(answer []byte) error {
	if !bytes.Contains(answer[:min(len(answer), 256)], []byte(`"result":`)) {
		return fmt.Errorf("%w: %.200q", errNoResult, answer)
	}
	return nil
}

// stdioCaller is a client over stdio.
type stdioCaller struct {
	in    *os.File
	lines *lines
}

func (c *stdioCaller) exchange(message []byte) ([]byte, error) {
	if _, err := c.in.Write(message); err != nil {
		return nil, err
	}
	if isNotification(message) {
		return nil, nil
	}
	return c.lines.next()
}

func isNotification(message []byte) bool {
	return bytes.Contains(message[:min(len(message), 64)], []byte(`"method":"notifications/`))
}

func (c *stdioCaller) flood(l *load, d time.Duration) (n int, took time.Duration, err error) {
	// One more is in flight: the one that is read.
	owed, stop := make(chan struct{}, l.inFlight-1), make(chan struct{})
	began := time.Now()
	var writing sync.WaitGroup
	var writeErr error
	writing.Go(func() {
		defer close(owed)
		var buf []byte
		for time.Since(began) < d && writeErr == nil {
			select {
			case owed <- struct{}{}:
			case <-stop:
				return
			}
			buf = l.next(buf)
			_, writeErr = c.in.Write(buf)
		}
	})
	for range owed {
		var answer []byte
		if answer, err = c.lines.next(); err == nil {
			err = checked(answer)
		}
		if err != nil {
			break
		}
		n++
	}
	took = time.Since(began)
	close(stop)
	writing.Wait()
	return n, took, errors.Join(err, writeErr)
}

// httpCaller is a client over streamable HTTP.
type httpCaller struct {
	ctx     context.Context
	url     string
	client  *http.Client
	session string
	buf     []byte
}

func newHTTPCaller(ctx context.Context, url string) *httpCaller {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost, transport.DisableCompression, transport.Proxy = 256, true, nil
	return &httpCaller{ctx: ctx, url: url, client: &http.Client{Transport: transport}}
}

func (c *httpCaller) exchange(message []byte) ([]byte, error) {
	answer, header, err := c.post(message, c.buf)
	c.buf = answer
	if id := header.Get("Mcp-Session-Id"); id != "" {
		c.session = id
	}
	return answer, err
}

// post sends one message and reads the answer into buf.
func (c *httpCaller) post(message, buf []byte) ([]byte, http.Header, error) {
	r, err := http.NewRequestWithContext(c.ctx, http.MethodPost, c.url, bytes.NewReader(message))
	if err != nil {
		return buf, nil, err
	}
	r.Header["Content-Type"] = []string{"application/json"}
	r.Header["Accept"] = []string{"application/json, text/event-stream"}
	r.Header["Mcp-Protocol-Version"] = []string{"2025-11-25"}
	if c.session != "" {
		r.Header["Mcp-Session-Id"] = []string{c.session}
	}
	res, err := c.client.Do(r)
	if err != nil {
		return buf, nil, err
	}
	defer res.Body.Close()
	if buf, err = readBody(res.Body, res.ContentLength, buf); err != nil {
		return buf, nil, err
	}
	if res.StatusCode != http.StatusOK && res.StatusCode != http.StatusAccepted {
		return buf, nil, fmt.Errorf("HTTP status %s: %.200q", res.Status, buf)
	}
	return buf, res.Header, nil
}

func (c *httpCaller) flood(l *load, d time.Duration) (int, time.Duration, error) {
	var all sync.WaitGroup
	var n atomic.Int64
	errs := make([]error, l.inFlight)
	began := time.Now()
	for i := range l.inFlight {
		all.Go(func() {
			var message, buf []byte
			for time.Since(began) < d && errs[i] == nil {
				message = l.next(message)
				if buf, _, errs[i] = c.post(message, buf); errs[i] == nil {
					errs[i] = checked(buf)
					n.Add(1)
				}
			}
		})
	}
	all.Wait()
	return int(n.Load()), time.Since(began), errors.Join(errs...)
}
