package runtime

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Runtime loads modules and runs them on one engine. It is safe for concurrent
// use.
type Runtime struct {
	engine Engine
	logger *slog.Logger

	budget  *semaphore.Weighted // bytes that compilations may take
	flights keyedLocks          // one compilation of the same bytes at a time

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

// New returns a runtime that runs modules on the engine and owns it:
// [Runtime.Close] closes both.
func New(engine Engine, options ...Option) *Runtime {
	r := &Runtime{
		engine:  engine,
		logger:  slog.Default(),
		budget:  semaphore.NewWeighted(compileBudget),
		modules: map[*Module]struct{}{},
	}
	for _, option := range options {
		option(r)
	}
	return r
}

// Engine names the engine, for people: what it is and how it runs code.
func (r *Runtime) Engine() string { return r.engine.Name() }

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

// Close closes every module, waiting for their running calls and for loads in
// progress, and then the engine. When ctx ends first, it returns the context's
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

	r.mu.Lock()
	modules := make([]*Module, 0, len(r.modules))
	for m := range r.modules {
		modules = append(modules, m)
	}
	r.mu.Unlock()
	var failed error
	for _, m := range modules {
		failed = errors.Join(failed, m.Close(ctx))
	}
	if failed != nil {
		return failed
	}
	return r.engine.Close(ctx)
}
