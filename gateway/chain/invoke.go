package chain

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-mcp/weir/abi"
)

// answer is what came of one call of a host.
type answer struct {
	result abi.Result
	err    error
	// late is the context's error at the moment when the host returned: what
	// comes after the deadline is no answer, whatever it says.
	late error
	at   time.Time
}

// pending is one invocation between its start and its answer.
type pending struct {
	step   *Step
	inv    abi.Invocation
	ctx    context.Context
	cancel context.CancelFunc // nil without a limit of its own
	limit  time.Duration      // the limit that ctx stands for, for the error
	start  time.Time

	// One of the three says how it ends.
	failure *abi.Error // it was never called
	answer  *answer    // it was called on this goroutine
	flight  *flight    // it runs on its own
}

// flight is shared with the goroutine on which a host runs. It is one piece of
// memory with all that the goroutine needs.
type flight struct {
	step *Step
	inv  abi.Invocation
	ctx  context.Context

	state  atomic.Int32
	done   chan struct{} // gets a value once it has landed
	answer answer        // of one that has landed
}

// The states of a flight. Whoever leaves flying first decides.
const (
	flying int32 = iota
	landed
	abandoned
)

// begin starts one invocation under ctx. limit is what a deadline of ctx stands
// for. When alone, a host that promises to return promptly runs right here.
func (x *Executor) begin(ctx context.Context, s *Step, inv abi.Invocation, limit time.Duration, alone bool) pending {
	p := pending{step: s, inv: inv, ctx: ctx, limit: limit, start: time.Now()}
	if err := ctx.Err(); err != nil {
		p.failure = p.ended(err, errors.New("it was not started"))
		return p
	}
	if s.Refused != nil {
		p.failure = s.refusal(&inv)
		return p
	}
	if own := s.Timeout.Value; own > 0 {
		p.inv.Timeout = own
		if deadline, ok := ctx.Deadline(); ok && deadline.Before(p.start.Add(own)) {
			p.inv.Timeout = max(deadline.Sub(p.start), 1)
		} else {
			p.limit = own
			p.ctx, p.cancel = context.WithDeadline(ctx, p.start.Add(own))
		}
	}
	if _, prompt := s.host.(PromptHost); prompt && alone {
		a := callHost(p.ctx, s.host, p.inv)
		p.answer = &a
		return p
	}
	if !x.left.admits(s.Host) {
		p.failure = abi.Failed(inv.Name, inv.Phase, abi.ReasonBusy,
			fmt.Errorf("host %q has %d calls that did not end with their deadline", s.Host, x.left.limit))
		return p
	}
	p.flight = &flight{step: s, inv: p.inv, ctx: p.ctx, done: make(chan struct{}, 1)}
	go x.fly(p.flight)
	return p
}

// refusal is the failure of a step that cannot run as policy wants.
func (s *Step) refusal(inv *abi.Invocation) *abi.Error {
	reason := abi.ReasonUnavailable
	if e, ok := errors.AsType[*abi.Error](s.Refused); ok && e != nil {
		reason = e.Reason
	}
	return abi.Failed(inv.Name, inv.Phase, reason, s.Refused)
}

// fly calls the host and lands, unless it was abandoned meanwhile. It lands
// even if the host ends the goroutine.
func (x *Executor) fly(f *flight) {
	f.answer.err = errGoexit
	defer func() {
		if f.state.CompareAndSwap(flying, landed) {
			f.done <- struct{}{}
		} else {
			x.left.remove(f.step.Host)
		}
	}()
	f.answer = callHost(f.ctx, f.step.host, f.inv)
}

var errGoexit = errors.New("the host ended its goroutine")

// callHost calls a host and turns a panic into a failure.
func callHost(ctx context.Context, h Host, inv abi.Invocation) (a answer) {
	defer func() {
		if v := recover(); v != nil {
			a = answer{err: fmt.Errorf("the host panicked: %v\n%s", v, debug.Stack()), late: ctx.Err(), at: time.Now()}
		}
	}()
	r, err := h.Invoke(ctx, inv)
	return answer{result: r, err: err, late: ctx.Err(), at: time.Now()}
}

// finish waits for the answer, no longer than the invocation's context lasts,
// and judges it. Effect is left to the caller.
func (x *Executor) finish(p *pending) StepResult {
	if p.cancel != nil {
		defer p.cancel()
	}
	s := p.step
	r := StepResult{Name: s.Name, Host: s.Host, Type: s.Type, Mode: s.Mode.Value, FailOpen: s.FailOpen.Value}
	if p.failure != nil {
		r.Err = p.failure
		return r
	}
	a, ok := x.await(p)
	if !ok {
		r.Duration = time.Since(p.start)
		r.Err = p.ended(p.ctx.Err(), nil)
		return r
	}
	if !a.at.IsZero() {
		r.Duration = a.at.Sub(p.start)
	}
	if r.Err = p.judge(a); r.Err == nil {
		r.Result = &a.result
	}
	return r
}

// await gives the answer, or false when the host let the context end without
// one. It is then left behind.
func (x *Executor) await(p *pending) (*answer, bool) {
	if p.answer != nil {
		return p.answer, true
	}
	f := p.flight
	select {
	case <-f.done:
		return &f.answer, true
	case <-p.ctx.Done():
	}
	x.left.add(p.step.Host)
	if f.state.CompareAndSwap(flying, abandoned) {
		return nil, false
	}
	x.left.remove(p.step.Host)
	<-f.done
	return &f.answer, true
}

// judge says why an answer is a failure, or nil.
func (p *pending) judge(a *answer) *abi.Error {
	if a.late != nil {
		cause := a.err
		if errors.Is(cause, a.late) {
			cause = nil // it says no more than that the time was over
		}
		return p.ended(a.late, cause)
	}
	if a.err != nil {
		if err := abi.AsError(a.err, p.inv.Name, p.inv.Phase); err != nil {
			return err
		}
		return abi.Failed(p.inv.Name, p.inv.Phase, abi.ReasonUnavailable, errors.New("the host gave a nil error"))
	}
	if err := checkResult(p.step, &p.inv, &a.result); err != nil {
		return abi.Failed(p.inv.Name, p.inv.Phase, abi.ReasonBadOutput, err)
	}
	return nil
}

// ended is the failure of an invocation whose context ended with err.
func (p *pending) ended(err, cause error) *abi.Error {
	if errors.Is(err, context.DeadlineExceeded) {
		return abi.TimedOut(p.inv.Name, p.inv.Phase, p.limit, cause)
	}
	return abi.Failed(p.inv.Name, p.inv.Phase, abi.ReasonCancelled, cause)
}

// leftovers counts the calls that went on after their context had ended, host
// by host, so that a host that never returns costs a bounded number of
// goroutines and payloads.
type leftovers struct {
	limit int
	total atomic.Int64
	mu    sync.Mutex
	hosts map[string]int
}

// admits reports whether a host may be called. The common case takes no lock.
func (l *leftovers) admits(host string) bool {
	if l.total.Load() == 0 {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hosts[host] < l.limit
}

func (l *leftovers) add(host string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hosts[host]++
	l.total.Add(1)
}

func (l *leftovers) remove(host string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hosts[host]--; l.hosts[host] == 0 {
		delete(l.hosts, host)
	}
	l.total.Add(-1)
}
