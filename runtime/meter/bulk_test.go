package meter_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/weir-mcp/weir/runtime/meter"
)

// mebibyte is what a bulk operation does at once.
const mebibyte = 1 << 20

// bulkModule exports copy, fill and init, which take what the instructions take.
// It has a memory of four mebibytes and a bit, and a data segment of three.
func bulkModule() []byte {
	all := cat(byte(0x20), 0, byte(0x20), 1, byte(0x20), 2)
	segment := make([]byte, 3*mebibyte)
	for i := range segment {
		segment[i] = byte(i*7 + i>>12)
	}
	return module(
		section(secType, vec(fn([]byte{i32, i32, i32}, nil), fn(nil, nil))),
		section(secFunction, vec(u(0), u(0), u(0), u(1))),
		section(secMemory, vec(cat(byte(0), 65))),
		section(secExport, vec(cat("copy", byte(0), 0), cat("fill", byte(0), 1), cat("init", byte(0), 2), cat("drop", byte(0), 3), cat("memory", byte(2), 0))),
		section(secDataCount, 2),
		section(secCode, vec(
			body(all, byte(0xfc), 10, byte(0), byte(0)),
			body(all, byte(0xfc), 11, byte(0)),
			body(all, byte(0xfc), 8, 1, byte(0)),
			body(byte(0xfc), 9, 1),
		)),
		section(secData, vec(cat(1, "short"), cat(1, len(segment), segment))),
	)
}

// TestBulkOperationsInPieces: however long an operation is, and wherever its ends
// lie, it does what it did in one piece, costs what its length costs, and does
// nothing at all where it does not fit.
func TestBulkOperationsInPieces(t *testing.T) {
	const size = 65 << 16
	eachMode(t, func(t *testing.T, config wazero.RuntimeConfig) {
		ctx, tank := fueled(unlimited, 1<<40)
		metered := instance(t, ctx, config, bulkModule(), generous)
		plain, err := engine(t, config).InstantiateWithConfig(ctx, bulkModule(), wazero.NewModuleConfig().WithStartFunctions())
		require.NoError(t, err)
		pattern := make([]byte, size)
		for i := range pattern {
			pattern[i] = byte(i + i>>8 + i>>16)
		}
		memory := func(i api.Module) []byte {
			b, ok := i.Memory().Read(0, size)
			require.True(t, ok)
			return b
		}
		check := func(what string, to, from, length uint32) {
			copy(memory(metered), pattern)
			copy(memory(plain), pattern)
			before := tank.used(fuel(metered))
			_, want := plain.ExportedFunction(what).Call(ctx, uint64(to), uint64(from), uint64(length))
			_, got := metered.ExportedFunction(what).Call(ctx, uint64(to), uint64(from), uint64(length))
			at := []any{"%s(%d, %d, %d)", what, to, from, length}
			require.Equal(t, want == nil, got == nil, at...)
			require.True(t, bytes.Equal(memory(plain), memory(metered)), at...)
			if want != nil {
				require.Equal(t, firstLine(want), firstLine(got), at...)
				require.True(t, bytes.Equal(pattern, memory(metered)), at...)
				return
			}
			require.Equal(t, int64(length/meter.BytesPerUnit)+3+30, tank.used(fuel(metered))-before, at...)
		}
		lengths := []uint32{0, 1, mebibyte, mebibyte + 1, 2*mebibyte + 4095, 3 * mebibyte, size, 1<<32 - 1}
		places := []uint32{0, 1, mebibyte - 3, mebibyte + 5, size - mebibyte, size, 1<<32 - mebibyte, 1<<32 - 1}
		for _, length := range lengths {
			for _, to := range places {
				check("fill", to, 0x1a5, length)
				for _, from := range places {
					if length < mebibyte && from > 1 {
						continue // what is short is not what this is about
					}
					check("copy", to, from, length)
				}
			}
			for _, to := range []uint32{0, 5, mebibyte, size - 3*mebibyte, size} {
				for _, from := range []uint32{0, 1, mebibyte, 2 * mebibyte, 3*mebibyte - 1, 3 * mebibyte, 1<<32 - 1} {
					check("init", to, from, length)
				}
			}
		}
		for _, i := range []api.Module{metered, plain} {
			_, err := i.ExportedFunction("drop").Call(ctx)
			require.NoError(t, err)
		}
		for _, length := range []uint32{0, 1, 2 * mebibyte} {
			check("init", 0, 0, length)
		}
	})
}

// TestBulkOperationsAreInterrupted: the host is asked between the pieces, and what
// it does not allow does not happen.
func TestBulkOperationsAreInterrupted(t *testing.T) {
	eachMode(t, func(t *testing.T, config wazero.RuntimeConfig) {
		const piece = mebibyte / meter.BytesPerUnit
		for _, what := range []string{"copy", "fill", "init"} {
			ctx, tank := fueled(unlimited, piece/2)
			i := instance(t, ctx, config, bulkModule(), generous)
			asked := 0
			tank.asked = func() { asked++ }
			_, err := i.ExportedFunction(what).Call(ctx, mebibyte, 0, 3*mebibyte)
			require.NoError(t, err)
			require.GreaterOrEqual(t, asked, 3, what)
		}
		ctx, _ := fueled(2*piece+100, piece/2)
		i := instance(t, ctx, config, bulkModule(), generous)
		_, err := i.ExportedFunction("fill").Call(ctx, 0, 0xff, 4*mebibyte)
		require.ErrorIs(t, err, errNoFuel)
		memory, ok := i.Memory().Read(0, 4*mebibyte)
		require.True(t, ok)
		require.Equal(t, 2*mebibyte, bytes.Count(memory, []byte{0xff}))
	})
}
