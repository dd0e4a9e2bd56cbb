package runtime

import (
	"bytes"
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/runtime/store"
)

// flatMemory is a guest's memory without a guest.
type flatMemory []byte

func (m flatMemory) Read(offset, count uint32) ([]byte, bool) {
	if uint64(offset)+uint64(count) > uint64(len(m)) {
		return nil, false
	}
	return m[offset : offset+count], true
}

// Whatever a guest passes, a kv function answers one of its codes or ends the
// call, and writes to memory only where it says it does.
func FuzzKVFunctions(f *testing.F) {
	f.Add(uint8(0), uint64(0), uint64(1), uint64(8), uint64(4), uint64(0))
	f.Add(uint8(1), uint64(0), uint64(1), uint64(8), uint64(70_000), uint64(1))
	f.Add(uint8(2), uint64(0), uint64(1), uint64(1<<63), uint64(0), uint64(0xffff_fff8))
	f.Add(uint8(2), uint64(0), uint64(256), uint64(7), ^uint64(0), uint64(16))
	f.Add(uint8(3), ^uint64(0), ^uint64(0), uint64(0), uint64(0), uint64(0))
	f.Fuzz(func(t *testing.T, which uint8, a, b, c, d, e uint64) {
		fn := kvFuncs[int(which)%len(kvFuncs)]
		words := []uint64{a, b, c, d, e}
		for i, typ := range fn.Type.Params {
			if typ == signature("i", "").Params[0] {
				words[i] = uint64(uint32(words[i])) // as engines pass an i32
			}
		}
		kv := KV{Store: store.NewMemory(store.Limits{}), Scope: store.Module}
		access := kv.access("m.wasm", &abi.Invocation{})
		require.NoError(t, kv.Store.Set(t.Context(), access.space, "\x01", []byte("12"), 0))
		memory := flatMemory(bytes.Repeat([]byte{1}, 1024))
		run := &call{m: &Module{name: "m.wasm", logger: slog.New(slog.DiscardHandler)}, kv: access}
		run.tank.fill(new(fakeGlobal), nil, deadline{}, 0)

		passed := append([]uint64{}, words...)
		err := fn.Call(run.context(context.Background()), memory, words)
		changed := func(from, to uint64) {
			for i, b := range memory {
				require.True(t, b == 1 || uint64(i) >= from && uint64(i) < to, "byte %d was written", i)
			}
		}
		result := int32(uint32(words[0]))
		switch {
		case err != nil:
			require.ErrorContains(t, err, fn.Name)
			changed(0, 0)
		case fn.Name == abi.ImportKVGet:
			require.True(t, result >= abi.KVTooBig && result <= abi.MaxKVValue, result)
			changed(passed[2], passed[2]+uint64(max(0, result)))
		case fn.Name == abi.ImportKVAdd && result == 0:
			changed(passed[4], passed[4]+8)
		default:
			require.True(t, result >= abi.KVInvalid && result <= 0, result)
			changed(0, 0)
		}
	})
}
