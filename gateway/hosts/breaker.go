package hosts

import (
	"errors"
	"math/rand/v2"
	"time"
)

// Breaker is the state of a host's circuit breaker.
type Breaker string

// The states of a [Breaker].
const (
	// BreakerClosed: the host is asked when there is need, after a failure once
	// the pause is over, and whoever needs its list waits for the answer.
	BreakerClosed Breaker = "closed"
	// BreakerOpen: several attempts in a row have not reached the host. Nobody
	// waits for it any more; operations meet a failed discovery at once.
	BreakerOpen Breaker = "open"
	// BreakerHalfOpen: one attempt is under way behind the backs of the
	// operations, for which the breaker is still open. It closes when the host
	// answers, be it with an error.
	BreakerHalfOpen Breaker = "half-open"
)

// openAfter is how many attempts in a row must fail to reach a host before its
// breaker opens.
const openAfter = 3

// The pauses between attempts grow from the one to the other.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
)

// breaker counts discoveries that failed. Invocations are not its business: a
// count of failed calls would be a client's way to switch a guard off
// (RATIONALE.md). It is a value; what holds it guards it.
type breaker struct {
	failures    int // attempts in a row that brought no list
	unreachable int // of those, the last ones that did not reach the host
}

func (b breaker) open() bool { return b.unreachable >= openAfter }

// after is the breaker after one more attempt that brought no list.
func (b breaker) after(err error) breaker {
	b.failures++
	if _, ok := errors.AsType[*unreachable](err); ok {
		b.unreachable++
	} else {
		b.unreachable = 0 // it answers: what it says is another matter
	}
	return b
}

// pause is for how long the host is left alone after an attempt that failed:
// twice as long each time, and never quite the same, so that gateways that lost
// a host together do not come back together.
func (b breaker) pause() time.Duration { return jitter(grown(b.failures, longestPause)) }

// grown is firstPause, doubled for each failure but the first.
func grown(failures int, longest time.Duration) time.Duration {
	return min(firstPause<<min(max(failures-1, 0), 10), longest)
}

// jitter is between half of d and d.
func jitter(d time.Duration) time.Duration { return d - rand.N(d/2+1) }

// unreachable is the failure of a transport: nothing listens, the process does
// not start or died, the connection broke or stayed silent. What a host answers
// is none, an error included.
type unreachable struct{ err error }

func (u *unreachable) Error() string { return u.err.Error() }
func (u *unreachable) Unwrap() error { return u.err }
