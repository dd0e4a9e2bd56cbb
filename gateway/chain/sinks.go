package chain

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weir-mcp/weir/abi"
)

// The defaults of [SinkOptions].
const (
	DefaultSinksInFlight = 1024
	DefaultSinksPerSink  = 64
	DefaultSinkTimeout   = 30 * time.Second
)

// farewell is how long [Sinks.Drain] waits for the reports of sinks that it
// has just cut off.
const farewell = 100 * time.Millisecond

// SinkReport is what a sink did, told after the fact.
type SinkReport struct {
	Event     string
	Phase     abi.Phase
	Direction abi.Direction
	StepResult
}

// SinkOptions are the options of [NewSinks]; zero values are the defaults.
type SinkOptions struct {
	// InFlight bounds the sinks that run at once.
	InFlight int
	// PerSink bounds the invocations of one sink that run at once, so that a
	// stuck one does not take the place of the others.
	PerSink int
	// Timeout bounds a sink for which policy sets no timeout.
	Timeout time.Duration
	// Observe is told of each sink that was to run, also of those that were
	// not started. It is called from several goroutines and must not block:
	// for a sink that was not started it runs within the operation. It may be
	// nil.
	Observe func(SinkReport)
}

// Sinks runs sinks detached from the operations that started them, bounded.
// It is safe for concurrent use.
type Sinks struct {
	o      SinkOptions
	base   context.Context
	cutOff context.CancelFunc

	mu       sync.Mutex
	running  int
	each     map[sinkKey]int
	draining bool
	idle     chan struct{} // closed when draining and nothing runs
}

type sinkKey struct{ host, name string }

// NewSinks makes a runner. [Sinks.Drain] ends it.
func NewSinks(o SinkOptions) *Sinks {
	if o.InFlight <= 0 {
		o.InFlight = DefaultSinksInFlight
	}
	if o.PerSink <= 0 {
		o.PerSink = DefaultSinksPerSink
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultSinkTimeout
	}
	s := &Sinks{o: o, each: map[sinkKey]int{}, idle: make(chan struct{})}
	s.base, s.cutOff = context.WithCancel(context.Background())
	return s
}

// Drain starts no more sinks and waits until those that run are done. When ctx
// ends first it cancels them and returns an error that says how many.
func (s *Sinks) Drain(ctx context.Context) error {
	s.mu.Lock()
	if !s.draining {
		s.draining = true
		if s.running == 0 {
			close(s.idle)
		}
	}
	s.mu.Unlock()
	select {
	case <-s.idle:
		s.cutOff()
		return nil
	case <-ctx.Done():
	}
	n := s.InFlight()
	s.cutOff()
	bound := time.NewTimer(farewell)
	defer bound.Stop()
	select {
	case <-s.idle:
	case <-bound.C:
	}
	if n == 0 {
		return nil
	}
	return fmt.Errorf("%d sinks were cut off while draining: %w", n, ctx.Err())
}

// InFlight is the number of sinks that run now.
func (s *Sinks) InFlight() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running
}

var (
	errDraining = errors.New("sinks are being drained")
	errSinkBusy = errors.New("too many invocations of this sink are running")
	errAllBusy  = errors.New("too many sinks are running")
)

// admit takes a place for one more sink.
func (s *Sinks) admit(key sinkKey) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.draining:
		return errDraining
	case s.running >= s.o.InFlight:
		return errAllBusy
	case s.each[key] >= s.o.PerSink:
		return errSinkBusy
	}
	s.running++
	s.each[key]++
	return nil
}

// leave gives the place back.
func (s *Sinks) leave(key sinkKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	if s.each[key]--; s.each[key] == 0 {
		delete(s.each, key)
	}
	if s.draining && s.running == 0 {
		close(s.idle)
	}
}

// startSink starts one sink, or says why not. ctx lends its values only: a sink
// outlives the operation and its requester. hold is [Operation.Hold].
func (x *Executor) startSink(ctx context.Context, plan *Plan, step *Step, inv abi.Invocation, hold func() (release func())) StepResult {
	s := x.sinks
	report := SinkReport{Event: plan.event, Phase: plan.phase, Direction: plan.direction, StepResult: StepResult{
		Name: step.Name, Host: step.Host, Type: step.Type, Mode: step.Mode.Value, FailOpen: step.FailOpen.Value, Effect: EffectStarted,
	}}
	key := sinkKey{step.Host, step.Name}
	var failure *abi.Error
	if step.Refused != nil {
		failure = step.refusal(&inv)
	} else if err := s.admit(key); err != nil {
		failure = abi.Failed(inv.Name, inv.Phase, abi.ReasonBusy, err)
	}
	if failure != nil {
		report.Effect, report.Err = EffectLost, failure
		s.observe(report)
		return report.StepResult
	}
	started := report.StepResult
	release := func() {}
	if hold != nil {
		release = hold()
	}
	go func() {
		defer s.leave(key)
		defer release()
		limit := step.Timeout.Value
		if limit <= 0 {
			limit = s.o.Timeout
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
		defer cancel()
		defer context.AfterFunc(s.base, cancel)()
		p := x.begin(ctx, step, inv, limit, true)
		report.StepResult = x.finish(&p)
		report.Effect = EffectLost
		if report.Result != nil && report.Result.Recorded {
			report.Effect = EffectRecorded
		}
		s.observe(report)
	}()
	return started
}

func (s *Sinks) observe(r SinkReport) {
	if s.o.Observe != nil {
		s.o.Observe(r)
	}
}
