package relay

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/wire"
)

const (
	methodInitialize = "initialize"
	methodDiscover   = "server/discover"
	methodCancelled  = "notifications/cancelled"
)

// ErrTooManyMarks ends a session in which one side has cancelled more requests
// than are remembered (protocol.md §6).
var ErrTooManyMarks = errors.New("too many cancelled requests in one session")

// Session is the core of the relay, whatever the transports are: the requests in
// flight of one client and one backend, and what is decided about their
// messages. A transport hands in each message with the [Lane] it came on. All
// methods are safe for concurrent use.
//
// Of messages that are handed in one after the other, those that no plan governs
// are written in that order. What has to be decided first is handed back as a
// function, so that the transport chooses what waits for it.
type Session struct {
	Options
	client, backend *party
	names           *names
	// version is the negotiated protocol version, once known.
	version atomic.Pointer[string]

	// plans is the context of all plans.
	plans     context.Context
	stopPlans context.CancelFunc
	// overflow is closed when there are too many marks.
	overflow     chan struct{}
	overflowOnce sync.Once
}

// party is one side: the requests it has made, and the plans of the messages
// that came from it.
type party struct {
	side  Side
	asked *table
	gate  *gate
}

// NewSession makes one for a client and a backend that have said nothing yet.
// Close ends it. Of the options, Grace, Leave, Stall and Drain are for [Run].
func NewSession(o Options) *Session {
	s := newSession(context.Background(), o.withDefaults())
	s.client.gate, s.backend.gate = newGate(s.Limits.Plans, s.Limits.PlanBytes), newGate(s.Limits.Plans, s.Limits.PlanBytes)
	return s
}

// Fork makes a session that has nothing in common with this one but its options
// and its bounds on plans, which the two share. It ends with this one. It is for
// transports where each request is a scope of its own (protocol.md §6).
func (s *Session) Fork(principal *abi.Principal) *Session {
	o := s.Options
	o.Principal = principal
	forked := newSession(s.plans, o)
	forked.client.gate, forked.backend.gate = s.client.gate, s.backend.gate
	return forked
}

func newSession(plans context.Context, o Options) *Session {
	s := &Session{
		Options:  o,
		client:   &party{side: Client, asked: newTable(o.Limits)},
		backend:  &party{side: Backend, asked: newTable(o.Limits)},
		names:    newNames(o.Limits.Names),
		overflow: make(chan struct{}),
	}
	s.plans, s.stopPlans = context.WithCancel(plans)
	return s
}

// Close stops all plans and takes no more requests. What is open is given up
// without an answer.
func (s *Session) Close() {
	s.client.asked.abandon()
	s.backend.asked.abandon()
	s.stopPlans()
}

// Overflow is closed when a side has cancelled more requests than are
// remembered. The session is to be ended then, see [ErrTooManyMarks].
func (s *Session) Overflow() <-chan struct{} { return s.overflow }

// Open is how many requests of a side wait for their answers.
func (s *Session) Open(side Side) int { return s.party(side).asked.open() }

func (s *Session) party(side Side) *party {
	if side == Backend {
		return s.backend
	}
	return s.client
}

// other is the party that a message from the given side is for.
func (s *Session) other(side Side) *party {
	if side == Backend {
		return s.client
	}
	return s.backend
}

// Arrival is a message as it came.
type Arrival struct {
	// From is the side that sent it.
	From Side
	// Raw is the message, which belongs to the session from then on.
	Raw []byte
	// At is when it was read: where aggregate deadlines start (protocol.md §5).
	At time.Time
	// Version is the protocol version that the transport names for it, if any. It
	// counts where the session's is unknown and the message names none.
	Version string
	// Traceparent is the W3C Trace Context that the transport brought it with,
	// unchecked; see [Operation].
	Traceparent string
	// For says whose answer the message may be, where the transport knows: of that
	// request, or of none at all when it is the zero Ticket. Nil means of any.
	For *Ticket
	// Lane is required.
	Lane Lane
}

// Handle deals with one message. When something has to be decided first, the
// rest comes back as a function, to be called once, in any goroutine; it writes
// what is to be written, and returns soon after ctx or the session ends. Else it
// is nil, and everything is done. Handle blocks while too many plans run.
func (s *Session) Handle(ctx context.Context, a Arrival) (rest func()) {
	m, err := wire.Read(a.Raw)
	if err != nil {
		s.unreadable(&a, err)
		return nil
	}
	return s.handle(ctx, &a, &m)
}

// HandleRead is Handle for a message that [wire.Read] has read already.
func (s *Session) HandleRead(ctx context.Context, a Arrival, m wire.Message) (rest func()) {
	return s.handle(ctx, &a, &m)
}

// HandleTooLong deals with a message that was discarded because of its size.
func (s *Session) HandleTooLong(a Arrival, long *wire.TooLong) {
	s.refuse(&a, long.Kind, long.ID, codeInvalidRequest, textTooLarge, Discard{Cause: TooLarge, Detail: long.Error()})
}

// HandleUnreadable deals with a message that [wire.Read] refused with err.
func (s *Session) HandleUnreadable(a Arrival, err error) { s.unreadable(&a, err) }

func (s *Session) handle(ctx context.Context, a *Arrival, m *wire.Message) (rest func()) {
	s.Observer.Arrived(a.From, m.Kind)
	switch m.Kind {
	case wire.Request:
		return s.request(ctx, a, m)
	case wire.Notification:
		return s.notification(ctx, a, m)
	default:
		return s.response(ctx, a, m)
	}
}

// unreadable deals with a message that the strict reader refused.
func (s *Session) unreadable(a *Arrival, err error) {
	bad := wire.AsError(err)
	d := Discard{Cause: BadMessage, Detail: bad.Error()}
	if start := bytes.TrimLeft(a.Raw, " \t\r"); a.From == Backend && bad.Kind == wire.Unknown && len(start) > 0 && start[0] != '{' && start[0] != '[' {
		// No message at all, but a line that the backend meant for its log. An
		// answer without an id would end the connection of many a server.
		d.Detail = "a line that is no JSON-RPC message; does the backend log to stdout?"
		s.drop(a, wire.Unknown, "", d)
		return
	}
	s.refuse(a, bad.Kind, bad.ID, bad.Code, bad.Reason, d)
}

// refuse answers for a message that does not pass (protocol.md §6 "What is
// refused"): a request to its sender, a response as an error to the side that
// waits for it.
func (s *Session) refuse(a *Arrival, kind wire.Kind, id wire.ID, code int, text string, d Discard) {
	s.discard(a.From, kind, "", d)
	switch kind {
	case wire.Notification:
		a.Lane.Answer(Outgoing{Cause: d.Cause})
	case wire.Request:
		a.Lane.Answer(s.refusal(id.Raw(), &refused{d.Cause, code, text}))
	case wire.Response, wire.Failure:
		if !s.failWaiting(a, id) {
			a.Lane.Answer(Outgoing{Cause: d.Cause})
		}
	default:
		// Something that might have been an answer ends a wait that is there;
		// its sender has had its chance.
		if !s.failWaiting(a, id) {
			a.Lane.Answer(s.refusal(nil, &refused{d.Cause, code, text}))
		}
	}
}

// refusal is the answer to a request that does not pass and is in no table.
func (s *Session) refusal(id []byte, r *refused) Outgoing {
	return Outgoing{Message: appendError(nil, id, r.code, r.text), Kind: wire.Failure, Cause: r.cause, s: s}
}

// failWaiting ends the wait of the other side for the answer to one of its
// requests.
func (s *Session) failWaiting(a *Arrival, id wire.ID) bool {
	if id.IsZero() || id.IsNull() {
		return false
	}
	requester := s.other(a.From)
	f, st := a.answered(requester, id)
	if st != asked {
		return false
	}
	a.Lane.Forward(s.answer(requester, f, appendError(nil, f.id(), codeInternal, textBadAnswer), ""))
	return true
}

// answered finds the request that a message with that id would answer.
func (a *Arrival) answered(requester *party, id wire.ID) (*flight, state) {
	if a.For != nil {
		return requester.asked.expect(a.For.f, id.Key())
	}
	return requester.asked.lookup(id.Key())
}

func (s *Session) discard(from Side, kind wire.Kind, method string, d Discard) {
	d.From, d.Kind, d.Method = from, kind.String(), shorten(method)
	s.Observer.Discarded(d)
}

// drop discards a message that gets no answer.
func (s *Session) drop(a *Arrival, kind wire.Kind, method string, d Discard) {
	s.discard(a.From, kind, method, d)
	a.Lane.Answer(Outgoing{Cause: d.Cause})
}

// refused is why a request does not pass, and what its sender is told.
type refused struct {
	cause Cause
	code  int
	text  string
}

// request takes up a request and passes it on, or decides about it first.
func (s *Session) request(ctx context.Context, a *Arrival, m *wire.Message) (rest func()) {
	f := newFlight(m)
	f.keepTrace(a.Traceparent)
	from := s.party(a.From)
	w, refusal := s.requestWork(a, m, f)
	if refusal == nil && w.strict && wire.Strict(m.Raw) != nil {
		refusal = &refused{BadMessage, codeInvalidRequest, textDuplicates}
	}
	if w.decide {
		f.state = deciding
	}
	if refusal == nil {
		switch from.asked.enter(f) {
		case reused:
			refusal = &refused{ReusedID, codeInvalidRequest, textReused}
		case full:
			refusal = &refused{TableFull, codeInternal, textFull}
		case shut:
			refusal = &refused{Closing, codeInternal, textClosing}
		}
	}
	if refusal != nil {
		s.discard(a.From, m.Kind, m.Method, Discard{Cause: refusal.cause, Detail: refusal.text})
		a.Lane.Answer(s.refusal(m.ID.Raw(), refusal))
		return nil
	}
	if !w.decide {
		out := s.outgoing(m, m.Raw, m.Params)
		out.Ticket = Ticket{s, from, f}
		a.Lane.Forward(out)
		return nil
	}
	rest, ok := s.start(ctx, a, from, f, deciding, len(m.Raw), func(d decider) { s.decideRequest(d, a, m, f) })
	if !ok {
		a.Lane.Answer(s.answer(from, f, appendError(nil, f.id(), codeInternal, textClosing), Closing))
	}
	return rest
}

// outgoing is the message, as it is passed on.
func (s *Session) outgoing(m *wire.Message, raw, params []byte) Outgoing {
	return Outgoing{Message: raw, Kind: m.Kind, Method: m.Method, Params: params, s: s}
}

// response passes an answer on, or decides about it first.
func (s *Session) response(ctx context.Context, a *Arrival, m *wire.Message) (rest func()) {
	requester := s.other(a.From)
	f, st := a.answered(requester, m.ID)
	if f == nil || st != asked {
		cause := UnknownResponse
		switch st {
		case answering:
			cause = DuplicateResponse
		case marked:
			cause = CancelledResponse
		}
		s.drop(a, m.Kind, "", Discard{Cause: cause})
		return nil
	}
	if m.Kind == wire.Failure {
		a.Lane.Forward(s.passedAnswer(requester, f, m, s.failed(a, f, m)))
		return nil
	}
	s.observe(f, m)
	governed, err := s.responseWork(requester.side, m, f)
	if err == nil && governed && (!isObject(m.Result) || wire.Strict(m.Raw) != nil) {
		err = errMalformed
	}
	switch {
	case err != nil:
		s.discard(a.From, m.Kind, f.method, Discard{Cause: BadResult, Detail: resultDetail(err)})
		a.Lane.Forward(s.answer(requester, f, appendError(nil, f.id(), codeInternal, textBadAnswer), ""))
		return nil
	case !governed:
		a.Lane.Forward(s.passedAnswer(requester, f, m, s.announced(a, f, m)))
		return nil
	}
	rest, ok := s.start(ctx, a, requester, f, answering, len(m.Raw), func(d decider) { s.decideResponse(d, a, requester, m, f) })
	if !ok {
		a.Lane.Forward(s.answer(requester, f, appendError(nil, f.id(), codeInternal, textClosing), ""))
	}
	return rest
}

// passedAnswer is an answer that its requester gets, as raw has it.
func (s *Session) passedAnswer(requester *party, f *flight, m *wire.Message, raw []byte) Outgoing {
	out := s.answer(requester, f, raw, "")
	out.Kind = m.Kind
	return out
}

func resultDetail(err error) string {
	if err == errTaskTaken {
		return err.Error()
	}
	return "a governed result must be an object without duplicate names"
}

// notification passes a notification on. A cancellation is seen to on the way,
// what is governed inside one about a task is decided about first, and one by the
// name of a governed request does not pass.
func (s *Session) notification(ctx context.Context, a *Arrival, m *wire.Message) (rest func()) {
	if m.Method == methodCancelled {
		s.cancellation(a, m)
		return nil
	}
	if abi.IsEvent(m.Method) && s.governs(m.Method, abi.Request, a.From, s.negotiated(m.Params, a.Version)) {
		// A request without its id: there is nobody to answer, and a reader that
		// does not care for ids carries it out.
		s.drop(a, m.Kind, m.Method, Discard{Cause: BadMessage, Detail: "a governed request must have an id"})
		return nil
	}
	if !s.Passthrough.lets(m.Method) {
		s.drop(a, m.Kind, m.Method, Discard{Cause: NotLetThrough})
		return nil
	}
	carries, cause := s.notificationWork(a, m)
	if cause == "" && carries != nil && wire.Strict(m.Raw) != nil {
		cause = BadMessage
	}
	switch {
	case cause != "":
		s.drop(a, m.Kind, m.Method, Discard{Cause: cause})
		return nil
	case carries == nil:
		a.Lane.Forward(s.outgoing(m, m.Raw, m.Params))
		return nil
	}
	rest, _ = s.start(ctx, a, nil, nil, done, len(m.Raw), func(d decider) { s.decideNotification(d, a, m, carries) })
	return rest
}

// cancellation withdraws a request. Whether the other side has seen the request
// is decided in the moment of writing, so that the two never change order.
func (s *Session) cancellation(a *Arrival, m *wire.Message) {
	out := s.outgoing(m, m.Raw, m.Params)
	raw, _ := wire.Get(m.Params, "requestId")
	if id, ok := wire.ParseID(raw); ok {
		out.step, out.from, out.key = withdrawing, s.party(a.From), id.Key()
	}
	a.Lane.Forward(out)
}

// withdraw marks a request as cancelled; with a flight, that one only. It says whether the other side has to
// be told.
func (s *Session) withdraw(from *party, key string, only *flight) bool {
	switch from.asked.withdraw(key, only) {
	case forget:
		s.discard(from.side, wire.Notification, methodCancelled, Discard{Cause: CancelledUnseen})
		return false
	case tooMany:
		s.overflowOnce.Do(func() { close(s.overflow) })
		return false
	default:
		return true
	}
}
