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
func (s *Session) governs(event string, phase abi.Phase, initiator Side, version string) bool {
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
func (s *Session) requestWork(a *Arrival, m *wire.Message, f *flight) (w requestWork, no *refused) {
	if strings.HasPrefix(m.Method, methodTaskPrefix) {
		if no = s.taskRequest(a.From, m, f); no != nil {
			return w, no
		}
	}
	f.version = s.negotiated(m.Params, a.Version)
	if abi.IsEvent(m.Method) {
		f.governedAs = m.Method
		w.decide = s.governs(m.Method, abi.Request, a.From, f.version)
	}
	if f.governedAs != "" && s.governs(f.governedAs, abi.Response, a.From, f.version) {
		w.strict = true
		if f.payload = m.Params; f.payload == nil {
			f.payload = emptyObject
		} else {
			f.size += len(m.Raw)
		}
	}
	if !w.decide && s.mayAnswer(a.From, m.Params, f.version) {
		parts, err := s.answerParts(m.Params)
		if err != nil {
			return w, refusedAnswer(err)
		}
		w.decide = len(parts) > 0
	}
	w.strict = w.strict || w.decide
	f.asTask = (w.strict || a.From == Backend) && m.Params != nil && has(m.Params, memberTask)
	return w, nil
}

// mayAnswer says that params can hold answers that are governed.
func (s *Session) mayAnswer(from Side, params []byte, version string) bool {
	return from == Client && params != nil && s.governs(AnyEvent, abi.Response, Backend, version)
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
func (s *Session) taskRequest(from Side, m *wire.Message, f *flight) *refused {
	id, _ := wire.Get(m.Params, memberTaskID)
	f.creator = s.names.task(from, text(id))
	if f.creator == "" {
		if from == Client {
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
func (s *Session) responseCarrier(requester Side, f *flight) carrier {
	c := carrier{
		initiator: requester,
		requests:  requester == Client && s.governs(AnyEvent, abi.Request, Backend, f.version),
	}
	if strings.HasPrefix(f.method, methodTaskPrefix) && f.method != methodTaskResult && f.creator != "" &&
		s.governs(f.creator, abi.Response, requester, f.version) {
		c.result = f.creator
	}
	return c
}

func (c carrier) any() bool { return c.requests || c.result != "" }

// responseWork says whether an answer has to be decided about.
func (s *Session) responseWork(requester Side, m *wire.Message, f *flight) (bool, error) {
	if f.governedAs != "" && isObject(m.Result) &&
		(f.asTask || requester == Backend || s.governs(AnyEvent, abi.Response, requester, f.version)) {
		switch id, err := taskOf(m.Result); {
		case err != nil:
			return false, err
		case id != "" && !s.names.addTask(requester, id, f.governedAs):
			return false, errTaskTaken
		}
	}
	if f.governedAs != "" && s.governs(f.governedAs, abi.Response, requester, f.version) {
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
func (s *Session) notificationWork(a *Arrival, m *wire.Message) (func([]byte) ([]part, error), Cause) {
	if !strings.HasPrefix(m.Method, notificationTaskPrefix) || m.Params == nil {
		return nil, ""
	}
	requester := s.other(a.From)
	version := s.negotiated(m.Params, a.Version)
	c := carrier{
		initiator: requester.side,
		requests:  a.From == Backend && s.governs(AnyEvent, abi.Request, Backend, version),
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
	s   *Session
	ctx context.Context
	at  time.Time
	// request is what is kept of the request that the message answers.
	request []byte
	version string
	// trace is the trace context of the request, or of a message that belongs to
	// none.
	trace string
	// uncacheable is what a decision said.
	uncacheable bool
}

// start makes room for a plan and gives what is to be done then. It waits for
// that room. With a flight, the requester can stop the plan. It is false when
// there will be no room any more; there is nothing to be done when the request
// has been cancelled meanwhile.
func (s *Session) start(ctx context.Context, a *Arrival, requester *party, f *flight, next state, size int, decide func(decider)) (rest func(), ok bool) {
	own := ctx == s.plans
	ctx, cancel := context.WithCancel(ctx)
	d := decider{s: s, ctx: ctx, at: a.At}
	if f != nil {
		if d.request, ok = requester.asked.begin(f, next, cancel); !ok {
			cancel()
			return nil, true
		}
		d.version, d.trace = f.version, f.trace
	} else {
		d.version, d.trace = s.negotiated(nil, a.Version), a.Traceparent
	}
	stop := func() bool { return true }
	if !own {
		stop = context.AfterFunc(s.plans, cancel)
	}
	gate := s.party(a.From).gate
	if !gate.enter(ctx, size) {
		stop()
		cancel()
		return nil, false
	}
	return func() {
		defer gate.leave(size)
		defer cancel()
		defer stop()
		decide(d)
	}, true
}

// govern asks the governor about one payload. The payload it gives back is
// p itself where nothing changed.
func (d *decider) govern(event string, phase abi.Phase, initiator Side, p, request []byte) ([]byte, *Refusal) {
	op := Operation{
		Scope:     Scope{event, phase, d.s.Boundary.Direction(initiator, phase), d.version},
		Reference: rand.Text(),
		Initiator: initiator,
		Payload:   p,
		Request:   request,
		Session:   d.s.Session,
		Principal: d.s.Principal,
		Arrived:   d.at,

		Traceparent: d.trace,
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
		return nil, &Refusal{Block: v.Block, Event: event, Phase: phase, Reference: op.Reference, MayHaveRun: event == abi.ToolsCall && phase == abi.Response}
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
func (d *decider) inside(b []byte, find func([]byte) ([]part, error)) ([]byte, *Refusal, error) {
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
			var no *Refusal
			if now, no = d.govern(event, p.phase, p.initiator, now, nil); no != nil {
				return nil, no, nil
			}
		}
		if p.parts != nil {
			var no *Refusal
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
func (s *Session) decideRequest(d decider, a *Arrival, m *wire.Message, f *flight) {
	from := s.party(a.From)
	params := m.Params
	if params == nil {
		params = emptyObject
	}
	now := params
	var no *Refusal
	if abi.IsEvent(m.Method) {
		if now, no = d.govern(m.Method, abi.Request, from.side, params, nil); no != nil {
			a.Lane.Answer(s.answer(from, f, s.blockedAnswer(a.From, f, *no), ""))
			return
		}
	}
	if s.mayAnswer(a.From, now, f.version) {
		var err error
		now, no, err = d.inside(now, s.answerParts)
		if err != nil {
			r := refusedAnswer(err)
			s.discard(a.From, m.Kind, m.Method, Discard{Cause: r.cause, Detail: r.text})
			a.Lane.Answer(s.answer(from, f, appendError(nil, f.id(), r.code, r.text), r.cause))
			return
		}
		if no != nil {
			no.MayHaveRun = false
			a.Lane.Answer(s.answer(from, f, s.blockedAnswer(a.From, f, *no), ""))
			return
		}
	}
	out := s.outgoing(m, m.Raw, m.Params)
	if !bytes.Equal(now, params) {
		out.Message, out.Params = m.WithParams(now), now
	}
	out.Ticket = Ticket{s, from, f}
	out.step, out.from, out.flight, out.payload = passing, from, f, now
	a.Lane.Forward(out)
}

// decideResponse decides about an answer and passes it on, or something else in
// its place.
func (s *Session) decideResponse(d decider, a *Arrival, requester *party, m *wire.Message, f *flight) {
	now := m.Result
	var no *Refusal
	if f.governedAs != "" {
		now, no = d.govern(f.governedAs, abi.Response, requester.side, now, d.request)
	}
	if c := s.responseCarrier(requester.side, f); no == nil && c.any() {
		var err error
		if now, no, err = d.inside(now, s.parts(c)); err != nil {
			s.discard(a.From, m.Kind, f.method, Discard{Cause: BadResult, Detail: "what it carries is malformed"})
			a.Lane.Forward(s.answer(requester, f, appendError(nil, f.id(), codeInternal, textBadAnswer), ""))
			return
		}
	}
	if no == nil && d.uncacheable {
		now = uncached(now)
	}
	switch {
	case no != nil:
		no.MayHaveRun = f.isToolCall() || no.MayHaveRun
		a.Lane.Forward(s.answer(requester, f, s.blockedAnswer(requester.side, f, *no), ""))
	case bytes.Equal(now, m.Result):
		a.Lane.Forward(s.passedAnswer(requester, f, m, m.Raw))
	default:
		a.Lane.Forward(s.passedAnswer(requester, f, m, m.WithResult(now)))
	}
}

// decideNotification decides about what a notification carries. There is nobody
// to answer: blocked, it is dropped.
func (s *Session) decideNotification(d decider, a *Arrival, m *wire.Message, find func([]byte) ([]part, error)) {
	now, no, err := d.inside(m.Params, find)
	switch {
	case err != nil:
		s.drop(a, m.Kind, m.Method, Discard{Cause: BadMessage})
	case no != nil:
		s.drop(a, m.Kind, m.Method, Discard{Cause: BlockedInside, Detail: "reference " + no.Reference})
	case bytes.Equal(now, m.Params):
		a.Lane.Forward(s.outgoing(m, m.Raw, m.Params))
	default:
		a.Lane.Forward(s.outgoing(m, m.WithParams(now), now))
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
