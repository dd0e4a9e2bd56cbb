package runtime

import (
	"context"
	"crypto/sha256"
	"sync"
)

// Compiling takes up to some 640 times a function body's size in memory, and
// more where its structure is bad, so each compilation is charged for the body
// that costs most (meter.Rewritten.CompileMemory) and all at once stay within a
// budget (abi.md "Load"). One that alone passes the budget runs alone.
const (
	compileBudget    = 768 << 20
	compileChargeMin = 1 << 20
)

// compile compiles the bytes, within the budget of all compilations, and once
// for equal bytes: who comes second finds the engine's cache filled.
func (r *Runtime) compile(ctx context.Context, wasm []byte, charge int64) (Code, error) {
	unlock, err := r.flights.lock(ctx, sha256.Sum256(wasm))
	if err != nil {
		return nil, err
	}
	defer unlock()
	charge = min(compileBudget, max(compileChargeMin, charge))
	if err := r.budget.Acquire(ctx, charge); err != nil {
		return nil, err
	}
	defer r.budget.Release(charge)
	return compileGuarded(ctx, r.engine, wasm)
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
