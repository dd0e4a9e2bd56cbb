package door

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

const (
	// restTime is how long the rest of a body is waited for that no handler wants:
	// the server reads it before it answers, whoever sends it.
	restTime = time.Second
	// defaultBodyTime is that of [ServeOptions.Body].
	defaultBodyTime = 30 * time.Second
)

// hurried bounds the time that each body takes to come: to limit, and to soon once
// the house closes. It stands before everything that answers, since a stranger
// who is turned away would otherwise keep a connection for as long as he likes.
func hurried(next http.Handler, closing context.Context, limit, soon time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == nil || r.Body == http.NoBody {
			next.ServeHTTP(w, r)
			return
		}
		b := &timedBody{ReadCloser: r.Body, control: http.NewResponseController(w)}
		b.within(limit)
		defer b.within(restTime)
		defer context.AfterFunc(closing, func() { b.within(soon) })()
		r.Body = b
		next.ServeHTTP(w, r)
	})
}

// timedBody takes its deadline back when the body has come: a stream that answers
// it may go on for long. A body that failed has not come, and keeps it.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController

	mu    sync.Mutex
	by    time.Time
	ended bool
}

// Read reads the body.
func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.mu.Lock()
		defer b.mu.Unlock()
		if !b.ended {
			b.ended = true
			_ = b.control.SetReadDeadline(time.Time{})
		}
	}
	return n, err
}

// within bounds what is still to come, unless it is bounded more narrowly.
func (b *timedBody) within(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	by := time.Now().Add(d)
	if b.ended || !b.by.IsZero() && b.by.Before(by) {
		return
	}
	b.by = by
	_ = b.control.SetReadDeadline(by)
}
