//go:build wasmtime

package wasmtime

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	wt "github.com/weir-mcp/weir/internal/wasmtest"
	"github.com/weir-mcp/weir/runtime"
	"github.com/weir-mcp/weir/runtime/memory"
)

var ctx = context.Background()

func newEngine(t testing.TB, o Options) *Engine {
	e, err := New(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close(ctx)) })
	return e
}

// adder exports "add", and "grow", which grows memory, and others.
func adder() []byte {
	m := &wt.Module{}
	m.Memory(1)
	m.ExportAs("global", 3, m.Global(7))
	m.Export("add", m.Func("ii:i", "", wt.Get(0), wt.Get(1), wt.I32Add))
	m.Export("wide", m.Func("I:I", "", wt.Get(0), wt.I64(1), wt.I64Add))
	m.Export("single", m.Func("f:f", "", wt.Get(0)))
	m.Export("double", m.Func("F:F", "", wt.Get(0)))
	m.Export("grow", m.Func("i:i", "", wt.Get(0), wt.MemoryGrow))
	m.Export("size", m.Func(":i", "", wt.MemorySize))
	m.Export("nothing", m.Func("", ""))
	m.Export("trap", m.Func("", "", wt.Unreachable))
	m.Export("deep", m.Func("", "", wt.Call(8)))
	return m.Bytes()
}

func compile(t testing.TB, e *Engine, wasm []byte) runtime.Code {
	code, err := e.Compile(ctx, wasm)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, code.Close(ctx)) })
	return code
}

func instantiate(t testing.TB, code runtime.Code, room runtime.Room) runtime.Instance {
	i, err := code.Instantiate(ctx, room)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, i.Close(ctx)) })
	return i
}

func do(t testing.TB, i runtime.Instance, export string, args ...uint64) uint64 {
	result, err := i.Call(ctx, export, args...)
	require.NoError(t, err)
	return result
}

// The version that the engine says it is, and that is in the names of cached
// code, is the one that is linked.
func TestVersion(t *testing.T) {
	mod, err := os.ReadFile("../../go.mod")
	require.NoError(t, err)
	require.Contains(t, string(mod), "github.com/bytecodealliance/wasmtime-go/v44 v"+version+"\n")
	require.Equal(t, "wasmtime "+version, newEngine(t, Options{}).Name())
}

// The way that works for package memory works here, too.
func TestReset(t *testing.T) {
	require.Equal(t, memory.Best(), newEngine(t, Options{}).Reset())
	for way := memory.Best(); way <= memory.Fresh; way++ {
		require.Equal(t, way, newEngine(t, Options{Reset: way}).Reset())
	}
}

func TestCallsAndFaults(t *testing.T) {
	i := instantiate(t, compile(t, newEngine(t, Options{}), adder()), runtime.Room{Pages: 1})
	require.Equal(t, uint64(42), do(t, i, "add", 40, 2))
	require.Equal(t, uint64(0xffffffff), do(t, i, "add", 0xffffffff, 0), "an i32 is zero-extended")
	require.Equal(t, uint64(1), do(t, i, "add", 0xffffffff, 2))
	require.Equal(t, uint64(0), do(t, i, "wide", 0xffffffffffffffff))
	require.Equal(t, uint64(0x7fc12345), do(t, i, "single", 0x7fc12345), "the bits of a NaN stay")
	require.Equal(t, uint64(0x7ff8123456789abc), do(t, i, "double", 0x7ff8123456789abc))
	require.Zero(t, do(t, i, "nothing"))
	_, err := i.Call(ctx, "missing")
	require.ErrorContains(t, err, "no such export: missing")
	_, err = i.Call(ctx, "memory")
	require.ErrorContains(t, err, "no such export: memory")
	_, err = i.Call(ctx, "add", 1)
	require.ErrorContains(t, err, "add has 2 parameters")
	require.Equal(t, uint64(0xffffffff), do(t, i, "grow", 1))

	for export, kind := range map[string]runtime.FaultKind{"trap": runtime.FaultTrap, "deep": runtime.FaultStack} {
		_, err := i.Call(ctx, export)
		var fault *runtime.Fault
		require.ErrorAs(t, err, &fault)
		require.Equal(t, kind, fault.Kind, export)
	}
}

func TestGlobals(t *testing.T) {
	i := instantiate(t, compile(t, newEngine(t, Options{}), adder()), runtime.Room{Pages: 1})
	g := i.Global("global")
	require.Equal(t, uint64(7), g.Get())
	g.Set(0xfffffffe)
	require.Equal(t, uint64(0xfffffffe), i.Global("global").Get())
	require.Nil(t, i.Global("missing"))
	require.Nil(t, i.Global("add"))
}

// What is refused to an instance, and by whom, does not depend on what the
// module declares.
func TestMemoryIsBounded(t *testing.T) {
	const page = 64 << 10
	code := compile(t, newEngine(t, Options{}), adder())
	account := memory.NewAccount(20 * page)
	i := instantiate(t, code, runtime.Room{Pages: 4, Account: account})
	require.Equal(t, int64(page), account.Used())
	require.Equal(t, uint64(0xffffffff), do(t, i, "grow", 4))
	require.Equal(t, uint64(1), do(t, i, "grow", 3))
	require.Equal(t, int64(4*page), account.Used(), "a call that ended is charged for what it has")

	// A guest gets up to half of what is left.
	other := instantiate(t, code, runtime.Room{Pages: 100, Account: account})
	require.Equal(t, uint64(0xffffffff), do(t, other, "grow", 8))
	require.Equal(t, uint64(1), do(t, other, "grow", 7))
	require.Equal(t, int64(12*page), account.Used())

	image, err := other.Capture()
	require.NoError(t, err)
	require.Equal(t, int64(20*page), account.Used())
	for _, image := range []runtime.Image{nil, image} {
		_, err = code.Instantiate(ctx, runtime.Room{Pages: 100, Account: account, Image: image})
		require.ErrorIs(t, err, memory.ErrNoRoom)
	}
	require.NoError(t, i.Close(ctx))
	require.NoError(t, other.Close(ctx))
	require.Equal(t, int64(8*page), account.Used())
	image.Free()
	require.Zero(t, account.Used())
}

func TestAnInstanceThatIsClosed(t *testing.T) {
	code := compile(t, newEngine(t, Options{}), adder())
	i := instantiate(t, code, runtime.Room{Pages: 1})
	require.NoError(t, i.Close(ctx))
	require.NoError(t, i.Close(ctx))
	_, err := i.Call(ctx, "nothing")
	require.ErrorIs(t, err, errClosed)
}

func TestManyAtOnce(t *testing.T) {
	e := newEngine(t, Options{})
	code := compile(t, e, adder())
	first := instantiate(t, code, runtime.Room{Pages: 2})
	image, err := first.Capture()
	require.NoError(t, err)
	defer image.Free()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				i, err := code.Instantiate(ctx, runtime.Room{Pages: 2, Image: image})
				if err != nil {
					t.Error(err)
					return
				}
				sum, err := i.Call(ctx, "add", 1, 2)
				if err != nil || sum != 3 || i.Restore() != nil || i.Close(ctx) != nil {
					t.Errorf("%d %v", sum, err)
				}
			}
		})
	}
	wg.Wait()
}

// What meter refuses is refused here, too, if it ever came here; what is invalid
// is an error.
func TestWhatIsNotCompiled(t *testing.T) {
	e := newEngine(t, Options{CacheDir: filepath.Join(t.TempDir(), "cache")})
	m := &wt.Module{}
	m.Memory(1)
	m.Func(":i", "") // leaves nothing on the stack
	header := "\x00asm\x01\x00\x00\x00"
	for name, wasm := range map[string][]byte{
		"invalid":          m.Bytes(),
		"no memory":        (&wt.Module{}).Bytes(),
		"text":             []byte("(module)"),
		"shared memory":    []byte(header + "\x05\x04\x01\x03\x01\x01"),
		"64-bit memory":    []byte(header + "\x05\x03\x01\x04\x01"),
		"two memories":     []byte(header + "\x05\x05\x02\x00\x01\x00\x01"),
		"a struct type":    []byte(header + "\x01\x03\x01\x5f\x00"),
		"an exception tag": []byte(header + "\x01\x04\x01\x60\x00\x00\x0d\x03\x01\x00\x00"),
		"a component":      []byte("\x00asm\x0d\x00\x01\x00"),
	} {
		_, err := e.Compile(ctx, wasm)
		require.Error(t, err, name)
	}
}

// entries are the files of a cache.
func entries(t *testing.T, dir string) []string {
	files, err := filepath.Glob(filepath.Join(dir, "*"+entryExt))
	require.NoError(t, err)
	return files
}

func TestDiskCache(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "by", "weir")
	use := func() (log string) {
		var b bytes.Buffer
		e := newEngine(t, Options{CacheDir: dir, Logger: slog.New(slog.NewTextHandler(&b, nil))})
		require.Equal(t, uint64(3), do(t, instantiate(t, compile(t, e, adder()), runtime.Room{Pages: 1}), "add", 1, 2))
		return b.String()
	}
	require.Empty(t, use())
	files := entries(t, dir)
	require.Len(t, files, 1)
	info, err := os.Stat(files[0])
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	entry, err := os.ReadFile(files[0])
	require.NoError(t, err)
	require.Empty(t, use(), "the second engine finds it")

	// Whatever happens to an entry, its code is not run, and it is replaced.
	elsewhere := filepath.Join(t.TempDir(), "other")
	_, err = newEngine(t, Options{CacheDir: elsewhere}).Compile(ctx, adder())
	require.NoError(t, err)
	foreign, err := os.ReadFile(entries(t, elsewhere)[0])
	require.NoError(t, err)
	for name, broken := range map[string][]byte{
		"empty": {}, "short": entry[:10], "cut": entry[:len(entry)/2], "longer": append(slices.Clone(entry), 0),
		"flipped":                      slices.Concat(entry[:len(entry)/2], []byte{entry[len(entry)/2] ^ 1}, entry[len(entry)/2+1:]),
		"of a folder with another key": foreign,
	} {
		require.NoError(t, os.WriteFile(files[0], broken, 0o600))
		require.Contains(t, use(), "is damaged, or of another folder", name)
		again, err := os.ReadFile(files[0])
		require.NoError(t, err)
		require.NotEqual(t, broken, again, name)
		require.Empty(t, use(), name)
	}

	// An entry of another module under this one's name is no better.
	c, err := openCache(dir, 0)
	require.NoError(t, err)
	require.NoError(t, c.put([]byte("another"), []byte("code")))
	moved, err := os.ReadFile(filepath.Join(dir, c.name([]byte("another"))))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(files[0], moved, 0o600))
	require.Contains(t, use(), "is damaged, or of another folder")
}

// What is authentic and still does not fit, as that of other settings, is
// compiled anew.
func TestWhatWasmtimeRefusesOfTheCache(t *testing.T) {
	var b bytes.Buffer
	e := newEngine(t, Options{CacheDir: filepath.Join(t.TempDir(), "cache"), Logger: slog.New(slog.NewTextHandler(&b, nil))})
	require.NoError(t, e.cache.put(adder(), []byte("not code")))
	require.Equal(t, uint64(3), do(t, instantiate(t, compile(t, e, adder()), runtime.Room{Pages: 1}), "add", 1, 2))
	require.Contains(t, b.String(), "an entry of the compile cache is not used")
	compiled, err := e.cache.get(adder())
	require.NoError(t, err)
	require.Greater(t, len(compiled), 100)
}

func TestCacheFoldersThatAreRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := New(Options{CacheDir: file})
	require.ErrorContains(t, err, "compile cache: ")

	open := t.TempDir()
	require.NoError(t, os.Chmod(open, 0o755))
	_, err = New(Options{CacheDir: open})
	require.ErrorContains(t, err, "chmod 700")

	badKey := filepath.Join(t.TempDir(), "cache")
	newEngine(t, Options{CacheDir: badKey})
	require.NoError(t, os.WriteFile(filepath.Join(badKey, keyFile), []byte("short"), 0o600))
	_, err = New(Options{CacheDir: badKey})
	require.ErrorContains(t, err, "does not hold a key of 32 bytes")

	_, err = New(Options{CacheDir: filepath.Join(t.TempDir(), "cache"), CacheBytes: -1})
	require.ErrorContains(t, err, "negative")
}

func TestTheCacheIsBounded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	c, err := openCache(dir, 1000)
	require.NoError(t, err)
	left := filepath.Join(dir, temporary+"left")
	require.NoError(t, os.WriteFile(left, nil, 0o600))
	long := time.Now().Add(-2 * abandoned)
	require.NoError(t, os.Chtimes(left, long, long))
	code := []byte(strings.Repeat("x", 300-32))
	put := func(name string, age time.Duration) {
		require.NoError(t, c.put([]byte(name), code))
		at := time.Now().Add(-age)
		require.NoError(t, os.Chtimes(filepath.Join(dir, c.name([]byte(name))), at, at))
	}
	put("a", 3*time.Hour)
	put("b", 2*time.Hour)
	put("c", time.Hour)
	got, err := c.get([]byte("a")) // which makes it the newest
	require.NoError(t, err)
	require.Equal(t, code, got)
	put("d", 0)
	require.Len(t, entries(t, dir), 3)
	got, err = c.get([]byte("b"))
	require.NoError(t, err)
	require.Nil(t, got, "b was used longest ago")
	require.NoFileExists(t, left)

	require.NoError(t, c.put([]byte("huge"), make([]byte, 2000)))
	require.Len(t, entries(t, dir), 3, "what does not fit is not kept")
}

// Engines that are made at once in one folder agree on a key.
func TestManyMakeTheKey(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	keys := make([][]byte, 8)
	var wg sync.WaitGroup
	for n := range keys {
		wg.Go(func() {
			c, err := openCache(dir, 0)
			if err != nil {
				t.Error(err)
				return
			}
			keys[n] = c.key
		})
	}
	wg.Wait()
	for _, key := range keys {
		require.Equal(t, keys[0], key)
	}
}

func BenchmarkInstantiate(b *testing.B) {
	code := compile(b, newEngine(b, Options{}), adder())
	for b.Loop() {
		i, err := code.Instantiate(ctx, runtime.Room{Pages: 1})
		if err != nil {
			b.Fatal(err)
		}
		_ = i.Close(ctx)
	}
}

func BenchmarkEmptyCall(b *testing.B) {
	i := instantiate(b, compile(b, newEngine(b, Options{}), adder()), runtime.Room{Pages: 1})
	for b.Loop() {
		if _, err := i.Call(ctx, "nothing"); err != nil {
			b.Fatal(err)
		}
	}
}
