package hostile

import (
	"slices"

	wt "github.com/weir-mcp/weir/internal/wasmtest"
)

// bombs are a few bytes that have an engine allocate gigabytes, or compile for
// minutes.
func bombs() []Module {
	refused := func(name, says string, wasm func() []byte) Module {
		return Module{Name: name, Refused: says, Wasm: wasm}
	}
	body := func(code ...[]byte) func() []byte {
		return func() []byte { return withBody(slices.Concat(append(code, []byte{endOp})...)) }
	}
	const work = "units of work to compile"
	return []Module{
		refused("18 bytes, 2^32-1 types", "over a limit: type", func() []byte {
			return join(section{secType, slices.Concat(most, make([]byte, 3))})
		}),
		refused("2^32-1 parameters", "over a limit: type", func() []byte {
			return join(section{secType, slices.Concat([]byte{1, 0x60}, most)})
		}),
		refused("2^32-1 locals", "over a limit: code", body(locals(1<<32-1))),
		refused("2^64 locals", "over a limit: code", body(wt.Uint(2), wt.Seq(most, []byte{i64}), wt.Seq(most, []byte{i64}))),
		refused("50 million locals", "over a limit: code", body(locals(50_000_000))),
		refused("2^32-1 branches", "over a limit: code", body([]byte{0, 0x0e}, most)),
		refused("a body of 2^32-1 bytes", "over a limit: code", func() []byte {
			return edit(plainModule(), secCode, func(b []byte) []byte { return slices.Concat(b[:1], most) })
		}),
		refused("2^32-1 bytes of data", "malformed: data", func() []byte {
			return edit(plainModule(), secData, func([]byte) []byte { return slices.Concat([]byte{1, 1}, most) })
		}),
		refused("a name of 2^32-1 bytes", "malformed: export", func() []byte {
			return edit(plainModule(), secExport, func(b []byte) []byte { return slices.Concat(b[:1], most) })
		}),
		refused("100,000 blocks", "100000 nested blocks, at most 1000 are allowed",
			body([]byte{0}, times(100_000, []byte{2, 0x40}), times(100_000, []byte{endOp}))),
		refused("30,000 ifs in a row", work, body([]byte{0}, times(30_000, zero, wt.If()))),
		refused("30,000 fills in a row", work, body([]byte{0}, times(30_000, zero, zero, zero, memoryFill))),
		refused("30,000 loops in a row", work, body([]byte{0}, times(30_000, wt.Loop()))),
		refused("a thousand locals through 3,000 branches", work, func() []byte {
			var read []byte
			for i := range uint32(1000) {
				read = append(read, wt.Seq(wt.Get(i), wt.Drop)...)
			}
			return withBody(wt.Seq(locals(1000), read, times(3000, wt.Block(zero, wt.BrIf(0))), read, []byte{endOp}))
		}),
		refused("a thousand results of 3,000 calls", work, func() []byte {
			r := reactor()
			results := ":" + string(slices.Repeat([]byte{'i'}, 1000))
			f := r.Func(results, "", wt.Unreachable)
			r.Func("", "", times(3000, wt.Call(f)), wt.Unreachable)
			return misbehaving(r)
		}),
		refused("a table of 2^32-1 elements", "its limit (table elements) is", func() []byte {
			r := reactor()
			r.Table(1<<32 - 1)
			return misbehaving(r)
		}),
		refused("a memory of 4 GiB", "its limit (memory) is", func() []byte {
			r := reactor()
			r.Memory(65_536)
			return misbehaving(r)
		}),
		refused("a thousand tables", "its limit (table elements) is", func() []byte {
			r := reactor()
			for range 1000 {
				r.Table(101)
			}
			return misbehaving(r)
		}),
		// No custom section reaches an engine.
		{Name: "277 bytes, 2^32-1 names", Wasm: func() []byte {
			r := reactor()
			r.Custom("name", slices.Concat([]byte{1}, wt.Uint(uint64(len(most))), most))
			r.Custom("name", slices.Concat([]byte{2}, most, most))
			return misbehaving(r)
		}},
		// What does not fit is found out by the instance.
		refused("data outside memory", "making an instance failed (trap)", func() []byte {
			r := reactor()
			r.Data(4*64<<10, []byte("x"))
			return misbehaving(r)
		}),
	}
}
