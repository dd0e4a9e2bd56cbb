package runtime

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/weir-mcp/weir/runtime/meter"
)

// Cache keeps byte strings, such as package cache does. What Get returns must be
// exactly what was put under the key by someone whom the process trusts with
// itself: some of it is machine code. Neither reports errors: whatever is wrong
// with a cache, one does without. It is safe for concurrent use.
type Cache interface {
	Get(key [32]byte) (parts [][]byte, ok bool)
	Put(key [32]byte, parts ...[]byte)
}

// WithCache has what loading a module makes, the metered binary and the engine's
// code, kept for the next process. It has no effect on an engine that is no
// [Keeper]. Every module is parsed and checked at each load all the same.
func WithCache(c Cache) Option {
	return func(r *Runtime) { r.cache = c }
}

// keptVersion is that of what is under a key: of the parts, and of what the
// runtime does to a module besides package meter (bounded).
const keptVersion = 1

// The parts of a cache entry.
const (
	partFacts  = iota // meter.Rewritten without its Binary, as JSON
	partBinary        // Rewritten.Binary
	partCode          // what the engine keeps
	parts
)

// codeKey is the digest of all that the code of a module depends on. Time and
// the like are not among the limits: they do not change code.
func (r *Runtime) codeKey(digest [sha256.Size]byte, limits Limits) [sha256.Size]byte {
	engine := ""
	if r.keeper != nil {
		engine = guarded("", r.keeper.CodeKey)
	}
	return codeKey(meter.Version, engine, digest, rewriteOptions(limits))
}

func codeKey(meterVersion int, engine string, digest [sha256.Size]byte, o meter.Options) [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "weir %d meter %d engine %q module %x options %+v", keptVersion, meterVersion, engine, digest, o))
}

// kept takes a module from the cache; code is nil when it cannot.
func (r *Runtime) kept(ctx context.Context, key [sha256.Size]byte) (*meter.Rewritten, Code) {
	if r.keeper == nil {
		return nil, nil
	}
	entry, ok := r.cache.Get(key)
	if !ok || len(entry) != parts {
		return nil, nil
	}
	rewritten := &meter.Rewritten{}
	if json.Unmarshal(entry[partFacts], rewritten) != nil {
		return nil, nil
	}
	rewritten.Binary = entry[partBinary]
	code, err := r.compile(ctx, rewritten.CompileMemory, func() {}, func() (Code, error) {
		return r.keeper.CompileKept(ctx, rewritten.Binary, entry[partCode])
	})
	if err != nil {
		return nil, nil // what is wrong shows when it is compiled anew
	}
	return rewritten, code
}

// keep puts a module into the cache.
func (r *Runtime) keep(key [sha256.Size]byte, rewritten *meter.Rewritten, code []byte) {
	facts := *rewritten
	facts.Binary = nil
	encoded, err := json.Marshal(facts)
	if err != nil {
		return // numbers and names only: it does not fail
	}
	r.cache.Put(key, encoded, rewritten.Binary, code)
}
