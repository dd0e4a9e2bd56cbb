//go:build wasmtime

package wasmtime

import (
	"regexp"
	goruntime "runtime"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	wt "github.com/weir-mcp/weir/internal/wasmtest"
	"github.com/weir-mcp/weir/runtime"
)

func doing(op []byte) []byte {
	m := &wt.Module{}
	m.Memory(1)
	m.Export("do", m.Func("ii:i", "", wt.Get(0), wt.Get(1), op))
	return m.Bytes()
}

func toKeep(t *testing.T, e *Engine, wasm []byte) (runtime.Code, []byte) {
	code, kept, err := e.CompileToKeep(ctx, wasm)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, code.Close(ctx)) })
	return code, kept
}

func fromKept(t *testing.T, e *Engine, wasm, kept []byte) runtime.Code {
	code, err := e.CompileKept(ctx, wasm, kept)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, code.Close(ctx)) })
	return code
}

func result(t *testing.T, code runtime.Code) uint64 {
	return do(t, instantiate(t, code, runtime.Room{Pages: 1}), "do", 40, 2)
}

// What is kept is what runs, in another engine too. That it is not compiled anew
// shows when it is exchanged for another module's, which is why what is kept
// must be authentic.
func TestKeptCodeRuns(t *testing.T) {
	add, sub := doing(wt.I32Add), doing(wt.I32Sub)
	first := newEngine(t, Options{})
	code, keptAdd := toKeep(t, first, add)
	require.Equal(t, uint64(42), result(t, code))
	code, keptSub := toKeep(t, first, sub)
	require.Equal(t, uint64(38), result(t, code))
	for _, e := range []*Engine{first, newEngine(t, Options{})} {
		require.Equal(t, first.CodeKey(), e.CodeKey())
		own := slices.Clone(keptAdd)
		code := fromKept(t, e, add, own)
		clear(own) // which is the caller's again
		require.Equal(t, uint64(42), result(t, code))
		require.Equal(t, uint64(38), result(t, fromKept(t, e, add, keptSub)))
	}
	_, again := toKeep(t, newEngine(t, Options{}), add)
	require.Equal(t, keptAdd, again, "the same code each time")
}

func TestCodeKey(t *testing.T) {
	key := newEngine(t, Options{}).CodeKey()
	require.Regexp(t, "^wasmtime "+regexp.QuoteMeta(version)+" "+goruntime.GOOS+"/"+goruntime.GOARCH+" cpu [0-9a-f]{16}$", key)
	require.Equal(t, key, newEngine(t, Options{}).CodeKey())
}

// What is authentic and still does not fit is an error, and compiled anew by the
// runtime: the wasmtime that made it is in what was kept.
func TestWhatWasmtimeRefusesOfWhatWasKept(t *testing.T) {
	e := newEngine(t, Options{})
	_, kept := toKeep(t, e, doing(wt.I32Add))
	for name, b := range map[string][]byte{
		"of another processor":            changed(t, kept, `[a-z0-9_]+-unknown-linux`, "yyyyyyyyyyyyyyyyyyyyyyyyyyy"),
		"of a processor that can do more": changed(t, kept, `has_[a-z0-9]+`, "has_yyyyyyyyyyyy"),
		"of another version":              changed(t, kept, `\x0244`, "\x0245"),
		"nothing":                         nil, "no code": []byte("no code"), "a module": doing(wt.I32Add), "cut off": kept[:100],
	} {
		_, err := e.CompileKept(ctx, doing(wt.I32Add), b)
		require.Error(t, err, name)
	}
}

// changed is what was kept with the first match exchanged for as much of the
// other.
func changed(t *testing.T, kept []byte, match, other string) []byte {
	t.Helper()
	at := regexp.MustCompile(match).FindIndex(kept)
	require.NotNil(t, at, "wasmtime writes it otherwise now")
	b := slices.Clone(kept)
	copy(b[at[0]:at[1]], other)
	return b
}

func TestManyKeepAtOnce(t *testing.T) {
	e := newEngine(t, Options{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 10 {
				made, kept, err := e.CompileToKeep(ctx, doing(wt.I32Add))
				if err != nil {
					t.Error(err)
					return
				}
				again, err := e.CompileKept(ctx, nil, kept)
				if err != nil {
					t.Error(err)
					return
				}
				for _, code := range []runtime.Code{made, again} {
					i, err := code.Instantiate(ctx, runtime.Room{Pages: 1})
					if err != nil {
						t.Error(err)
						return
					}
					if got, err := i.Call(ctx, "do", 40, 2); err != nil || got != 42 {
						t.Errorf("%d %v", got, err)
					}
					_ = i.Close(ctx)
					_ = code.Close(ctx)
				}
			}
		})
	}
	wg.Wait()
}
