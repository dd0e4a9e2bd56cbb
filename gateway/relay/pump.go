package relay

import (
	"bytes"
	"errors"
	"time"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/wire"
)

const (
	methodInitialize = "initialize"
	methodDiscover   = "server/discover"
	methodCancelled  = "notifications/cancelled"
)

// pump moves what one side sends until there is nothing more.
func (s *session) pump(from *peer) {
	for {
		raw, err := from.end.Read()
		at := time.Now()
		if err != nil {
			var long *wire.TooLong
			if errors.As(err, &long) {
				from.spoke.Store(true)
				s.refuse(from, long.Kind, long.ID, codeInvalidRequest, textTooLarge, Discard{Cause: TooLarge, Detail: long.Error()})
				continue
			}
			from.readErr = err
			close(from.ended)
			return
		}
		from.spoke.Store(true)
		m, err := wire.Read(raw)
		if err != nil {
			s.unreadable(from, raw, err)
			continue
		}
		switch m.Kind {
		case wire.Request:
			s.request(from, &m, at)
		case wire.Notification:
			s.notification(from, &m, at)
		default:
			s.response(from, &m, at)
		}
	}
}

// unreadable deals with a message that the strict reader refused.
func (s *session) unreadable(from *peer, raw []byte, err error) {
	bad := wire.AsError(err)
	d := Discard{Cause: BadMessage, Detail: bad.Error()}
	if start := bytes.TrimLeft(raw, " \t\r"); from.side == Backend && bad.Kind == wire.Unknown && len(start) > 0 && start[0] != '{' && start[0] != '[' {
		// No message at all, but a line that the backend meant for its log. An
		// answer without an id would end the connection of many a server.
		d.Detail = "a line that is no JSON-RPC message; does the backend log to stdout?"
		s.discard(from, wire.Unknown, "", d)
		return
	}
	s.refuse(from, bad.Kind, bad.ID, bad.Code, bad.Reason, d)
}

// refuse answers for a message that does not pass (protocol.md §6 "What is
// refused"): a request to its sender, a response as an error to the side that
// waits for it.
func (s *session) refuse(from *peer, kind wire.Kind, id wire.ID, code int, text string, d Discard) {
	s.discard(from, kind, "", d)
	switch kind {
	case wire.Notification:
	case wire.Request:
		s.send(from, appendError(nil, id.Raw(), code, text))
	case wire.Response, wire.Failure:
		s.failWaiting(s.other(from), id)
	default:
		// Something that might have been an answer ends a wait that is there;
		// its sender has had its chance.
		if !s.failWaiting(s.other(from), id) {
			s.send(from, appendError(nil, nil, code, text))
		}
	}
}

// failWaiting ends the wait of a side for the answer to one of its requests.
func (s *session) failWaiting(requester *peer, id wire.ID) bool {
	if id.IsZero() || id.IsNull() {
		return false
	}
	f, st := requester.asked.lookup(id.Key())
	if st != asked {
		return false
	}
	s.finish(requester, f, appendError(nil, f.id(), codeInternal, textBadAnswer))
	return true
}

// finish gives a requester its answer, unless it has got one or wants none.
func (s *session) finish(requester *peer, f *flight, answer []byte) {
	requester.write.Lock()
	defer requester.write.Unlock()
	if requester.asked.finish(f) {
		s.sendLocked(requester, answer)
	}
}

func (s *session) discard(from *peer, kind wire.Kind, method string, d Discard) {
	d.From, d.Kind, d.Method = from.side, kind.String(), shorten(method)
	s.Observer.Discarded(d)
}

// request takes up a request and passes it on, or decides about it first.
func (s *session) request(from *peer, m *wire.Message, at time.Time) {
	f := newFlight(m)
	w, refusal := s.requestWork(from, m, f)
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
		s.discard(from, m.Kind, m.Method, Discard{Cause: refusal.cause, Detail: refusal.text})
		s.send(from, appendError(nil, m.ID.Raw(), refusal.code, refusal.text))
		return
	}
	if !w.decide {
		s.send(s.other(from), m.Raw)
		return
	}
	s.start(from, from, f, deciding, at, len(m.Raw), func(d decider) { s.decideRequest(d, from, m, f) })
}

// refused is why a request does not pass, and what its sender is told.
type refused struct {
	cause Cause
	code  int
	text  string
}

// response passes an answer on, or decides about it first.
func (s *session) response(from *peer, m *wire.Message, at time.Time) {
	requester := s.other(from)
	f, st := requester.asked.lookup(m.ID.Key())
	if f == nil || st != asked {
		cause := UnknownResponse
		switch st {
		case answering:
			cause = DuplicateResponse
		case marked:
			cause = CancelledResponse
		}
		s.discard(from, m.Kind, "", Discard{Cause: cause})
		return
	}
	if m.Kind == wire.Failure {
		s.finish(requester, f, m.Raw)
		return
	}
	s.observe(f, m)
	governed, err := s.responseWork(requester, m, f)
	if err == nil && governed && (!isObject(m.Result) || wire.Strict(m.Raw) != nil) {
		err = errMalformed
	}
	switch {
	case err != nil:
		s.discard(from, m.Kind, f.method, Discard{Cause: BadResult, Detail: resultDetail(err)})
		s.finish(requester, f, appendError(nil, f.id(), codeInternal, textBadAnswer))
	case !governed:
		s.finish(requester, f, m.Raw)
	default:
		s.start(from, requester, f, answering, at, len(m.Raw), func(d decider) { s.decideResponse(d, requester, m, f) })
	}
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
func (s *session) notification(from *peer, m *wire.Message, at time.Time) {
	if m.Method == methodCancelled {
		s.cancellation(from, m)
		return
	}
	if abi.IsEvent(m.Method) && s.governs(m.Method, abi.Request, from.side, s.negotiated(m.Params)) {
		// A request without its id: there is nobody to answer, and a reader that
		// does not care for ids carries it out.
		s.discard(from, m.Kind, m.Method, Discard{Cause: BadMessage, Detail: "a governed request must have an id"})
		return
	}
	carries, cause := s.notificationWork(from, m)
	if cause == "" && carries != nil && wire.Strict(m.Raw) != nil {
		cause = BadMessage
	}
	switch {
	case cause != "":
		s.discard(from, m.Kind, m.Method, Discard{Cause: cause})
	case carries == nil:
		s.send(s.other(from), m.Raw)
	default:
		s.start(from, nil, nil, done, at, len(m.Raw), func(d decider) { s.decideNotification(d, from, m, carries) })
	}
}

// cancellation withdraws a request. Whether the other side has seen the request
// is decided in the moment of writing, so that the two never change order.
func (s *session) cancellation(from *peer, m *wire.Message) {
	to := s.other(from)
	raw, _ := wire.Get(m.Params, "requestId")
	id, ok := wire.ParseID(raw)
	if !ok {
		s.send(to, m.Raw)
		return
	}
	to.write.Lock()
	defer to.write.Unlock()
	switch from.asked.withdraw(id.Key()) {
	case forward:
		s.sendLocked(to, m.Raw)
	case forget:
		s.discard(from, m.Kind, m.Method, Discard{Cause: CancelledUnseen})
	case tooMany:
		s.fail(ErrTooManyMarks)
	}
}
