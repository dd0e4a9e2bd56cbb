//go:build wasmtime

package wasmtime

import (
	"context"
	"os"
	"sync"
	"testing"

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

// The version that the engine says it is, and that kept code goes under, is the
// one that is linked.
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
	e := newEngine(t, Options{})
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
		_, kept, err := e.CompileToKeep(ctx, wasm)
		require.Error(t, err, name)
		require.Nil(t, kept, name)
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
