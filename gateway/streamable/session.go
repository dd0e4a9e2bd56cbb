package streamable

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/relay"
	"github.com/weir-mcp/weir/internal/mirror"
	"github.com/weir-mcp/weir/internal/sse"
	"github.com/weir-mcp/weir/internal/wire"
)

// primingVersion is the first protocol version whose streams begin with an event
// without data, so that they can be resumed from the very beginning. Older
// clients would take it for a message.
const primingVersion = "2025-11-25"

// errNotInitialized ends a session whose backend refused to initialize.
var errNotInitialized = errors.New("the backend refused to initialize")

// session is a client of the session era: its HTTP requests on one side, its own
// backend on the other, and a relay between.
type session struct {
	front     *Front
	id        string
	principal *abi.Principal
	cancel    context.CancelCauseFunc
	store     *store
	own       *stream // the stream that belongs to no request

	in   chan taken
	over chan struct{}
	once sync.Once
	// fromBackend is where the message begins that the relay has read last from
	// the backend.
	fromBackend atomic.Pointer[byte]
	// cancelled is the call that the message withdrew which the relay has read
	// last from the client. Only Read uses it.
	cancelled string
	// trace is the trace context of that message. Only Read and Traceparent use it.
	trace string

	mu    sync.Mutex
	calls map[string]*call
	// order is the calls that are open, the oldest first.
	order []*call
	// asked is the stream on which a request of the backend went out.
	asked map[string]*stream
	// made are messages in the client's place, for the relay to read.
	made     [][]byte
	madeWake chan struct{}
	version  string
	busy     int
	idle     *time.Timer
}

// call is one request of the client that waits for its answer.
type call struct {
	key    string
	method string
	token  string // the key of its progress token, if any
	stream *stream
}

// taken is a message on its way to the relay. cancels is the key of the request
// that it withdraws, trace the trace context that came with it.
type taken struct {
	incoming
	cancels, trace string
}

// open starts a session for an initialize.
func (f *Front) open(w http.ResponseWriter, r *http.Request, m *wire.Message) {
	if f.isClosing() {
		refuseForNow(w, time.Second, m.ID, textClosing)
		return
	}
	if !f.take() {
		f.log.Warn("no room for another session", "limit", f.o.Sessions)
		refuseForNow(w, time.Second, m.ID, textBusy)
		return
	}
	principal := relay.PrincipalFrom(r.Context())
	backend, err := f.o.Start(f.ctx, principal)
	if err != nil {
		f.release()
		f.log.Error("the backend of a session does not start", "error", err)
		refuseForNow(w, time.Second, m.ID, textDown)
		return
	}
	s := &session{
		front: f, id: rand.Text(), principal: principal,
		in: make(chan taken), over: make(chan struct{}), madeWake: make(chan struct{}, 1),
		calls: map[string]*call{}, asked: map[string]*stream{}, busy: 1,
	}
	s.store = newStore(f.o.Events, f.o.EventBytes, s.lose)
	s.own = s.store.open()
	s.idle = time.AfterFunc(f.o.Idle, s.expire)
	s.idle.Stop()
	var ctx context.Context
	ctx, s.cancel = context.WithCancelCause(f.ctx)
	f.mu.Lock()
	f.sessions[s.id] = s
	f.mu.Unlock()
	go s.run(ctx, backend)
	defer s.release()
	w.Header().Set(mirror.SessionHeader, s.id)
	s.ask(w, r, m)
}

// run relays until the session ends.
func (s *session) run(ctx context.Context, backend relay.End) {
	defer s.front.release()
	o := s.front.o.Relay
	o.Session, o.Principal = relay.SessionName(s.id), s.principal
	err := relay.Run(ctx, clientEnd{s}, &tap{backend, &s.fromBackend}, o)
	s.front.forget(s)
	s.finish()
	s.cancel(nil)
	s.mu.Lock()
	s.idle.Stop()
	s.mu.Unlock()
	log := s.front.log.Info
	if gone, ok := errors.AsType[*relay.BackendGone](err); ok && (gone.Open > 0 || !gone.Spoke) {
		log = s.front.log.Warn
	}
	log("a session has ended", "why", err)
}

// forget takes a session from those that can be found. What has found it before
// goes on until the session is over.
func (f *Front) forget(s *session) {
	f.mu.Lock()
	delete(f.sessions, s.id)
	f.mu.Unlock()
}

// tap notes where each message of the backend begins, so that an answer can be
// told from one that the relay has made.
type tap struct {
	relay.End
	last *atomic.Pointer[byte]
}

// Read gives the next message without white space before it.
func (t *tap) Read() ([]byte, error) {
	raw, err := t.End.Read()
	if raw = bytes.TrimLeft(raw, " \t\r\n"); len(raw) > 0 {
		t.last.Store(&raw[0])
	}
	return raw, err
}

// hold keeps the session from being idle. It is false when it has ended.
func (s *session) hold() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.over:
		return false
	default:
	}
	s.busy++
	s.idle.Stop()
	return true
}

func (s *session) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy--; s.busy == 0 {
		s.idle.Reset(s.front.o.Idle)
	}
}

func (s *session) expire() {
	s.mu.Lock()
	idle := s.busy == 0
	s.mu.Unlock()
	if idle {
		s.cancel(ErrIdle)
	}
}

func (s *session) settled() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// finish ends everything that waits for the session.
func (s *session) finish() {
	s.once.Do(func() {
		s.mu.Lock()
		close(s.over)
		open := s.order
		s.calls, s.order = map[string]*call{}, nil
		s.mu.Unlock()
		for range open {
			s.front.leave()
		}
		s.store.close()
	})
}

// push hands something to the relay. It is false when the session is over, or the
// client is gone before the relay has taken it.
func (s *session) push(ctx context.Context, i incoming) bool {
	return s.pushTaken(ctx, taken{incoming: i})
}

func (s *session) pushTaken(ctx context.Context, t taken) bool {
	select {
	case s.in <- t:
		return true
	case <-s.over:
	case <-ctx.Done():
	}
	return false
}

// post takes one message of the client.
func (s *session) post(w http.ResponseWriter, r *http.Request, m *wire.Message) {
	if m.Kind == wire.Request {
		s.ask(w, r, m)
		return
	}
	t := taken{incoming: incoming{message: m.Raw}, trace: mirror.Traceparent(r.Header)}
	switch {
	case m.Method == methodCancelled:
		raw, _ := wire.Get(m.Params, "requestId")
		if id, ok := wire.ParseID(raw); ok {
			t.cancels = id.Key()
		}
	case m.Kind != wire.Notification:
		s.mu.Lock()
		delete(s.asked, m.ID.Key())
		s.mu.Unlock()
	}
	if !s.pushTaken(r.Context(), t) {
		refuse(w, http.StatusNotFound, wire.ID{}, codeInvalid, textNoSession)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

// ask takes a request of the client and delivers what belongs to it.
func (s *session) ask(w http.ResponseWriter, r *http.Request, m *wire.Message) {
	if !s.front.enter() {
		refuseForNow(w, time.Second, m.ID, textClosing)
		return
	}
	c := &call{key: m.ID.Key(), method: m.Method}
	if raw, ok := wire.Get(m.Params, "_meta", "progressToken"); ok {
		if token, ok := wire.ParseID(raw); ok {
			c.token = token.Key()
		}
	}
	if refusal, ok := s.begin(c); !ok {
		s.front.leave()
		if refusal == "" {
			refuse(w, http.StatusNotFound, m.ID, codeInvalid, textNoSession)
			return
		}
		s.front.discard(relay.Client, relay.ReusedID, m, refusal)
		refuse(w, http.StatusBadRequest, m.ID, codeInvalid, refusal)
		return
	}
	stream, conn, ok := s.store.connect(c.stream.id, -1)
	if !ok || !s.pushTaken(r.Context(), taken{incoming: incoming{message: m.Raw}, trace: mirror.Traceparent(r.Header)}) {
		s.endCall(c.key)
		s.store.discard(c.stream)
		refuse(w, http.StatusNotFound, m.ID, codeInvalid, textNoSession)
		return
	}
	s.deliver(w, r, stream, conn, false)
}

// begin takes up a call, unless its id is in flight.
func (s *session) begin(c *call) (refusal string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.over:
		return "", false
	default:
	}
	if s.calls[c.key] != nil {
		return textReused, false
	}
	c.stream = s.store.open()
	s.calls[c.key] = c
	s.order = append(s.order, c)
	return "", true
}

// endCall takes a call away. It is nil when there is none.
func (s *session) endCall(key string) *call {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.calls[key]
	if c == nil {
		return nil
	}
	delete(s.calls, key)
	for i := range s.order {
		if s.order[i] == c {
			s.order = append(s.order[:i], s.order[i+1:]...)
			break
		}
	}
	s.front.leave()
	return c
}

// awaits says whether a call of the method waits for its answer.
func (s *session) awaits(key, method string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.calls[key]
	return c != nil && c.method == method
}

// get opens the stream that belongs to no request, or goes on with one that broke.
func (s *session) get(w http.ResponseWriter, r *http.Request) {
	if !accepts(r, streamType) {
		refuse(w, http.StatusNotAcceptable, wire.ID{}, codeInvalid, "Accept must allow "+streamType)
		return
	}
	last, ok := oneHeader(r, mirror.LastEventIDHeader)
	id, seq := standalone, -1
	if ok && last != "" {
		id, seq, ok = parseEventID(last)
	}
	if !ok {
		refuse(w, http.StatusBadRequest, wire.ID{}, codeInvalid, "the header "+mirror.LastEventIDHeader+" names no event of this session")
		return
	}
	if seq < 0 && s.store.connected(s.own) {
		refuse(w, http.StatusConflict, wire.ID{}, codeInvalid, "the session has this stream already")
		return
	}
	stream, conn, ok := s.store.connect(id, seq)
	if !ok {
		refuse(w, http.StatusBadRequest, wire.ID{}, codeInvalid, "the header "+mirror.LastEventIDHeader+" names no event that is kept")
		return
	}
	s.deliver(w, r, stream, conn, true)
}

// deliver writes a stream to a client until it ends or the client is gone. At once
// says that it is a stream whatever comes; else an answer that comes first and is an
// error is written as JSON, with its status, as are others where that is asked for.
func (s *session) deliver(w http.ResponseWriter, r *http.Request, stream *stream, c *conn, atOnce bool) {
	out := newResponder(w, s.front.stall)
	defer out.end()
	defer s.store.disconnect(stream, c)
	slow := time.NewTimer(s.front.slow)
	defer slow.Stop()
	silence := time.NewTimer(s.front.o.KeepAlive)
	defer silence.Stop()
	for {
		e, over := s.store.head(stream)
		switch {
		case e != nil && e.final && !out.started && !atOnce && (e.failed || s.front.o.JSON):
			if e.failed && e.stream.id == firstCall {
				w.Header().Del(mirror.SessionHeader)
			}
			out.json(e.status, e.data)
			s.store.delivered(c, e, false)
			return
		case e != nil || over || atOnce:
			if s.begun(out, stream, e != nil) != nil {
				return
			}
			if over {
				return
			}
			atOnce = false
			if e == nil {
				continue
			}
			if out.message(eventID(stream.id, e.seq), e.data) != nil {
				return
			}
			s.store.delivered(c, e, true)
			silence.Reset(s.front.o.KeepAlive)
			continue
		}
		var err error
		select {
		case <-c.wake:
		case <-c.gone:
			return
		case <-r.Context().Done():
			return
		case <-slow.C:
			err = s.begun(out, stream, false)
		case <-silence.C:
			if err = s.begun(out, stream, false); err == nil {
				err = out.alive()
			}
			silence.Reset(s.front.o.KeepAlive)
		}
		if err != nil {
			return
		}
	}
}

// firstCall is the stream of the initialize.
const firstCall = standalone + 1

// begun opens the stream, if it is not open: with an event to resume from, where
// the client knows such.
func (s *session) begun(out *responder, stream *stream, follows bool) error {
	if out.started {
		return nil
	}
	prime := s.settled() >= primingVersion
	if err := out.start(follows || prime); err != nil || !prime {
		return err
	}
	s.store.keep(stream)
	return out.event(&sse.Event{ID: eventID(stream.id, s.store.position(stream)), HasID: true, HasData: true})
}

// lose is told of an event that nobody will see: a backend that waits for an
// answer to it gets an error.
func (s *session) lose(e *event) {
	m, err := wire.Read(e.data)
	if err != nil {
		return
	}
	s.front.discard(relay.Backend, Undelivered, &m, "the client has no stream open, and there is no room to keep it")
	if !e.request {
		return
	}
	s.mu.Lock()
	s.made = append(s.made, failure(m.ID, textClientAway))
	s.mu.Unlock()
	select {
	case s.madeWake <- struct{}{}:
	default:
	}
}

const textClientAway = "the client cannot be reached"

// clientEnd is the session's HTTP requests as one stream in each direction.
type clientEnd struct{ *session }

// Read gives the next message of any request.
func (c clientEnd) Read() ([]byte, error) {
	// The relay has dealt with the message before.
	if c.cancelled != "" {
		if call := c.endCall(c.cancelled); call != nil {
			c.store.finish(call.stream)
		}
		c.session.cancelled = ""
	}
	for {
		if made := c.nextMade(); made != nil {
			c.session.trace = ""
			return made, nil
		}
		select {
		case t := <-c.in:
			c.session.cancelled, c.session.trace = t.cancels, t.trace
			return t.message, t.err
		case <-c.madeWake:
		case <-c.over:
			return nil, io.EOF
		}
	}
}

// Traceparent is the trace context of the message that was read last.
func (c clientEnd) Traceparent() string { return c.trace }

var _ relay.Traced = clientEnd{}

func (c clientEnd) nextMade() (made []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.made) > 0 {
		made = c.made[0]
		c.session.made = c.made[1:]
	}
	return made
}

// Write puts a message on the stream it belongs to.
func (c clientEnd) Write(message []byte) error {
	m := wire.Message{Kind: wire.Response}
	var quick bool
	if m.ID, quick = resultOf(message); !quick || c.awaits(m.ID.Key(), methodInitialize) {
		var err error
		if m, err = wire.Read(message); err != nil {
			return nil // the relay writes nothing that cannot be read
		}
	}
	e := &event{data: wire.Flat(make([]byte, 0, len(message)), message), status: http.StatusOK}
	if m.Kind == wire.Response || m.Kind == wire.Failure {
		call := c.endCall(m.ID.Key())
		if call == nil {
			return nil
		}
		e.final, e.failed = true, m.Kind == wire.Failure
		if e.failed && c.fromBackend.Load() != &message[0] && isRefusal(codeOf(&m)) {
			e.status = http.StatusBadRequest
		}
		if call.method == methodInitialize {
			c.initialized(&m)
		}
		c.store.add(call.stream, e)
		return nil
	}
	e.request = m.Kind == wire.Request
	stream := c.route(&m)
	if !c.store.add(stream, e) && (stream == c.own || !c.store.add(c.own, e)) {
		c.lose(e)
	}
	return nil
}

// codeOf is the code of an error, 0 when there is none.
func codeOf(m *wire.Message) int {
	raw, _ := wire.Get(m.Error, "code")
	code, _ := strconv.Atoi(string(raw))
	return code
}

// isRefusal says that a code of the relay's own means that the message was not
// accepted (protocol.md §6 "What is refused").
func isRefusal(code int) bool { return code == wire.CodeInvalid || code == wire.CodeParse }

// initialized takes the answer to an initialize.
func (c clientEnd) initialized(m *wire.Message) {
	if m.Kind == wire.Failure {
		if c.settled() == "" {
			c.cancel(errNotInitialized)
		}
		return
	}
	raw, _ := wire.Get(m.Result, "protocolVersion")
	if v, _ := wire.Unquote(raw); mirror.IsVersion(v) {
		c.mu.Lock()
		c.session.version = v
		c.mu.Unlock()
	}
}

// maxAsked bounds how many requests of the backend are remembered with their
// streams.
const maxAsked = 1024

// route finds the stream for a message of the backend that is no answer: that of
// the call it names, or of the only one; else the one that belongs to no request;
// while there is none of those open, that of the newest call.
func (c clientEnd) route(m *wire.Message) *stream {
	own := c.store.connected(c.own)
	c.mu.Lock()
	defer c.mu.Unlock()
	to := c.own
	switch n := len(c.order); {
	case n == 1, n > 1 && !own:
		to = c.order[n-1].stream
	}
	switch m.Method {
	case "notifications/progress":
		raw, _ := wire.Get(m.Params, "progressToken")
		if token, ok := wire.ParseID(raw); ok {
			for _, call := range c.order {
				if call.token == token.Key() {
					to = call.stream
				}
			}
		}
	case methodCancelled:
		raw, _ := wire.Get(m.Params, "requestId")
		if id, ok := wire.ParseID(raw); ok && c.asked[id.Key()] != nil {
			to = c.asked[id.Key()]
			delete(c.asked, id.Key())
		}
	}
	if m.Kind == wire.Request && len(c.asked) < maxAsked {
		c.asked[m.ID.Key()] = to
	}
	return to
}

// CloseWrite does nothing: streams end with the session.
func (clientEnd) CloseWrite() error { return nil }

// Close ends the session's streams.
func (c clientEnd) Close() error {
	c.finish()
	return nil
}

var _ relay.End = clientEnd{}
