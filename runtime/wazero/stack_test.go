package wazero

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/internal/need"
	wt "github.com/weir-mcp/weir/internal/wasmtest"
	"github.com/weir-mcp/weir/runtime"
)

// recursion exports "deep", which gives how often it calls itself, and "endless".
func recursion() []byte {
	m := &wt.Module{}
	m.Memory(1)
	m.Export("deep", m.Func("i:i", "", wt.Get(0), wt.If(
		wt.Get(0), wt.I32(1), wt.I32Sub, wt.Call(0), wt.I32(1), wt.I32Add, wt.Set(0)), wt.Get(0)))
	m.Export("endless", m.Func("", "", wt.Call(1)))
	return m.Bytes()
}

// What can be looked for is here: this fails when wazero changes, and says where
// to look.
func TestStacksAreGivenHere(t *testing.T) {
	e := newEngine(t, Options{})
	if e.interprets || newStack() == nil {
		need.Missing(t, "a stack to give to wazero's compiler", "run it on Linux, amd64 or arm64")
	}
	require.NotNil(t, e.layout, "wazero keeps its stacks elsewhere now")
}

// A guest goes deep, and no deeper than its stack, which never moves, whether it
// has gone deep before or not.
func TestDeepRecursion(t *testing.T) {
	for _, given := range []bool{true, false} {
		e := newEngine(t, Options{})
		if !given {
			e.layout = nil
		}
		i := instantiate(t, e, recursion(), 1).(*instance)
		_, err := i.Capture()
		require.NoError(t, err)
		for round := range 100 {
			depth := uint64(round)
			if round%16 == 0 {
				depth = 200_000
			}
			result, err := i.Call(ctx, "deep", depth)
			require.NoError(t, err)
			require.Equal(t, depth, result)
			if i.layout != nil {
				require.True(t, i.layout.has(i.functions["deep"].Function, i.stack))
			}
			require.NoError(t, i.Restore())
		}
		_, err = i.Call(ctx, "endless")
		var f *runtime.Fault
		require.ErrorAs(t, err, &f)
		require.Equal(t, runtime.FaultStack, f.Kind)
		result, err := i.Call(ctx, "deep", 1000)
		require.NoError(t, err)
		require.Equal(t, uint64(1000), result)
	}
	debug.FreeOSMemory() // of the stacks that have grown
}

// What is not as expected is left alone.
func TestOtherFunctionsKeepTheirStacks(t *testing.T) {
	type other struct{ function }
	require.Nil(t, stackLayoutOf(nil))
	require.Nil(t, stackLayoutOf(other{}))
	require.Nil(t, stackLayoutOf(&other{}))

	e := newEngine(t, Options{})
	if e.layout == nil {
		need.Missing(t, "a stack to give to wazero's compiler", "run it on Linux, amd64 or arm64")
	}
	require.ErrorIs(t, e.layout.give(&other{}, make([]byte, 2*stackGuard)), errStack)
	i := instantiate(t, e, recursion(), 1).(*instance)
	_, err := i.Call(ctx, "deep", 1)
	require.NoError(t, err)
	require.ErrorIs(t, i.layout.give(i.functions["deep"].Function, make([]byte, 2*stackGuard)), errStack, "it has one already")
	require.True(t, i.layout.has(i.functions["deep"].Function, i.stack))
}

// How deep a call has gone can be found out, and is forgotten with what it has
// touched.
func TestUsedStack(t *testing.T) {
	e := newEngine(t, Options{})
	if e.layout == nil {
		need.Missing(t, "a stack to give to wazero's compiler", "run it on Linux, amd64 or arm64")
	}
	i := instantiate(t, e, recursion(), 1).(*instance)
	require.Zero(t, i.UsedStack())
	deep := func(depth uint64) uint64 {
		_, err := i.Call(ctx, "deep", depth)
		require.NoError(t, err)
		return i.UsedStack()
	}
	shallow := deep(1)
	require.Positive(t, shallow)
	require.Less(t, shallow, uint64(64<<10))
	far := deep(200_000)
	require.Greater(t, far, uint64(200_000*8))
	require.LessOrEqual(t, far, uint64(stackBytes))
	require.Equal(t, far, deep(1), "nothing has been given back")
	i.TrimStack()
	require.LessOrEqual(t, deep(1), uint64(64<<10))
}
