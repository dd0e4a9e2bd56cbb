package relay

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/wire"
)

var emptyObject = []byte("{}")

// governs asks the governor's quick question.
func (s *session) governs(event string, phase abi.Phase, initiator Side, version string) bool {
	return s.Governor.Governs(Scope{event, phase, s.Boundary.Direction(initiator, phase), version})
}

// requestWork is what is to be done about a request before it may pass.
type requestWork struct {
	// strict asks for the strict reader: the request or its response is
	// governed.
	strict bool
	// decide says that a plan runs before it passes.
	decide bool
}

// requestWork finds out what is to be done about a request, and fills in what
// the flight has to know of it.
func (s *session) requestWork(from *peer, m *wire.Message, f *flight) (w requestWork, no *refused) {
	if strings.HasPrefix(m.Method, methodTaskPrefix) {
		if no = s.taskRequest(from, m, f); no != nil {
			return w, no
		}
	}
	f.version = s.negotiated(m.Params)
	if abi.IsEvent(m.Method) {
		f.governedAs = m.Method
		w.decide = s.governs(m.Method, abi.Request, from.side, f.version)
	}
	if f.governedAs != "" && s.governs(f.governedAs, abi.Response, from.side, f.version) {
		w.strict = true
		if f.payload = m.Params; f.payload == nil {
			f.payload = emptyObject
		} else {
			f.size += len(m.Raw)
		}
	}
	if !w.decide && s.mayAnswer(from, m.Params, f.version) {
		parts, err := s.answerParts(m.Params)
		if err != nil {
			return w, refusedAnswer(err)
		}
		w.decide = len(parts) > 0
	}
	w.strict = w.strict || w.decide
	f.asTask = (w.strict || from.side == Backend) && m.Params != nil && has(m.Params, memberTask)
	return w, nil
}

// mayAnswer says that params can hold answers that are governed.
func (s *session) mayAnswer(from *peer, params []byte, version string) bool {
	return from.side == Client && params != nil && s.governs(AnyEvent, abi.Response, Backend, version)
}

func refusedAnswer(err error) *refused {
	if err == errUnknownAnswer {
		return &refused{UnknownAnswer, codeInvalidParams, textBadAnswers}
	}
	return &refused{BadMessage, codeInvalidParams, textBadAnswers}
}

// taskRequest finds out what method made the task that a request asks about. A
// client's task whose maker is unknown is a tools/call, the only request of a
// client that can become one; one that the client holds is refused.
func (s *session) taskRequest(from *peer, m *wire.Message, f *flight) *refused {
	id, _ := wire.Get(m.Params, memberTaskID)
	f.creator = s.names.task(from.side, text(id))
	if f.creator == "" {
		if from.side == Client {
			f.creator = abi.ToolsCall
		} else if m.Method == methodTaskResult || m.Method == methodTaskGet {
			return &refused{UnknownTask, codeInvalidParams, textUnknownTask}
		}
	}
	if m.Method == methodTaskResult {
		f.governedAs = f.creator
	}
	return nil
}

func has(object []byte, name string) bool {
	_, ok := wire.Get(object, name)
	return ok
}

// responseCarrier says what the answer to a request can carry.
func (s *session) responseCarrier(requester *peer, f *flight) carrier {
	c := carrier{
		initiator: requester.side,
		requests:  requester.side == Client && s.governs(AnyEvent, abi.Request, Backend, f.version),
	}
	if strings.HasPrefix(f.method, methodTaskPrefix) && f.method != methodTaskResult && f.creator != "" &&
		s.governs(f.creator, abi.Response, requester.side, f.version) {
		c.result = f.creator
	}
	return c
}

func (c carrier) any() bool { return c.requests || c.result != "" }

// responseWork says whether an answer has to be decided about.
func (s *session) responseWork(requester *peer, m *wire.Message, f *flight) (bool, error) {
	if f.governedAs != "" && isObject(m.Result) &&
		(f.asTask || requester.side == Backend || s.governs(AnyEvent, abi.Response, requester.side, f.version)) {
		if id := taskOf(m.Result); id != "" {
			if !s.names.addTask(requester.side, id, f.governedAs) {
				return false, errTaskTaken
			}
		}
	}
	if f.governedAs != "" && s.governs(f.governedAs, abi.Response, requester.side, f.version) {
		return true, nil
	}
	c := s.responseCarrier(requester, f)
	if !c.any() || !isObject(m.Result) {
		return false, nil
	}
	parts, err := s.parts(c)(m.Result)
	return len(parts) > 0, err
}

// notificationWork says what a notification carries that has to be decided
// about, nil for nothing, or why it must not pass.
func (s *session) notificationWork(from *peer, m *wire.Message) (func([]byte) ([]part, error), Cause) {
	if !strings.HasPrefix(m.Method, notificationTaskPrefix) || m.Params == nil {
		return nil, ""
	}
	requester := s.other(from)
	version := s.negotiated(m.Params)
	c := carrier{
		initiator: requester.side,
		requests:  from.side == Backend && s.governs(AnyEvent, abi.Request, Backend, version),
	}
	at, err := find(m.Params, memberTaskID, memberResult)
	if err != nil {
		return nil, BadMessage
	}
	if at[1].is() {
		creator := s.names.task(requester.side, text(at[0].in(m.Params)))
		if creator == "" {
			if requester.side == Backend {
				return nil, UnknownTask
			}
			creator = abi.ToolsCall
		}
		if s.governs(creator, abi.Response, requester.side, version) {
			c.result = creator
		}
	}
	if !c.any() {
		return nil, ""
	}
	find := s.parts(c)
	switch parts, err := find(m.Params); {
	case err != nil:
		return nil, BadMessage
	case len(parts) == 0:
		return nil, ""
	}
	return find, ""
}

// decider runs the plans for one message.
type decider struct {
	s   *session
	ctx context.Context
	at  time.Time
	// request is what is kept of the request that the message answers.
	request []byte
	version string
	// uncacheable is what a decision said.
	uncacheable bool
}

// start runs decide beside the stream, once there is room for it. The pump of
// the side that sent the message waits for that room. With a flight, the
// requester can stop it.
func (s *session) start(from, requester *peer, f *flight, next state, at time.Time, size int, decide func(decider)) {
	ctx, cancel := context.WithCancel(s.plans)
	d := decider{s: s, ctx: ctx, at: at}
	if f != nil {
		var ok bool
		if d.request, ok = requester.asked.begin(f, next, cancel); !ok {
			cancel()
			return
		}
		d.version = f.version
	} else {
		d.version = s.negotiated(nil)
	}
	if !from.gate.enter(size) {
		cancel()
		return
	}
	go func() {
		defer from.gate.leave(size)
		defer cancel()
		decide(d)
	}()
}

// govern asks the governor about one payload. The payload it gives back is
// p itself where nothing changed.
func (d *decider) govern(event string, phase abi.Phase, initiator Side, p, request []byte) ([]byte, *blocking) {
	op := Operation{
		Scope:     Scope{event, phase, d.s.Boundary.Direction(initiator, phase), d.version},
		Reference: rand.Text(),
		Initiator: initiator,
		Payload:   p,
		Request:   request,
		Session:   d.s.Session,
		Principal: d.s.Principal,
		Arrived:   d.at,
	}
	if !d.s.Governor.Governs(op.Scope) {
		return p, nil
	}
	start := time.Now()
	v := d.ask(op)
	if v.Block == nil && v.Payload != nil && (!isObject(v.Payload) || wire.Strict(v.Payload) != nil) {
		v = Decision{Block: &Block{Reason: abi.StatusMutationFailed}}
	}
	d.s.Observer.Governed(Record{
		Scope: op.Scope, Reference: op.Reference, Initiator: initiator, Block: v.Block,
		Modified:  v.Block == nil && v.Payload != nil && !bytes.Equal(v.Payload, p),
		Cancelled: d.ctx.Err() != nil, Duration: time.Since(start), Waited: start.Sub(d.at), Size: len(p),
	})
	d.uncacheable = d.uncacheable || v.Uncacheable
	if v.Block != nil {
		return nil, &blocking{Block: v.Block, event: event, phase: phase, reference: op.Reference, mayHaveRun: event == abi.ToolsCall && phase == abi.Response}
	}
	if v.Payload != nil {
		return v.Payload, nil
	}
	return p, nil
}

// ask keeps a fault of the governor to the message it was about.
func (d *decider) ask(op Operation) (v Decision) {
	defer func() {
		if r := recover(); r != nil {
			d.s.Logger.Error("the governor panicked", "reference", op.Reference, "event", op.Event, "phase", string(op.Phase), "panic", fmt.Sprint(r))
			v = Decision{Block: &Block{Reason: abi.StatusInterceptorFailed}}
		}
	}()
	return d.s.Governor.Govern(d.ctx, op)
}

// inside decides about what the payload carries, part by part.
func (d *decider) inside(b []byte, find func([]byte) ([]part, error)) ([]byte, *blocking, error) {
	parts, err := find(b)
	if err != nil || len(parts) == 0 {
		return b, nil, err
	}
	var out []byte
	at := 0
	for _, p := range parts {
		old := b[p.from:p.to]
		now := old
		if p.lead != "" {
			now = emptyObject
		}
		if !isObject(now) {
			return nil, nil, errMalformed
		}
		before := now
		for _, event := range p.events {
			var no *blocking
			if now, no = d.govern(event, p.phase, p.initiator, now, nil); no != nil {
				return nil, no, nil
			}
		}
		if p.parts != nil {
			var no *blocking
			if now, no, err = d.inside(now, p.parts); no != nil || err != nil {
				return nil, no, err
			}
		}
		if bytes.Equal(now, before) {
			continue
		}
		out = append(out, b[at:p.from]...)
		out = append(out, p.lead...)
		out = append(out, now...)
		at = p.to
	}
	if out == nil {
		return b, nil, nil
	}
	return append(out, b[at:]...), nil, nil
}

// decideRequest decides about a request and passes it on or answers it.
func (s *session) decideRequest(d decider, from *peer, m *wire.Message, f *flight) {
	params := m.Params
	if params == nil {
		params = emptyObject
	}
	now := params
	var no *blocking
	if abi.IsEvent(m.Method) {
		if now, no = d.govern(m.Method, abi.Request, from.side, params, nil); no != nil {
			s.finish(from, f, s.blockedAnswer(from, f, *no))
			return
		}
	}
	if s.mayAnswer(from, now, f.version) {
		var err error
		now, no, err = d.inside(now, s.answerParts)
		if err != nil {
			r := refusedAnswer(err)
			s.discard(from, m.Kind, m.Method, Discard{Cause: r.cause, Detail: r.text})
			s.finish(from, f, appendError(nil, f.id(), r.code, r.text))
			return
		}
		if no != nil {
			no.mayHaveRun = false
			s.finish(from, f, s.blockedAnswer(from, f, *no))
			return
		}
	}
	out := m.Raw
	if !bytes.Equal(now, params) {
		out = m.WithParams(now)
	}
	to := s.other(from)
	to.write.Lock()
	defer to.write.Unlock()
	if from.asked.pass(f, now) {
		s.sendLocked(to, out)
	}
}

// decideResponse decides about an answer and passes it on, or something else in
// its place.
func (s *session) decideResponse(d decider, requester *peer, m *wire.Message, f *flight) {
	now := m.Result
	var no *blocking
	if f.governedAs != "" {
		now, no = d.govern(f.governedAs, abi.Response, requester.side, now, d.request)
	}
	if c := s.responseCarrier(requester, f); no == nil && c.any() {
		var err error
		if now, no, err = d.inside(now, s.parts(c)); err != nil {
			s.discard(s.other(requester), m.Kind, f.method, Discard{Cause: BadResult, Detail: "what it carries is malformed"})
			s.finish(requester, f, appendError(nil, f.id(), codeInternal, textBadAnswer))
			return
		}
	}
	if no == nil && d.uncacheable {
		now = uncached(now)
	}
	switch {
	case no != nil:
		no.mayHaveRun = f.isToolCall() || no.mayHaveRun
		s.finish(requester, f, s.blockedAnswer(requester, f, *no))
	case bytes.Equal(now, m.Result):
		s.finish(requester, f, m.Raw)
	default:
		s.finish(requester, f, m.WithResult(now))
	}
}

// decideNotification decides about what a notification carries. There is nobody
// to answer: blocked, it is dropped.
func (s *session) decideNotification(d decider, from *peer, m *wire.Message, find func([]byte) ([]part, error)) {
	now, no, err := d.inside(m.Params, find)
	switch {
	case err != nil:
		s.discard(from, m.Kind, m.Method, Discard{Cause: BadMessage})
	case no != nil:
		s.discard(from, m.Kind, m.Method, Discard{Cause: BlockedInside, Detail: "reference " + no.reference})
	case bytes.Equal(now, m.Params):
		s.send(s.other(from), m.Raw)
	default:
		s.send(s.other(from), m.WithParams(now))
	}
}

// uncached is a result that says that it must not be kept for others. What is
// not there is not added.
func uncached(result []byte) []byte {
	for name, value := range map[string]string{"cacheScope": `"private"`, "ttlMs": "0"} {
		if from, to, ok := wire.Find(result, name); ok {
			result = slices.Concat(result[:from], []byte(value), result[to:])
		}
	}
	return result
}
