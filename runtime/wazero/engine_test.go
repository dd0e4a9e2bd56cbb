package wazero

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	wt "github.com/weir-mcp/weir/internal/wasmtest"
	"github.com/weir-mcp/weir/runtime"
	"github.com/weir-mcp/weir/runtime/memory"
)

var ctx = context.Background()

func newEngine(t *testing.T, o Options) *Engine {
	e, err := New(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close(ctx)) })
	return e
}

// adder exports "add", and "grow", which grows memory.
func adder() []byte {
	m := &wt.Module{}
	m.Memory(1)
	m.Export("add", m.Func("ii:i", "", wt.Get(0), wt.Get(1), wt.I32Add))
	m.Export("grow", m.Func("i:i", "", wt.Get(0), wt.MemoryGrow))
	m.Export("nothing", m.Func("", ""))
	m.Export("trap", m.Func("", "", wt.Unreachable))
	return m.Bytes()
}

func instantiate(t *testing.T, e *Engine, wasm []byte, pages uint32) runtime.Instance {
	code, err := e.Compile(ctx, wasm)
	require.NoError(t, err)
	i, err := code.Instantiate(ctx, runtime.Room{Pages: pages})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, i.Close(ctx))
		require.NoError(t, code.Close(ctx))
	})
	return i
}

func TestName(t *testing.T) {
	require.Regexp(t, `^wazero \d+\.\d+\.\d+ \(interpreter\)$`, newEngine(t, Options{Interpreter: true}).Name())
	require.Regexp(t, `^wazero \d+\.\d+\.\d+ \((compiler|interpreter)\)$`, newEngine(t, Options{}).Name())
}

func TestCallsAndFaults(t *testing.T) {
	for _, o := range []Options{{}, {Interpreter: true}} {
		e := newEngine(t, o)
		i := instantiate(t, e, adder(), 1)
		sum, err := i.Call(ctx, "add", 40, 2)
		require.NoError(t, err)
		require.Equal(t, uint64(42), sum)
		none, err := i.Call(ctx, "nothing")
		require.NoError(t, err)
		require.Zero(t, none)
		_, err = i.Call(ctx, "missing")
		require.ErrorContains(t, err, "no such export: missing")

		grown, err := i.Call(ctx, "grow", 1)
		require.NoError(t, err)
		require.Equal(t, uint32(0xffffffff), uint32(grown))
		_, err = i.Call(ctx, "trap")
		var fault *runtime.Fault
		require.ErrorAs(t, err, &fault)
		require.Equal(t, runtime.FaultTrap, fault.Kind)
	}
}

// keeper is a module whose memory can be read, written and grown, in the form
// that the runtime gives to engines: with room for one page more.
func keeper() []byte {
	m := &wt.Module{}
	m.Memory(2, 9)
	m.Data(100, []byte{7})
	m.Export("load", m.Func("i:i", "", wt.Get(0), wt.Load8(0)))
	m.Export("store", m.Func("ii:", "", wt.Get(0), wt.Get(1), wt.Store8(0)))
	m.Export("grow", m.Func("i:i", "", wt.Get(0), wt.MemoryGrow))
	m.ExportAs("global", 3, m.Global(5))
	return m.Bytes()
}

// What is captured comes back, size included, in the instance itself and in
// those that begin as it, for every way and both kinds of engine.
func TestCaptureAndRestore(t *testing.T) {
	for _, way := range []memory.Way{memory.Auto, memory.FullCopy} {
		for _, interpreter := range []bool{false, true} {
			e := newEngine(t, Options{Reset: way, Interpreter: interpreter})
			require.NotEqual(t, memory.Fresh, e.Reset())
			code, err := e.Compile(ctx, keeper())
			require.NoError(t, err)
			account := memory.NewAccount(1 << 30)
			room := runtime.Room{Pages: 8, Account: account}
			first, err := code.Instantiate(ctx, room)
			require.NoError(t, err)
			do := func(i runtime.Instance, export string, args ...uint64) uint32 {
				result, err := i.Call(ctx, export, args...)
				require.NoError(t, err)
				return uint32(result)
			}
			require.Error(t, first.Restore(), "there is nothing to put it back to")
			require.Equal(t, uint32(7), do(first, "load", 100))
			do(first, "grow", 1)
			do(first, "store", 100, 8)
			do(first, "store", 3<<16-1, 9)
			image, err := first.Capture()
			require.NoError(t, err)
			require.Equal(t, uint64(3<<16), image.Size())

			room.Image = image
			second, err := code.Instantiate(ctx, room)
			require.NoError(t, err)
			for range 70 { // more often than function stacks are kept
				for _, i := range []runtime.Instance{first, second} {
					require.Equal(t, uint32(8), do(i, "load", 100))
					require.Equal(t, uint32(9), do(i, "load", 3<<16-1))
					require.Zero(t, do(i, "load", 5000))
					require.Equal(t, uint32(3), do(i, "grow", 5))
					require.Equal(t, uint32(0xffffffff), do(i, "grow", 1))
					require.Zero(t, do(i, "load", 8<<16-1))
					do(i, "store", 100, 1)
					do(i, "store", 5000, 1)
					do(i, "store", 8<<16-1, 1)
					require.NoError(t, i.Restore())
				}
			}
			g := second.Global("global")
			require.Equal(t, uint64(5), g.Get())
			g.Set(6)
			require.Equal(t, uint64(6), second.Global("global").Get())
			require.Nil(t, second.Global("missing"))

			_, err = second.Call(ctx, "load", 3<<16)
			require.Error(t, err, "what was taken back is out of reach")
			require.NoError(t, second.Close(ctx))
			require.NoError(t, second.Close(ctx), "closing twice is fine")
			_, err = second.Call(ctx, "load", 0)
			require.ErrorIs(t, err, errClosed)
			require.NoError(t, first.Close(ctx))
			image.Free()
			require.Zero(t, account.Used())
			require.NoError(t, code.Close(ctx))
		}
	}
}

func TestNoRoomForAnInstance(t *testing.T) {
	e := newEngine(t, Options{})
	code, err := e.Compile(ctx, keeper())
	require.NoError(t, err)
	account := memory.NewAccount(5 << 16)
	room := runtime.Room{Pages: 8, Account: account}
	i, err := code.Instantiate(ctx, room)
	require.NoError(t, err)
	room.Image, err = i.Capture()
	require.NoError(t, err)
	for _, image := range []runtime.Image{nil, room.Image} {
		room.Image = image
		_, err = code.Instantiate(ctx, room)
		require.ErrorIs(t, err, memory.ErrNoRoom)
		require.Equal(t, int64(4<<16), account.Used())
	}
	require.NoError(t, i.Close(ctx))
}

// An instance is not freed under the guest's feet, not even by the engine's end.
func TestCloseWaitsForTheGuest(t *testing.T) {
	e, err := New(Options{})
	require.NoError(t, err)
	code, err := e.Compile(ctx, keeper())
	require.NoError(t, err)
	made, err := code.Instantiate(ctx, runtime.Room{Pages: 8})
	require.NoError(t, err)
	i := made.(*instance)
	require.True(t, i.memory.Enter()) // as a call does
	closed := make(chan error, 2)
	go func() { closed <- e.Close(ctx) }()
	select {
	case <-closed:
		t.Fatal("closed under a call")
	case <-time.After(20 * time.Millisecond): // no time is enough to prove it
	}
	i.memory.Leave()
	require.NoError(t, <-closed)
	_, err = i.Call(ctx, "load", 0)
	require.ErrorIs(t, err, errClosed)
}

// What the runtime says WASI's functions are agrees with what wazero, an
// implementation by other people, says.
func TestTypesOfWASI(t *testing.T) {
	r := wazero.NewRuntime(ctx)
	defer r.Close(ctx)
	host, err := wasi_snapshot_preview1.NewBuilder(r).Compile(ctx)
	require.NoError(t, err)
	theirs := host.ExportedFunctions()
	ours := map[string]bool{}
	for _, f := range runtime.HostFuncs() {
		if f.Module != wasi_snapshot_preview1.ModuleName {
			continue
		}
		ours[f.Name] = true
		require.Contains(t, theirs, f.Name)
		require.True(t, slices.Equal(theirs[f.Name].ParamTypes(), valueTypes(f.Type.Params)), f.Name)
		require.True(t, slices.Equal(theirs[f.Name].ResultTypes(), valueTypes(f.Type.Results)), f.Name)
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(theirs)), slices.Collect(maps.Keys(ours)))
}

// What does not compile is not kept either.
func TestInvalidModules(t *testing.T) {
	m := &wt.Module{}
	m.Func(":i", "") // leaves nothing on the stack
	for _, o := range []Options{{}, {ScratchDir: filepath.Join(t.TempDir(), "scratch")}} {
		e := newEngine(t, o)
		_, err := e.Compile(ctx, m.Bytes())
		require.ErrorContains(t, err, "invalid function[0]")
		_, kept, err := e.CompileToKeep(ctx, m.Bytes())
		require.ErrorContains(t, err, "invalid function[0]")
		require.Nil(t, kept)
	}
}
