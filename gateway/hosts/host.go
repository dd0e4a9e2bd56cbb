package hosts

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/chain"
)

// Options are what all kinds of hosts have in common.
type Options struct {
	// FailOpen lets operations go on while the host cannot be listed.
	FailOpen bool
	// Envelope sends the payload of a request as {"method":…,"params":…} and
	// unwraps what comes back (protocol.md §3). A set in this process always
	// gets bare payloads.
	Envelope bool
	// Request sends the payload of the request along with an invocation on its
	// response, in "_meta" under [abi.MetaRequest], bare whatever Envelope says;
	// it is left out where both together have more than 4 MiB. A set in this
	// process always has it.
	Request bool
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

	// Of discovery. The flight and the keeper run under life, not under those who
	// wait for them.
	life    context.Context
	end     context.CancelFunc
	fresh   time.Duration
	publish func(chain.Listing)
	running sync.WaitGroup
	woken   chan struct{} // for the keeper
	changes atomic.Uint64 // that the source has told of
	doubted atomic.Bool
	state   atomic.Pointer[state]

	mu     sync.Mutex // of what follows, and of changes to state
	flight *flight
	kept   bool // the keeper runs
	closed bool
	warned warned
	// For the status.
	attempts, failures uint64
	lastError          error
	lastErrorAt        time.Time
}

var _ chain.PromptHost = (*Host)(nil)

// source is one kind of host.
type source interface {
	// list fetches everything that is offered, connecting when need be.
	list(ctx context.Context) (offer, error)
	invoke(ctx context.Context, inv abi.Invocation) (abi.Result, error)
	// valid reports whether what list returned last may still be used.
	valid() bool
	// wayOut says what an operator can do when it cannot be listed.
	wayOut() string
	close(ctx context.Context) error
}

func newHost(name string, o Options) *Host {
	h := &Host{name: name, failOpen: o.FailOpen, mask: o.Mask, version: cmp.Or(o.Version, "(devel)"),
		grace: closeGrace, fresh: DefaultFresh, publish: func(chain.Listing) {}, woken: make(chan struct{}, 1)}
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

func (h *Host) close(ctx context.Context) error {
	h.mu.Lock()
	h.closed = true
	h.end()
	h.mu.Unlock()
	err := h.source.close(ctx)
	h.running.Wait()
	return err
}
