package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/weir-mcp/weir/gateway/relay"
	"github.com/weir-mcp/weir/internal/mirror"
	"github.com/weir-mcp/weir/internal/sse"
	"github.com/weir-mcp/weir/internal/wire"
)

// stream passes on the events of the backend to one client, in their order. Events
// that have to be decided about first are decided about side by side; those behind
// them wait, so that a client that resumes behind the last event it has seen
// misses none.
type stream struct {
	x       *exchange
	session *relay.Session
	// trail is set in a session.
	trail  *trail
	ticket relay.Ticket

	out     *sse.Writer
	control *http.ResponseController

	mu    sync.Mutex
	room  sync.Cond // there is less in the queue
	queue []*slot
	bytes int
	// err is why nothing can be written any more.
	err error
	// last is the id of the event that was written last.
	last string

	// replies are messages on their way back to the backend.
	replies sync.WaitGroup
	posting chan struct{}
}

const (
	// queued is how many events of one stream may wait for a decision, and for
	// others before them.
	queued = 64
	// repliesAtOnce is how many messages of one stream are answered to the backend
	// at the same time.
	repliesAtOnce = 4
)

// slot is the place of one event in the stream. It is the lane of the message in
// it.
type slot struct {
	s     *stream
	event sse.Event
	size  int
	// out is the message that takes the place of the one that came; none drops it.
	out     relay.Outgoing
	has     bool
	decided bool
}

// Forward keeps what the client will get.
func (l *slot) Forward(out relay.Outgoing) { l.out, l.has = out, true }

// Answer sends something back to the backend.
func (l *slot) Answer(out relay.Outgoing) {
	if out.Message != nil && out.Commit() {
		l.s.reply(out.Message)
	}
}

var _ relay.Lane = (*slot)(nil)

// stream passes on an answer that is a stream.
func (x *exchange) stream(res *http.Response, ticket relay.Ticket) {
	var tr *trail
	if x.scope.id != "" {
		tr = x.scope.trails.begin(ticket)
	}
	x.follow(res, ticket, tr)
}

// follow passes on a stream of the backend, which the ticket's answer may come on.
func (x *exchange) follow(res *http.Response, ticket relay.Ticket, tr *trail) {
	s := &stream{x: x, session: x.scope.session, trail: tr, ticket: ticket, posting: make(chan struct{}, repliesAtOnce)}
	s.last = x.r.Header.Get(mirror.LastEventIDHeader)
	s.room.L = &s.mu
	s.control = http.NewResponseController(x.w)
	s.out = sse.NewWriter(x.w, s.control.Flush)

	h := x.head(res, true)
	h.Del("Content-Length")
	x.w.WriteHeader(res.StatusCode)
	if err := s.control.Flush(); err != nil {
		s.fail(err)
	}
	broken := s.read(res.Body)
	if broken != nil && x.ctx.Err() == nil {
		broken = s.again(broken)
	}
	s.drain()
	s.replies.Wait()
	s.end(broken)
	_ = s.control.SetWriteDeadline(time.Time{})
}

// read passes on events until there are no more. The error is nil when the stream
// has ended as it should.
func (s *stream) read(body io.Reader) error {
	in := sse.NewReader(body, sse.Limits{Data: s.x.p.o.BackendLimit})
	for {
		event, err := in.Next()
		at := time.Now()
		var long *wire.TooLong
		if err != nil && !errors.As(err, &long) {
			if errors.Is(err, sse.ErrMalformed) {
				s.x.p.trouble("the backend's stream cannot be read", "error", err)
			}
			if err == io.EOF {
				return nil
			}
			return err
		}
		l := &slot{s: s, event: event, size: len(event.Data)}
		if !s.push(l) {
			return errors.New("the client is gone")
		}
		var rest func()
		switch a := (relay.Arrival{From: relay.Backend, Raw: event.Data, At: at, Version: s.x.r.Header.Get(mirror.VersionHeader), For: &s.ticket, Lane: l}); {
		case long != nil:
			s.session.HandleTooLong(a, long)
		case l.bare():
			l.out, l.has = relay.Outgoing{Message: event.Data}, event.HasData
		default:
			rest = s.session.Handle(s.x.ctx, a)
		}
		if s.x.scope.id != "" && s.x.overflown() {
			return relay.ErrTooManyMarks
		}
		if rest == nil {
			s.decided(l)
			continue
		}
		go func() {
			rest()
			s.decided(l)
		}()
	}
}

// bare says that there is no message in the event: a comment, an id or retry
// field alone, or an event of another name whose data nobody takes for a message.
func (l *slot) bare() bool {
	if len(bytes.TrimLeft(l.event.Data, " \t\r\n")) == 0 {
		return true
	}
	return l.event.Name != "" && l.event.Name != "message" && !beginsLikeMessage(l.event.Data)
}

// push gives the event its place, once there is room. It is false when nothing is
// written any more.
func (s *stream) push(l *slot) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.err == nil && len(s.queue) > 0 && (len(s.queue) >= queued || s.bytes+l.size > s.x.p.o.BackendLimit) {
		s.room.Wait()
	}
	if s.err != nil {
		return false
	}
	s.queue = append(s.queue, l)
	s.bytes += l.size
	return true
}

// decided writes the event, and those that have waited for it.
func (s *stream) decided(l *slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.decided = true
	for len(s.queue) > 0 && s.queue[0].decided {
		head := s.queue[0]
		s.queue[0] = nil
		s.queue = s.queue[1:]
		s.bytes -= head.size
		s.write(head)
	}
	s.room.Broadcast()
}

// write writes one event while mu is held.
func (s *stream) write(l *slot) {
	if s.err != nil || s.x.gone() {
		if l.has {
			l.out.Undo()
		}
		return
	}
	event := l.event
	if !event.IsComment {
		if event.HasData = l.has && l.out.Commit(); event.HasData {
			event.Data = wire.Flat(nil, l.out.Message)
		} else {
			event.Data = nil
		}
		if !event.HasData && !event.HasID && event.Retry == "" {
			return
		}
		if s.trail != nil && event.ID != "" {
			s.last = event.ID
			s.x.scope.trails.pass(s.trail, event.ID)
		}
	}
	s.put(&event)
}

// put writes one event while mu is held.
func (s *stream) put(event *sse.Event) {
	_ = s.control.SetWriteDeadline(time.Now().Add(s.x.p.o.Relay.Stall))
	if err := s.out.Write(event); err != nil {
		s.failLocked(err)
	}
}

func (s *stream) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failLocked(err)
}

func (s *stream) failLocked(err error) {
	if s.err == nil {
		s.err = err
		s.x.cancel()
	}
	s.room.Broadcast()
}

// drain waits until everything that has been read has been dealt with.
func (s *stream) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.queue) > 0 {
		s.room.Wait()
	}
}

// reply sends a message to the backend beside the stream.
func (s *stream) reply(message []byte) {
	s.posting <- struct{}{}
	s.replies.Go(func() {
		defer func() { <-s.posting }()
		// It is owed even if the client has gone meanwhile.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(s.x.ctx), replyTimeout)
		defer cancel()
		defer context.AfterFunc(s.x.p.all, cancel)()
		s.x.tell(ctx, message)
	})
}

// replyTimeout is how long the backend gets to take a message from the proxy.
const replyTimeout = 10 * time.Second

// tell sends a message of the proxy's own to the backend, in the client's session.
func (x *exchange) tell(ctx context.Context, message []byte) {
	req := x.outbound(ctx, http.MethodPost, message)
	ownMessage(req.Header)
	res, err := x.p.roundTrip(req)
	if err != nil {
		x.p.trouble("the backend does not take an error for a request of its own", "error", err)
		return
	}
	_, _ = io.CopyN(io.Discard, res.Body, 64<<10)
	res.Body.Close()
}

// again asks the backend for the rest of a stream that has broken, where that can
// be had: the client cannot tell that from a backend that has died.
func (s *stream) again(broken error) error {
	s.drain()
	if s.last == "" || s.trail == nil || !s.ticket.Open() {
		return broken
	}
	req := s.x.outbound(s.x.ctx, http.MethodGet, nil)
	ownMessage(req.Header)
	req.Header.Del("Content-Type")
	req.Header.Set("Accept", typeSSE)
	req.Header.Set(mirror.LastEventIDHeader, s.last)
	res, err := s.x.p.roundTrip(req)
	if err != nil {
		return broken
	}
	defer res.Body.Close()
	kind, readable := mediaType(res.Header)
	if res.StatusCode != http.StatusOK || kind != typeSSE || !readable || !identity(res.Header) {
		return broken
	}
	return s.read(res.Body)
}

// end sees to the request that the stream was to answer.
func (s *stream) end(broken error) {
	if broken != nil && s.x.ctx.Err() == nil {
		s.x.p.trouble("a stream of the backend has broken", "error", broken)
	}
	resumable := false
	if s.trail != nil {
		resumable = s.x.scope.trails.leave(s.trail)
	}
	switch {
	case !s.ticket.Open():
	case s.x.gone() || s.stopped():
		if !resumable {
			s.ticket.Abandon()
		}
	case broken == nil && resumable:
		// The client comes back for the answer (2025-11-25, polling).
	default:
		out := s.ticket.Fail()
		s.mu.Lock()
		defer s.mu.Unlock()
		if out.Commit() {
			s.put(&sse.Event{Name: "message", Data: wire.Flat(nil, out.Message), HasData: true})
		}
	}
}

// stopped says that the client does not take anything any more.
func (s *stream) stopped() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err != nil
}
