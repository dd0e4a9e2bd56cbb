package runtime

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"github.com/weir-mcp/weir/runtime/meter"
)

// Compiling takes up to some 640 times a function body's size in memory, and
// more where its structure is bad, so each compilation is charged for the body
// that costs most (meter.Rewritten.CompileMemory) and all at once stay within a
// budget (abi.md "Load"). One that alone passes the budget runs alone.
const (
	compileBudget    = 768 << 20
	compileChargeMin = 1 << 20
)

// compile has the engine compile something, within the budget of all
// compilations. began is called when its turn has come.
func (r *Runtime) compile(ctx context.Context, charge int64, began func(), compile func() (Code, error)) (Code, error) {
	charge = min(compileBudget, max(compileChargeMin, charge))
	if err := r.budget.Acquire(ctx, charge); err != nil {
		return nil, err
	}
	defer r.budget.Release(charge)
	began()
	return compileGuarded(compile)
}

// made is what prepare makes of a module.
type made struct {
	rewritten *meter.Rewritten
	code      Code
	err       error
}

// prepare makes code of a module that has been accepted. An engine that compiles
// cannot be stopped: when the time for it is up, or ctx ends, it is left behind,
// holding its part of the budget until it is done, and what it brings is thrown
// away, but for what goes into the cache.
func (r *Runtime) prepare(ctx context.Context, m *meter.Module, digest [sha256.Size]byte, limits Limits) (*meter.Rewritten, Code, error) {
	began, done, left := make(chan struct{}), make(chan made), make(chan struct{})
	r.loading.Add(1) // whoever closes waits for what is left behind, too
	go func() {
		defer r.loading.Done()
		result := r.make(ctx, m, digest, limits, func() { close(began) })
		select {
		case done <- result:
		case <-left:
			if result.code != nil {
				_ = closeGuarded(result.code)
			}
		}
	}()
	select {
	case result := <-done:
		return result.rewritten, result.code, result.err
	case <-began: // and nothing reads the file any more
	}
	late := time.NewTimer(limits.CompileTime)
	defer late.Stop()
	select {
	case result := <-done:
		return result.rewritten, result.code, result.err
	case <-late.C:
		close(left)
		return nil, nil, fmt.Errorf("compiling did not end within %v, the limit for it; what becomes of it is in the cache, where there is one, for the next attempt", limits.CompileTime)
	case <-ctx.Done():
		close(left)
		return nil, nil, ctx.Err()
	}
}

// make takes a module from the cache, or rewrites and compiles it. It does so
// once at a time for the same file under the same limits: who comes second finds
// the cache filled, the engine's in memory or the one on disk. began is called
// when there is nothing left to do but to compile.
func (r *Runtime) make(ctx context.Context, m *meter.Module, digest [sha256.Size]byte, limits Limits, began func()) made {
	key := r.codeKey(digest, limits)
	unlock, err := r.flights.lock(ctx, key)
	if err != nil {
		return made{err: err}
	}
	defer unlock()
	if rewritten, code := r.kept(ctx, key); code != nil {
		return made{rewritten, code, nil}
	}
	rewritten, err := rewrite(m, limits)
	if err != nil {
		return made{err: err}
	}
	var keep []byte
	code, err := r.compile(ctx, rewritten.CompileMemory, began, func() (code Code, err error) {
		if r.keeper == nil {
			return r.engine.Compile(ctx, rewritten.Binary)
		}
		code, keep, err = r.keeper.CompileToKeep(ctx, rewritten.Binary)
		return code, err
	})
	if err != nil {
		return made{err: fmt.Errorf("the engine refused the module: %w", bounding(err))}
	}
	if keep != nil {
		r.keep(key, rewritten, keep)
	}
	return made{rewritten, code, nil}
}

// keyedLocks is one lock for each digest in use.
type keyedLocks struct {
	mu    sync.Mutex
	locks map[[sha256.Size]byte]*keyedLock
}

type keyedLock struct {
	held  chan struct{} // holds one token while locked
	users int
}

// lock locks the key; it fails only when ctx ends.
func (k *keyedLocks) lock(ctx context.Context, key [sha256.Size]byte) (unlock func(), err error) {
	k.mu.Lock()
	l := k.locks[key]
	if l == nil {
		if k.locks == nil {
			k.locks = map[[sha256.Size]byte]*keyedLock{}
		}
		l = &keyedLock{held: make(chan struct{}, 1)}
		k.locks[key] = l
	}
	l.users++
	k.mu.Unlock()

	leave := func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if l.users--; l.users == 0 {
			delete(k.locks, key)
		}
	}
	select {
	case l.held <- struct{}{}:
		return func() { <-l.held; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}
