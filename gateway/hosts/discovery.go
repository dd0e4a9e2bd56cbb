package hosts

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/chain"
)

const (
	// attemptLimit is how long one attempt to get a list may take, connecting
	// included.
	attemptLimit = 20 * time.Second
	// patience is how long operations wait for a host that fails open and does
	// not answer. They go on without it then, which is what failing open is for,
	// instead of losing their whole deadline to it.
	patience = 2 * time.Second
	// doubtGap is the least time between two attempts that invocations give rise
	// to.
	doubtGap = 500 * time.Millisecond
)

// offer is what a source lists.
type offer struct {
	interceptors []abi.Descriptor
	skipped      []abi.Skipped
}

// state is the outcome of the last discovery. It is never changed.
type state struct {
	listing chain.Listing
	// at is when the list was fetched, or when it turned out that there is none.
	at time.Time
	// changes is how many changes of the source were known before it was asked.
	changes uint64
	// next is when the keeper asks again by itself. Before that nobody else does
	// where the last attempt failed.
	next   time.Time
	failed bool // the last attempt did, even if the list is still in force
	breaker
}

// flight is a discovery in progress.
type flight struct {
	done chan struct{}
	// overdue is closed when those who can do without stop to wait; only hosts
	// that fail open have it.
	overdue chan struct{}
}

// wait is false where ctx ends first.
func (f *flight) wait(ctx context.Context) bool {
	select {
	case <-f.done:
		return true
	default:
	}
	select {
	case <-f.done:
	case <-f.overdue:
	case <-ctx.Done():
		return false
	}
	return true
}

// await waits for a discovery, and for another one where the source changed
// while it was being asked. It is false where ctx ends first.
func (h *Host) await(ctx context.Context, f *flight) bool {
	for range 3 { // one that changes faster than that is as new as can be
		if !f.wait(ctx) {
			return false
		}
		if s := h.state.Load(); s == nil || !h.changed(s) {
			break
		}
		f = h.discover()
	}
	return true
}

// need says what a listing takes: nothing, an attempt in the background, or to
// wait for one.
type need uint8

const (
	nothing need = iota
	refresh
	wait
)

func (h *Host) needs(now time.Time) need {
	s := h.state.Load()
	switch {
	case s == nil || h.changed(s):
		return wait
	case s.listing.Err != nil:
		switch {
		case now.Before(s.next):
			return nothing
		case h.failOpen || s.open():
			// Operations go on without it, or are blocked, anyhow: one that swallows
			// packets must not eat up their deadline each time it is tried.
			return refresh
		}
		return wait
	case !h.source.valid():
		return wait
	case now.Sub(s.at) >= 2*h.fresh:
		return wait
	case s.failed && now.Before(s.next), now.Sub(s.at) < h.fresh:
		return nothing
	}
	return refresh
}

// changed says that the source has told of a change that s does not know of.
func (h *Host) changed(s *state) bool { return h.changes.Load() != s.changes }

// discover starts a discovery, or joins the one that runs. It survives those who
// wait for it: one that leaves must not fail the others.
func (h *Host) discover() *flight {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.flight != nil {
		return h.flight
	}
	f := &flight{done: make(chan struct{})}
	if h.closed {
		close(f.done)
		return f
	}
	if h.failOpen {
		f.overdue = make(chan struct{})
	}
	h.flight = f
	h.attempts++
	h.running.Go(func() { h.fly(f) })
	if !h.kept {
		h.kept = true
		h.running.Go(func() { h.keep(f) })
	}
	return f
}

func (h *Host) fly(f *flight) {
	ctx, cancel := context.WithTimeout(h.life, attemptLimit)
	defer cancel()
	if f.overdue != nil {
		defer time.AfterFunc(patience, func() { h.overdue(f) }).Stop()
	}
	h.doubted.Store(false)
	changes := h.changes.Load() // before the list is read: a change meanwhile counts
	found, err := h.source.list(ctx)
	now := time.Now()

	h.mu.Lock()
	defer h.mu.Unlock()
	defer close(f.done)
	old := h.state.Load()
	next := &state{at: now, changes: changes}
	if err == nil {
		next.listing = chain.Listing{Host: h, FailOpen: h.failOpen, Interceptors: found.interceptors, Skipped: found.skipped}
		next.next = now.Add(h.fresh - h.fresh/10 + jitter(h.fresh/10))
	} else {
		h.failed(err, now)
		if old != nil {
			next.breaker = old.breaker
		}
		next.breaker = next.after(err)
		next.failed, next.next = true, now.Add(next.pause())
		if old != nil && old.listing.Err == nil && !h.changed(old) && h.source.valid() && now.Sub(old.at) < 2*h.fresh {
			// A refresh that failed over a connection that lives leaves the list in
			// force until it is too old.
			next.listing, next.at = old.listing, old.at
		} else {
			next.listing = h.withoutList(h.masked(err))
		}
	}
	h.report(old, next, h.masked(err))
	h.put(next)
	h.flight = nil
}

// withoutList is a listing that says why there is none.
func (h *Host) withoutList(err error) chain.Listing {
	return chain.Listing{Host: h, FailOpen: h.failOpen, Err: fmt.Errorf("host %q: %w: %s", h.name, err, h.source.wayOut())}
}

// put makes s the state in force. The caller holds mu. The listing is published
// first: whoever sees the state takes what is published for what it tells of.
func (h *Host) put(s *state) {
	h.publish(s.listing)
	h.state.Store(s)
}

// overdue lets go of those who wait for a host that fails open. The attempt goes
// on, and no other is begun.
func (h *Host) overdue(f *flight) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.flight != f {
		return
	}
	old := h.state.Load()
	if old == nil || h.changed(old) || old.listing.Err == nil && !h.source.valid() {
		next := &state{at: time.Now(), changes: h.changes.Load(), next: time.Now().Add(attemptLimit), failed: true, listing: h.withoutList(errOverdue)}
		if old != nil {
			next.breaker = old.breaker
		}
		h.report(old, next, errOverdue)
		h.put(next)
	}
	close(f.overdue)
}

var errOverdue = errors.New("has not answered yet")

// keep asks the host again when it is time to, so that operations find a list,
// or a host that is up again, without waiting for it. It begins with the first
// discovery and ends with the host.
func (h *Host) keep(f *flight) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-f.done:
		case <-h.life.Done():
			return
		}
		for waiting := true; waiting; {
			timer.Reset(time.Until(h.due()))
			select {
			case <-timer.C:
				waiting = false
			case <-h.woken: // it may be earlier now
			case <-h.life.Done():
				return
			}
		}
		f = h.discover()
	}
}

// due is when the keeper asks again.
func (h *Host) due() time.Time {
	s := h.state.Load()
	switch {
	case s.listing.Err == nil && (h.changed(s) || !h.source.valid()):
		return time.Time{}
	case s.listing.Err == nil && !s.failed && h.doubted.Load():
		return s.at.Add(doubtGap)
	}
	return s.next
}

// doubt has the host asked soon: an invocation has shown that it may be gone, or
// that its list is not what it was.
func (h *Host) doubt() {
	h.doubted.Store(true)
	h.wake()
}

// wake has the keeper look when the host is due. It never blocks.
func (h *Host) wake() {
	select {
	case h.woken <- struct{}{}:
	default:
	}
}
