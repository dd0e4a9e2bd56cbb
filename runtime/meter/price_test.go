package meter_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"

	"github.com/weir-mcp/weir/runtime/meter"
)

// BenchmarkPrices runs chains of instructions that wait for each other, and
// reports what they take for each unit of fuel that they are charged. No price
// is right; what matters is that none is wrong by an order of magnitude.
func BenchmarkPrices(b *testing.B) {
	i64Local, i32Local, f64Local, v128Local := 0, 1, 2, 3
	// A chain reads a local, does something to it and writes it back.
	chain := func(local int, code ...any) []byte {
		return cat(byte(0x20), local, cat(code...), byte(0x21), local)
	}
	simd := func(op int) []byte {
		return cat(byte(0x20), v128Local, byte(0x20), v128Local, byte(0xfd), op, byte(0x21), v128Local)
	}
	// What nothing uses engines leave out.
	use := cat(byte(0x20), i64Local, byte(0x20), i32Local, byte(0xad), byte(0x7c), byte(0x20), f64Local, byte(0xbd), byte(0x7c),
		byte(0x20), v128Local, byte(0xfd), 29, byte(0), byte(0x7c), byte(0x24), 0)
	for _, c := range []struct {
		name string
		code []byte
	}{
		{"i64.add", chain(i64Local, byte(0x42), 3, byte(0x7c))},
		{"i64.mul", chain(i64Local, byte(0x42), 3, byte(0x7e))},
		{"i32.div_u", chain(i32Local, byte(0x20), i32Local, byte(0x41), 3, byte(0x72), byte(0x6e), byte(0x41), s(-1), byte(0x73))},
		{"i64.div_s", chain(i64Local, byte(0x20), i64Local, byte(0x42), 3, byte(0x84), byte(0x7f), byte(0x42), s(-1), byte(0x85))},
		{"i64.rem_u", chain(i64Local, byte(0x20), i64Local, byte(0x42), 3, byte(0x84), byte(0x82), byte(0x42), s(-1), byte(0x85))},
		{"f64.add", chain(f64Local, byte(0x20), f64Local, byte(0xa0))},
		{"f64.div", chain(f64Local, byte(0x20), f64Local, byte(0xa3))},
		{"f64.sqrt", chain(f64Local, byte(0x9f))},
		{"f64.nearest", chain(f64Local, byte(0x9e))},
		{"i64.trunc_f64_s", chain(f64Local, byte(0xb0), byte(0xb9))},
		{"i32.trunc_sat_f64_u", chain(f64Local, byte(0xfc), 3, byte(0xb8))},
		{"i64.popcnt", chain(i64Local, byte(0x7b))},
		{"i32.load", chain(i32Local, byte(0x41), s(0xfff), byte(0x71), byte(0x28), 2, 0)},
		{"i32.store", cat(byte(0x20), i32Local, byte(0x41), s(0xfff), byte(0x71), byte(0x20), i32Local, byte(0x36), 2, 0)},
		{"global.set", count},
		{"call", cat(byte(0x10), 1)},
		{"call of a leaf", cat(byte(0x10), 0)},
		{"call_indirect", cat(byte(0x41), 1, byte(0x11), 0, 0)},
		{"br_table", cat(byte(0x02), byte(0x40), byte(0x20), i32Local, byte(0x0e), vec(u(0), u(0)), 0, end)},
		{"table.get", cat(byte(0x41), 1, byte(0x25), 0, byte(0x1a))},
		{"ref.func", cat(byte(0xd2), 0, byte(0x1a))},
		{"memory.grow by none", cat(byte(0x41), 0, byte(0x40), byte(0), byte(0x1a))},
		{"memory.fill of 8", cat(byte(0x41), 0, byte(0x41), 0, byte(0x41), 8, byte(0xfc), 11, byte(0))},
		{"memory.fill of 1 MiB", cat(byte(0x41), 0, byte(0x41), 0, byte(0x41), s(1<<20), byte(0xfc), 11, byte(0))},
		{"memory.copy of 8", cat(byte(0x41), 0, byte(0x41), 9, byte(0x41), 8, byte(0xfc), 10, byte(0), byte(0))},
		{"memory.copy of 512 KiB", cat(byte(0x41), 0, byte(0x41), s(1<<19), byte(0x41), s(1<<19), byte(0xfc), 10, byte(0), byte(0))},
		{"table.fill of 60", cat(byte(0x41), 0, byte(0xd0), funcref, byte(0x41), 60, byte(0xfc), 17, 0)},
		{"table.copy of 30", cat(byte(0x41), 0, byte(0x41), 30, byte(0x41), 30, byte(0xfc), 14, 0, 0)},
		{"i32x4.add", simd(174)},
		{"i64x2.mul", simd(213)},
		{"f64x2.div", simd(243)},
		{"i8x16.shl", cat(byte(0x20), v128Local, byte(0x20), i32Local, byte(0xfd), byte(107), byte(0x21), v128Local)},
		{"i8x16.popcnt", cat(byte(0x20), v128Local, byte(0xfd), byte(98), byte(0x21), v128Local)},
		{"i8x16.swizzle", simd(14)},
	} {
		b.Run(c.name, func(b *testing.B) {
			run := bodyWithLocals(vec(cat(1, i64), cat(1, i32), cat(1, byte(0x7c)), cat(1, byte(0x7b))), times(50, c.code), use)
			binary := work(body(count), body(loop()), run)
			if c.name == "call of a leaf" {
				binary = unreferred(binary)
			}
			e := engine(b, wazero.NewRuntimeConfigCompiler())
			ctx, tank := fueled(unlimited, 1<<40)
			r, _ := rewritten(b, binary, generous)
			metered, err := e.InstantiateWithConfig(ctx, r.Binary, wazero.NewModuleConfig().WithName("metered"))
			require.NoError(b, err)
			_, err = metered.ExportedFunction("run").Call(ctx)
			require.NoError(b, err)
			units := tank.used(fuel(metered))

			m, err := meter.Parse(binary)
			require.NoError(b, err)
			plain, err := e.InstantiateWithConfig(ctx, m.Stripped(), wazero.NewModuleConfig().WithName("plain"))
			require.NoError(b, err)
			f := plain.ExportedFunction("run")
			fastest := time.Duration(1 << 62)
			for b.Loop() {
				start := time.Now()
				for range 10 {
					if _, err := f.Call(ctx); err != nil {
						b.Fatal(err)
					}
				}
				fastest = min(fastest, time.Since(start))
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(units)/50, "units")
			b.ReportMetric(float64(fastest.Nanoseconds())/500, "ns")
			b.ReportMetric(float64(fastest.Nanoseconds())/10/float64(units), "ns/unit")
		})
	}
}
