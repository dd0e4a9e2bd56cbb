package door

import (
	"sync"
	"time"
)

// rate lets each caller make so many requests in a second, with as many again
// saved up. Callers that have not come for a while are forgotten: their buckets
// are full.
type rate struct {
	perSecond float64
	mu        sync.Mutex
	buckets   map[string]*bucket
	forgot    time.Time // when it was last looked for those to forget
}

type bucket struct {
	left float64
	at   time.Time
}

// mostCallers bounds the callers that are remembered. Past it the whole is one
// caller: who comes under ever new addresses does not come more often for it.
const mostCallers = 65_536

func newRate(perSecond int) *rate {
	if perSecond <= 0 {
		return nil
	}
	return &rate{perSecond: float64(perSecond), buckets: make(map[string]*bucket)}
}

// allows takes one request of a caller. A nil rate allows all.
func (r *rate) allows(caller string, now time.Time) bool {
	if r == nil {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.buckets[caller]
	if b == nil {
		if len(r.buckets) >= mostCallers && now.Sub(r.forgot) >= time.Second {
			// No more often: every request of a stranger would go through all of them,
			// while the others wait.
			r.forget(now)
			r.forgot = now
		}
		if len(r.buckets) >= mostCallers {
			caller = ""
			b = r.buckets[caller]
		}
	}
	if b == nil {
		b = &bucket{left: r.perSecond, at: now}
		r.buckets[caller] = b
	}
	if passed := now.Sub(b.at); passed > 0 {
		b.left = min(r.perSecond, b.left+passed.Seconds()*r.perSecond)
		b.at = now
	}
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}

func (r *rate) forget(now time.Time) {
	for caller, b := range r.buckets {
		if now.Sub(b.at) >= time.Second {
			delete(r.buckets, caller)
		}
	}
}
