package runtime

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	goruntime "runtime"
	"slices"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/weir-mcp/weir/runtime/memory"
)

// Runtime loads modules and runs them on one engine. It is safe for concurrent
// use.
type Runtime struct {
	engine Engine
	logger *slog.Logger

	account  *memory.Account     // of all instances and snapshots
	warmups  chan struct{}       // holds one token for each warm-up that runs
	renewals chan struct{}       // holds a token while a module's state is captured again
	budget   *semaphore.Weighted // bytes that compilations may take
	flights  keyedLocks          // one compilation of the same file at a time
	cache    Cache               // nil: nothing is kept on disk
	keeper   Keeper              // nil: no cache, or nothing to keep

	mu      sync.Mutex
	closed  bool
	loading sync.WaitGroup
	modules map[*Module]struct{}
}

// Option configures a [Runtime].
type Option func(*Runtime)

// WithLogger sets where guests log to unless [ModuleOptions] says otherwise.
// Without it, or with nil, they log to [slog.Default].
func WithLogger(logger *slog.Logger) Option {
	return func(r *Runtime) { r.logger = cmp.Or(logger, r.logger) }
}

// DefaultMemory is what [WithMemory] sets unless it is used: 2 GiB.
const DefaultMemory = 2 << 30

// WithMemory bounds the linear memory that all instances and snapshots of all
// modules may have together, and the stacks of the calls that run, in bytes; 0
// or less means DefaultMemory. It counts what guests have, whether they have
// touched it or share it with others, so that the process never takes more. When it is used up, instances that wait
// for calls are closed; after that, a call that would need another instance
// fails as busy, a guest that grows is given -1, and a load is refused.
func WithMemory(bytes int64) Option {
	return func(r *Runtime) {
		if bytes > 0 {
			r.account = memory.NewAccount(bytes)
		}
	}
}

// New returns a runtime that runs modules on the engine and owns it:
// [Runtime.Close] closes both.
func New(engine Engine, options ...Option) *Runtime {
	r := &Runtime{
		engine:   engine,
		logger:   slog.Default(),
		account:  memory.NewAccount(DefaultMemory),
		warmups:  make(chan struct{}, goruntime.GOMAXPROCS(0)),
		renewals: make(chan struct{}, 1),
		budget:   semaphore.NewWeighted(compileBudget),
		modules:  map[*Module]struct{}{},
	}
	for _, option := range options {
		option(r)
	}
	if k, ok := engine.(Keeper); ok && r.cache != nil && guarded("", k.CodeKey) != "" {
		r.keeper = k
	}
	r.account.OnShortage(r.closeIdle)
	return r
}

// Memory is how much memory the instances, snapshots and running calls of all
// modules have, and how much they may have, in bytes.
func (r *Runtime) Memory() (used, limit int64) { return r.account.Used(), r.account.Limit() }

// closeIdle closes all instances that wait for a call.
func (r *Runtime) closeIdle() {
	for _, m := range r.all() {
		m.guests.drain()
	}
}

func (r *Runtime) all() []*Module {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.modules))
}

// Engine names the engine, for people: what it is and how it runs code.
func (r *Runtime) Engine() string {
	return guarded("an engine that panics when it is asked for its name", r.engine.Name)
}

// ErrClosed is what [Runtime.Load] returns after [Runtime.Close].
var ErrClosed = errors.New("the runtime is closed")

// begin registers a load, unless the runtime is closed.
func (r *Runtime) begin() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return ErrClosed
	}
	r.loading.Add(1)
	return nil
}

func (r *Runtime) adopt(m *Module) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.modules[m] = struct{}{}
}

func (r *Runtime) forget(m *Module) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.modules, m)
}

// Close closes every module, waiting for their running calls and for loads and
// compilations in progress, and then the engine. When ctx ends first, it returns the context's
// error with the engine still open, and may be called again.
func (r *Runtime) Close(ctx context.Context) error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()

	loaded := make(chan struct{})
	go func() {
		r.loading.Wait()
		close(loaded)
	}()
	select {
	case <-loaded:
	case <-ctx.Done():
		return ctx.Err()
	}

	var failed error
	for _, m := range r.all() {
		failed = errors.Join(failed, m.Close(ctx))
	}
	if failed != nil {
		return failed
	}
	return closeEngineGuarded(ctx, r.engine)
}
