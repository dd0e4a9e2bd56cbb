package runtime

import (
	"context"
	"crypto/sha256"
	"errors"
	"maps"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	wt "github.com/weir-mcp/weir/internal/wasmtest"
	"github.com/weir-mcp/weir/runtime/memory"
	"github.com/weir-mcp/weir/runtime/meter"
)

// memoryCache is a cache in memory.
type memoryCache struct {
	mu      sync.Mutex
	entries map[[32]byte][][]byte
}

func (c *memoryCache) Get(key [32]byte) ([][]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	parts, ok := c.entries[key]
	return parts, ok
}

func (c *memoryCache) Put(key [32]byte, parts ...[]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil {
		c.entries = map[[32]byte][][]byte{}
	}
	c.entries[key] = parts
}

// keepingEngine counts what it compiles anew and what it takes from what was
// kept.
type keepingEngine struct {
	key                   string
	plain, compiled, kept int
	nothing               bool // keeps nothing
	broken                error
}

type keptCode struct{ Code }

func (*keepingEngine) Name() string                { return "keeping" }
func (*keepingEngine) Close(context.Context) error { return nil }
func (*keepingEngine) Reset() memory.Way           { return memory.Fresh }
func (e *keepingEngine) CodeKey() string           { return e.key }

func (e *keepingEngine) Compile(context.Context, []byte) (Code, error) {
	e.plain++
	return keptCode{}, nil
}

func (e *keepingEngine) CompileToKeep(_ context.Context, wasm []byte) (Code, []byte, error) {
	e.compiled++
	if e.nothing {
		return keptCode{}, nil, nil
	}
	return keptCode{}, append([]byte("code of "), wasm...), nil
}

func (e *keepingEngine) CompileKept(_ context.Context, wasm, kept []byte) (Code, error) {
	if e.broken != nil {
		return nil, e.broken
	}
	if string(kept) != "code of "+string(wasm) {
		panic("not what was kept")
	}
	e.kept++
	return keptCode{}, nil
}

func prepareWith(t *testing.T, e Engine, c Cache, limits Limits) *meter.Rewritten {
	t.Helper()
	module := wt.NewReactor(wt.Validator("guard"))
	module.Global(5)
	module.Table(1)
	module.Invoke("", module.Answer(`{}`))
	wasm := module.Bytes()
	m, err := meter.Parse(wasm)
	require.NoError(t, err)
	rewritten, code, err := New(e, WithCache(c)).prepare(t.Context(), m, sha256.Sum256(wasm), limits)
	require.NoError(t, err)
	require.NotNil(t, code)
	return rewritten
}

func TestWhatIsKeptIsNotMadeAgain(t *testing.T) {
	e, c := &keepingEngine{key: "e"}, &memoryCache{}
	fresh := prepareWith(t, e, c, DefaultLimits())
	require.Len(t, c.entries, 1)
	for range 3 {
		require.Equal(t, fresh, prepareWith(t, e, c, DefaultLimits()))
	}
	require.Equal(t, keepingEngine{key: "e", compiled: 1, kept: 3}, *e)
}

func TestWhatCannotBeKept(t *testing.T) {
	c := &memoryCache{}
	prepareWith(t, &keepingEngine{key: "e", nothing: true}, c, DefaultLimits())
	unnamed := &keepingEngine{}
	prepareWith(t, unnamed, c, DefaultLimits())
	require.Equal(t, 1, unnamed.plain, "an engine whose code has no name")
	uncached := &keepingEngine{key: "e"}
	prepareWith(t, uncached, nil, DefaultLimits())
	require.Equal(t, 1, uncached.plain, "no cache")
	require.Empty(t, c.entries)
}

// An entry that is of no use costs a compilation, and is replaced.
func TestEntriesOfNoUse(t *testing.T) {
	for name, spoil := range map[string]func(e *keepingEngine, parts [][]byte) [][]byte{
		"too few parts":     func(_ *keepingEngine, parts [][]byte) [][]byte { return parts[:2] },
		"facts are no JSON": func(_ *keepingEngine, parts [][]byte) [][]byte { return [][]byte{[]byte("{"), parts[1], parts[2]} },
		"a panic":           func(_ *keepingEngine, parts [][]byte) [][]byte { return [][]byte{parts[0], parts[1], nil} },
		"an error": func(e *keepingEngine, parts [][]byte) [][]byte {
			e.broken = errors.New("broken")
			return parts
		},
	} {
		t.Run(name, func(t *testing.T) {
			e, c := &keepingEngine{key: "e"}, &memoryCache{}
			fresh := prepareWith(t, e, c, DefaultLimits())
			right := maps.Clone(c.entries)
			for key, parts := range right {
				c.entries[key] = spoil(e, parts)
			}
			require.Equal(t, fresh, prepareWith(t, e, c, DefaultLimits()))
			require.Equal(t, 2, e.compiled)
			require.Equal(t, right, c.entries)
		})
	}
}

// What changes code, and nothing else, is another entry.
func TestCodeKeys(t *testing.T) {
	limits := DefaultLimits()
	digest := sha256.Sum256([]byte("module"))
	key := codeKey(meter.Version, "engine 1", digest, rewriteOptions(limits))
	changed := func(change func(l *Limits)) meter.Options {
		l := limits
		change(&l)
		return rewriteOptions(l)
	}
	other := rewriteOptions(limits)
	other.ResetRoom = false
	for name, misses := range map[string][32]byte{
		"meter":   codeKey(meter.Version+1, "engine 1", digest, rewriteOptions(limits)),
		"engine":  codeKey(meter.Version, "engine 2", digest, rewriteOptions(limits)),
		"module":  codeKey(meter.Version, "engine 1", sha256.Sum256(nil), rewriteOptions(limits)),
		"memory":  codeKey(meter.Version, "engine 1", digest, changed(func(l *Limits) { l.Memory += pageBytes })),
		"tables":  codeKey(meter.Version, "engine 1", digest, changed(func(l *Limits) { l.TableElements++ })),
		"options": codeKey(meter.Version, "engine 1", digest, other),
	} {
		require.NotEqual(t, key, misses, name)
	}
	require.Equal(t, key, codeKey(meter.Version, "engine 1", digest, changed(func(l *Limits) { l.CallTime, l.Fuel, l.Calls = 1, 1, 1 })))

	e, c := &keepingEngine{key: "e"}, &memoryCache{}
	prepareWith(t, e, c, limits)
	limits.Memory *= 2
	prepareWith(t, e, c, limits)
	e.key = "another"
	prepareWith(t, e, c, limits)
	require.Equal(t, 3, e.compiled)
	require.Len(t, c.entries, 3)
}
