package hosts

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/chain"
	"github.com/weir-mcp/weir/internal/wire"
)

// Options are what all kinds of hosts have in common.
type Options struct {
	// FailOpen lets operations go on while the host cannot be listed.
	FailOpen bool
	// Envelope sends the payload of a request as {"method":…,"params":…} and
	// unwraps what comes back (protocol.md §3). A set in this process always
	// gets bare payloads.
	Envelope bool
	// Version is what weir calls itself towards MCP peers, beside its name: the
	// version of the build. Empty is "(devel)".
	Version string
	// Logger gets what operators should know; nil is slog.Default.
	Logger *slog.Logger
	// Mask rewrites the text of an error before anyone sees it: those of the
	// system quote addresses and arguments, secrets in them included. It may be
	// nil.
	Mask func(string) string
}

// Host is one configured host of interceptors. It does nothing until it is
// asked to; Invoke connects when need be.
type Host struct {
	name     string
	failOpen bool
	log      *slog.Logger
	mask     func(string) string
	version  string        // what weir calls itself
	grace    time.Duration // for a peer to leave in
	source   source

	// Of discovery. The flight runs under life, not under its callers.
	life    context.Context
	end     context.CancelFunc
	fresh   time.Duration
	publish func(chain.Listing)
	running sync.WaitGroup
	dirty   atomic.Bool // the source says that its list changed
	state   atomic.Pointer[state]

	mu       sync.Mutex // of flight, failures and closed
	flight   *flight
	failures int
	closed   bool
}

var _ chain.PromptHost = (*Host)(nil)

// source is one kind of host.
type source interface {
	// list fetches everything that is offered, connecting when need be.
	list(ctx context.Context) (offer, error)
	invoke(ctx context.Context, inv abi.Invocation) (abi.Result, error)
	// valid reports whether what list returned last may still be used.
	valid() bool
	close(ctx context.Context) error
}

// offer is what a source lists.
type offer struct {
	interceptors []abi.Descriptor
	skipped      []abi.Skipped
}

// state is the outcome of the last discovery.
type state struct {
	listing chain.Listing
	at      time.Time
	// retry is when a failed discovery may be tried again.
	retry time.Time
}

// flight is a discovery in progress.
type flight struct{ done chan struct{} }

func newHost(name string, o Options) *Host {
	h := &Host{name: name, failOpen: o.FailOpen, mask: o.Mask, version: cmp.Or(o.Version, "(devel)"),
		grace: closeGrace, fresh: DefaultFresh, publish: func(chain.Listing) {}}
	h.log = o.Logger
	if h.log == nil {
		h.log = slog.Default()
	}
	h.log = h.log.With("host", name)
	h.life, h.end = context.WithCancel(context.Background())
	return h
}

// Name is the configured name.
func (h *Host) Name() string { return h.name }

// ReturnsPromptly promises what [chain.PromptHost] asks for: an interceptor of
// another process is left to itself, and a set in this process returns when the
// context ends.
func (h *Host) ReturnsPromptly() {}

// Invoke runs one interceptor once and never retries. The error is an
// [*abi.Error].
func (h *Host) Invoke(ctx context.Context, inv abi.Invocation) (abi.Result, error) {
	r, err := h.source.invoke(ctx, inv)
	if err != nil {
		e := *abi.AsError(err, inv.Name, inv.Phase)
		e.Cause = h.masked(e.Cause)
		return abi.Result{}, &e
	}
	return r, nil
}

// maskedError is an error whose text has been rewritten.
type maskedError struct {
	text string
	err  error
}

func (e maskedError) Error() string { return e.text }
func (e maskedError) Unwrap() error { return e.err }

func (h *Host) masked(err error) error {
	if err == nil || h.mask == nil {
		return err
	}
	return maskedError{h.mask(err.Error()), err}
}

// How long the pauses between attempts to reach a host are, and how long one
// attempt may take.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
	attemptLimit = 20 * time.Second
)

// need says what a listing takes: nothing, a refresh in the background, or to
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
	case s == nil || h.dirty.Load():
		return wait
	case s.listing.Err != nil:
		switch {
		case now.Before(s.retry):
			return nothing
		case h.failOpen:
			// Operations go on without it anyhow: one that swallows packets must
			// not eat up their deadline each time it is tried.
			return refresh
		}
		return wait
	case !h.source.valid():
		return wait
	}
	switch age := now.Sub(s.at); {
	case age < h.fresh:
		return nothing
	case age < 2*h.fresh:
		return refresh
	default:
		return wait
	}
}

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
	h.flight = f
	h.running.Go(func() { h.fly(f) })
	return f
}

func (h *Host) fly(f *flight) {
	ctx, cancel := context.WithTimeout(h.life, attemptLimit)
	defer cancel()
	h.dirty.Store(false) // before the list is read: a change meanwhile counts
	found, err := h.source.list(ctx)
	err = h.masked(err)
	now := time.Now()
	old := h.state.Load()
	next := &state{at: now, listing: chain.Listing{Host: h, FailOpen: h.failOpen,
		Interceptors: found.interceptors, Skipped: found.skipped}}

	h.mu.Lock()
	if err == nil {
		h.failures = 0
	} else {
		pause := min(firstPause<<min(h.failures, 10), longestPause)
		h.failures++
		next.retry = now.Add(pause)
		next.listing = chain.Listing{Host: h, FailOpen: h.failOpen, Err: fmt.Errorf("host %q: %w", h.name, err)}
		// A refresh that failed over a connection that lives leaves the list in
		// force until it is too old.
		if old != nil && old.listing.Err == nil && h.source.valid() && now.Sub(old.at) < 2*h.fresh {
			next = old
		}
	}
	h.report(old, next, err)
	h.state.Store(next)
	h.publish(next.listing)
	h.flight = nil
	h.mu.Unlock()
	close(f.done)
}

// report logs what changed, once.
func (h *Host) report(old, next *state, err error) {
	switch {
	case err != nil && h.life.Err() != nil: // closing
	case err != nil && (old == nil || old.listing.Err == nil || old.listing.Err.Error() != errText(next.listing.Err)):
		h.log.Warn("the host cannot be listed; what it may guard is blocked until it answers, unless it fails open", "error", err)
	case err == nil && old != nil && old.listing.Err != nil:
		h.log.Info("the host answers again", "interceptors", len(next.listing.Interceptors))
	}
	if err != nil {
		return
	}
	var before []abi.Skipped
	if old != nil {
		before = old.listing.Skipped
	}
	for i, s := range next.listing.Skipped {
		if i < len(before) && sameSkip(before[i], s) {
			continue
		}
		h.log.Warn("an interceptor was skipped: its descriptor cannot be used",
			"interceptor", clip(s.Name), "index", s.Index, "error", clip(s.Err.Error()), "skipped", len(next.listing.Skipped))
		if i+1 == maxSkipLines {
			return
		}
	}
}

// maxSkipLines bounds what one list can write into the log.
const maxSkipLines = 20

func sameSkip(a, b abi.Skipped) bool {
	return a.Name == b.Name && a.Index == b.Index && a.Err.Error() == b.Err.Error()
}

// clip bounds a stranger's words in the log.
func clip(s string) string { return wire.Clip(s, 1<<10) }

func (h *Host) close(ctx context.Context) error {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.end()
	err := h.source.close(ctx)
	h.running.Wait()
	return err
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
