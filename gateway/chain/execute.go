package chain

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/weir-mcp/weir/abi"
)

// Operation is one half of a message exchange that is to be governed.
type Operation struct {
	// Payload is the params of a request or the result of a response, as
	// spelled. Interceptors see {} when it is empty. Sinks may hold it after
	// Execute has returned: do not reuse its memory.
	Payload json.RawMessage
	// Request is, in the response phase, the payload of the request that is
	// answered, or nil. It goes to hosts that can use it.
	Request json.RawMessage
	// Context says on whose behalf the operation runs, or is nil. It is shared
	// with all hosts: do not change it afterwards.
	Context *abi.Context
	// Arrived is when the message arrived, from when Timeout runs. Zero is now.
	Arrived time.Time
	// Timeout is the aggregate deadline of the plan (protocol.md §5). 0 is none,
	// which leaves ctx's own.
	Timeout time.Duration
	// Hold is called for each sink that starts, and what it returns is called when
	// that sink is done: for hosts that live no longer than they are used. It may
	// be nil.
	Hold func() (release func())
}

// DefaultAbandoned is the [Options.Abandoned] in force when it is 0.
const DefaultAbandoned = 256

// Options are the options of an [Executor].
type Options struct {
	// Sinks runs the sinks. Without it the executor makes one with default
	// options, which nobody drains.
	Sinks *Sinks
	// Abandoned bounds, host by host, the calls that go on although their
	// deadline has passed, because the host ignores its context. A host that
	// has that many is not called: each invocation fails at once as busy. Calls
	// in flight at that moment may still add to them. 0 is [DefaultAbandoned].
	Abandoned int
}

// Executor runs operations through plans. It is safe for concurrent use; one
// serves a whole process.
type Executor struct {
	sinks *Sinks
	left  leftovers
}

// NewExecutor makes an executor.
func NewExecutor(o Options) *Executor {
	if o.Sinks == nil {
		o.Sinks = NewSinks(SinkOptions{})
	}
	if o.Abandoned <= 0 {
		o.Abandoned = DefaultAbandoned
	}
	return &Executor{sinks: o.Sinks, left: leftovers{limit: o.Abandoned, hosts: map[string]int{}}}
}

// Execute runs op through plan and says what became of it. It returns when all
// that decides is known, at the latest when the aggregate deadline passes or
// ctx ends; sinks go on behind it.
//
// ctx is the requester's: when it is cancelled the outcome is
// [abi.StatusCancelled]. A deadline of ctx counts as an aggregate deadline.
func (x *Executor) Execute(ctx context.Context, plan *Plan, op Operation) Outcome {
	r := run{x: x, plan: plan, op: op, start: time.Now(), ctx: ctx, limit: op.Timeout}
	r.out = Outcome{Status: abi.StatusSuccess, Event: plan.event, Phase: plan.phase, Direction: plan.direction}
	switch {
	case plan.Blocked():
		f := plan.failures[0]
		r.out.Status = abi.StatusDiscoveryFailed
		r.out.Aborted = &Abort{Interceptor: f.Interceptor, Host: f.Host, Type: f.Type, Reason: string(f.Reason), Detail: f.Detail}
	case plan.Empty():
		r.out.FinalPayload = op.Payload
	default:
		r.execute()
	}
	r.out.TotalDuration = time.Since(r.start)
	return r.out
}

// run is one execution.
type run struct {
	x     *Executor
	plan  *Plan
	op    Operation
	start time.Time
	ctx   context.Context // ends with the requester or with the aggregate deadline
	limit time.Duration   // what ctx's deadline stands for
	out   Outcome
}

func (r *run) execute() {
	requester := r.ctx
	if r.op.Timeout > 0 {
		from := r.op.Arrived
		if from.IsZero() {
			from = r.start
		}
		var cancel context.CancelFunc
		r.ctx, cancel = context.WithDeadline(requester, from.Add(r.op.Timeout))
		defer cancel()
	}
	if own, ok := requester.Deadline(); ok {
		if aggregate, _ := r.ctx.Deadline(); r.op.Timeout <= 0 || !own.After(aggregate) {
			r.limit = own.Sub(r.start)
		}
	}
	r.out.Results = make([]StepResult, 0, len(r.plan.steps))
	payload := r.op.Payload
	if len(payload) == 0 {
		payload = json.RawMessage("{}")
	}
	final, modified := payload, false
	if r.plan.direction == abi.Sending {
		final, modified = r.mutate(payload)
		r.validate(final)
		r.sink(requester, final)
	} else {
		r.validate(payload)
		r.sink(requester, payload)
		final, modified = r.mutate(payload)
	}
	switch {
	case !r.out.Released():
		for i := range r.out.Results {
			if res := &r.out.Results[i]; res.Effect == EffectApplied {
				res.Effect = EffectDiscarded
			}
		}
	case modified:
		r.out.FinalPayload, r.out.Modified = final, true
	default:
		r.out.FinalPayload = r.op.Payload
	}
}

// goesOn reports whether nothing has stopped the operation yet, its requester
// included.
func (r *run) goesOn() bool {
	if r.out.Released() && errors.Is(r.ctx.Err(), context.Canceled) {
		r.out.Status = abi.StatusCancelled
	}
	return r.out.Released()
}

// invocation is the call of one step.
func (r *run) invocation(s *Step, payload json.RawMessage) abi.Invocation {
	inv := abi.Invocation{
		Name: s.Interceptor, Event: r.plan.event, Phase: r.plan.phase, Payload: payload,
		Config: s.Config.Value, Context: r.op.Context,
	}
	if r.plan.phase == abi.Response {
		inv.Request = r.op.Request
	}
	return inv
}

// mutate runs the mutation pass and gives the payload after it, and whether
// its bytes differ. What a pass that blocks has changed is thrown away with
// the operation.
func (r *run) mutate(payload json.RawMessage) (json.RawMessage, bool) {
	current := payload
	for i := range r.plan.mutations {
		if !r.goesOn() {
			break
		}
		s := &r.plan.mutations[i]
		p := r.x.begin(r.ctx, s, r.invocation(s, current), r.limit, true)
		res := r.x.finish(&p)
		switch {
		case res.Err != nil:
			r.fail(s, &res)
		case !res.Result.Modified:
			res.Effect = EffectPassed
		case !s.active():
			res.Effect = EffectAudited
		default:
			res.Effect = EffectApplied
			if !bytes.Equal(current, res.Result.Payload) {
				current = res.Result.Payload
			}
		}
		r.record(&res)
	}
	if !r.goesOn() || bytes.Equal(current, payload) {
		return payload, false
	}
	return current, true
}

// validate runs the validation pass: all start on the same payload and all are
// awaited, whatever one of them says.
func (r *run) validate(payload json.RawMessage) {
	if !r.goesOn() {
		return
	}
	wave := make([]pending, len(r.plan.validations))
	for i := range wave {
		s := &r.plan.validations[i]
		wave[i] = r.x.begin(r.ctx, s, r.invocation(s, payload), r.limit, i == len(wave)-1)
	}
	results := make([]StepResult, len(wave))
	for i := range wave {
		results[i] = r.x.finish(&wave[i])
	}
	r.goesOn() // a requester who has gone is told nothing, whatever the verdicts
	for i := range results {
		s, res := &r.plan.validations[i], &results[i]
		switch {
		case res.Err != nil:
			r.fail(s, res)
		case !res.Result.Blocks():
			res.Effect = EffectPassed
		case s.active():
			res.Effect = EffectBlocked
		default:
			res.Effect = EffectAudited
		}
		if res.Result != nil {
			r.out.Validation.count(res.Result)
		}
		r.record(res)
	}
}

// sink starts the sinks, once everything before them has released.
func (r *run) sink(requester context.Context, payload json.RawMessage) {
	if !r.goesOn() {
		return
	}
	for i := range r.plan.sinks {
		s := &r.plan.sinks[i]
		res := r.x.startSink(requester, r.plan, s, r.invocation(s, payload), r.op.Hold)
		r.record(&res)
	}
}

// fail decides what a failure does, by the step's own mode and failOpen.
func (r *run) fail(s *Step, res *StepResult) {
	switch {
	case errors.Is(r.ctx.Err(), context.Canceled):
		res.Effect = EffectCancelled
		r.goesOn()
	case s.blocksOnFailure():
		res.Effect = EffectBlocked
	case s.active():
		res.Effect = EffectIgnored
	default:
		res.Effect = EffectAudited
	}
}

// record keeps a result; the first one that blocks decides the status.
func (r *run) record(res *StepResult) {
	r.out.Results = append(r.out.Results, *res)
	if res.Effect != EffectBlocked || !r.out.Released() {
		return
	}
	a := &Abort{Interceptor: res.Name, Host: res.Host, Type: res.Type}
	switch {
	case res.Err == nil:
		r.out.Status = abi.StatusValidationFailed
		a.Reason, a.Messages = ReasonRejected, res.Result.Messages
	case res.Err.Reason == abi.ReasonTimeout:
		r.out.Status = abi.StatusTimeout
		a.Reason = string(res.Err.Reason)
	case res.Type == abi.Mutation:
		r.out.Status = abi.StatusMutationFailed
		a.Reason = string(res.Err.Reason)
	default:
		r.out.Status = abi.StatusInterceptorFailed
		a.Reason = string(res.Err.Reason)
	}
	r.out.Aborted = a
}

// count adds the findings of one verdict.
func (s *Summary) count(r *abi.Result) {
	fallback := r.Severity
	if !known(fallback) {
		fallback = abi.SeverityInfo
		if !r.Valid {
			fallback = abi.SeverityError
		}
	}
	if len(r.Messages) == 0 && !r.Valid {
		s.add(fallback)
	}
	for _, m := range r.Messages {
		if known(m.Severity) {
			s.add(m.Severity)
		} else {
			s.add(fallback)
		}
	}
}

func known(s abi.Severity) bool {
	return s == abi.SeverityError || s == abi.SeverityWarn || s == abi.SeverityInfo
}

func (s *Summary) add(severity abi.Severity) {
	switch severity {
	case abi.SeverityError:
		s.Errors++
	case abi.SeverityWarn:
		s.Warnings++
	default:
		s.Infos++
	}
}
