package streamable

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/weir-mcp/weir/internal/sse"
)

// responder writes one HTTP response: one message as JSON, or a stream.
type responder struct {
	w       http.ResponseWriter
	control *http.ResponseController
	events  *sse.Writer
	stall   time.Duration
	// started says that the response is a stream.
	started bool
	// aborted says that nothing more is to be written.
	aborted atomic.Bool
}

func newResponder(w http.ResponseWriter, stall time.Duration) *responder {
	o := &responder{w: w, control: http.NewResponseController(w), stall: stall}
	o.events = sse.NewWriter(w, o.control.Flush)
	return o
}

// hurry bounds how long the next write may take.
func (o *responder) hurry() {
	_ = o.control.SetWriteDeadline(time.Now().Add(o.stall))
	if o.aborted.Load() {
		_ = o.control.SetWriteDeadline(time.Now())
	}
}

// abort ends a write that is under way, and all to come. Other than the rest it
// may be called by any goroutine, until the request has been served.
func (o *responder) abort() {
	o.aborted.Store(true)
	_ = o.control.SetWriteDeadline(time.Now())
}

// end takes the bound away: the connection may be used again.
func (o *responder) end() { _ = o.control.SetWriteDeadline(time.Time{}) }

// start opens the stream, at once unless an event follows anyway.
func (o *responder) start(follows bool) error {
	if o.started {
		return nil
	}
	o.started = true
	h := o.w.Header()
	h.Set("Content-Type", streamType)
	h.Set("Cache-Control", "no-cache, no-transform")
	// Reverse proxies that buffer would hold events back.
	h.Set("X-Accel-Buffering", "no")
	o.hurry()
	o.w.WriteHeader(http.StatusOK)
	if follows {
		return nil
	}
	return o.control.Flush()
}

// event writes one event, after the stream has been started.
func (o *responder) event(e *sse.Event) error {
	o.hurry()
	return o.events.Write(e)
}

// message writes a message as an event.
func (o *responder) message(id string, data []byte) error {
	return o.event(&sse.Event{Name: "message", ID: id, HasID: id != "", Data: data, HasData: true})
}

// alive writes a comment.
func (o *responder) alive() error { return o.event(&sse.Event{IsComment: true}) }

// json writes the whole response.
func (o *responder) json(status int, message []byte) {
	o.hurry()
	writeJSON(o.w, status, message)
}
