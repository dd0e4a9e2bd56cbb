package wazero

import (
	"testing"

	"github.com/stretchr/testify/require"

	wt "github.com/weir-mcp/weir/internal/wasmtest"
)

// wazero keeps a function's stack where it is looked for, in both its modes.
func TestOwnStacksAreWhereTheyAreLookedFor(t *testing.T) {
	for name, interpreter := range map[string]bool{"compiler": false, "interpreter": true} {
		t.Run(name, func(t *testing.T) {
			m := &wt.Module{}
			m.Memory(1)
			m.Export("down", m.Func("i:i", "", wt.Get(0), wt.I32Eqz, wt.If(wt.I32(0), wt.Return),
				wt.Get(0), wt.I32(1), wt.I32Sub, wt.Call(0), wt.I32(1), wt.I32Add))
			e := newEngine(t, Options{Interpreter: interpreter})
			e.layout = nil // as where stacks are not given
			i := instantiate(t, e, m.Bytes(), 1)

			size := func(depth uint64) uint64 {
				_, err := i.Call(ctx, "down", depth)
				require.NoError(t, err)
				bytes, grows := i.Stack()
				require.True(t, grows)
				return bytes
			}
			least := size(1)
			require.Positive(t, least)
			deep := size(1500)
			require.Greater(t, deep, least)
			require.LessOrEqual(t, deep, uint64(keptStack))
			require.Equal(t, deep, size(1), "it is kept")

			if !interpreter { // which has no more frames
				require.Zero(t, size(100_000), "a large one is not")
				require.Equal(t, least, size(1))
			}
		})
	}
	require.Zero(t, ownStackOf(nil).size())
}
