package runtime

import (
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"
)

// The state that calls start from is captured again from time to time, because
// whatever was random in it repeats in every call (sandbox.md B): seeds of
// generators and of hash tables. It is due after renewAge, or after renewCalls
// calls if renewPause has passed by then. A capture that failed is tried again
// after renewPause, and then after twice as long each time, up to renewAge.
const (
	renewAge   = time.Hour
	renewCalls = 100_000
	renewPause = time.Minute
)

// renewal says when the state of a module is to be captured again. It has no
// clock of its own: calls ask it, so that nothing happens to a module that is
// not called. It is safe for concurrent use.
type renewal struct {
	mu       sync.Mutex
	on       bool          // there was a capture, or one that failed, and none is under way
	since    time.Time     // when that was
	calls    int           // since then
	pause    time.Duration // until the next one at the earliest
	age      time.Duration // until the next one, however few calls there are
	failures int           // without a capture since
}

// captured notes that the state was captured. Modules that were loaded together
// do not stay together.
func (r *renewal) captured() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.on, r.since, r.calls, r.failures = true, time.Now(), 0, 0
	r.pause, r.age = renewPause, renewAge-rand.N(renewAge/4)
}

// failed notes that it could not be captured, and returns when it is tried again
// at the earliest.
func (r *renewal) failed() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.on, r.since, r.calls = true, time.Now(), 0
	r.age = min(renewPause<<min(r.failures, 10), renewAge)
	r.pause = r.age
	r.failures++
	return r.age
}

// due counts a call and reports whether it is the one after which the state is
// to be captured again: who is told so does it, and then calls captured or
// failed.
func (r *renewal) due(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	passed := now.Sub(r.since)
	if !r.on || passed < r.age && (r.calls < renewCalls || passed < r.pause) {
		return false
	}
	r.on = false
	return true
}

// renewWhenDue counts a call, and has the module's state captured again beside
// the calls that follow if it is time.
func (m *Module) renewWhenDue(now time.Time) {
	if m.renewal.due(now) && m.enter() {
		go m.renew()
	}
}

// renew captures the state again, from a new instance that is warmed up like the
// first. Calls go on from the old state meanwhile, and for longer when it fails.
// One module does so at a time, so that it takes one processor at most.
func (m *Module) renew() {
	defer m.leave()
	select {
	case m.runtime.renewals <- struct{}{}:
		defer func() { <-m.runtime.renewals }()
	case <-m.life.Done():
		return
	}
	err := m.captureAnew()
	switch {
	case m.life.Err() != nil:
	case err == nil:
		m.renewal.captured()
		m.setReset(m.way.String())
		m.logger.LogAttrs(m.life, slog.LevelDebug, "the state that calls of the module start from is new",
			slog.String("module", m.name))
	default:
		again := m.renewal.failed()
		m.logger.LogAttrs(m.life, slog.LevelWarn, "the state that calls of the module start from could not be captured again",
			slog.String("module", m.name), slog.Any("cause", err), slog.Duration("tryAgainIn", again))
	}
}

// captureAnew does what the load and the warm-up after it did to come to the
// first state. Nothing that the guest says is heard.
func (m *Module) captureAnew() error {
	c := m.newRehearsal(nil)
	g, err := m.askDescribe(c.context(m.life), c, within(m.limits.LoadTime))
	if err != nil {
		if g != nil {
			g.close()
		}
		return err
	}
	if g, err = m.warm(g); err != nil {
		return err
	}
	return m.capture(g)
}
