package hostile

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	wt "github.com/weir-mcp/weir/internal/wasmtest"
)

// nothing is a function body without locals or code.
var nothing = []byte{2, 0, endOp}

// limits are the fixed limits (abi.md "Load") and the operator's, each reached
// and each passed by one.
func limits() (list []Module) {
	limit := func(what string, limit int, build func(n int) []byte) {
		says := fmt.Sprintf("%d %s, at most %d are allowed", limit+1, what, limit)
		list = append(list, reaching(what, limit, build), passing(what, limit, says, build))
	}
	items := func(what string, id byte, item func(i int) []byte) {
		limit(what, 100_000, func(n int) []byte { return fill(plainModule(), id, n, item) })
	}
	items("types", secType, equal(0x60, 0, 0))
	items("globals", secGlobal, equal(0x7f, 0, 0x41, 0, endOp))
	items("element segments", secElement, equal(1, 0, 0))
	items("data segments", secData, equal(1, 0))
	items("exports", secExport, func(i int) []byte {
		name := fmt.Sprint(i)
		return slices.Concat(wt.Uint(uint64(len(name))), []byte(name), []byte{2, 0})
	})
	imports := func(n int) []byte {
		return misbehaving(reactor(func(m *wt.Module) {
			for range n - int(imported) {
				m.Import("weir", "log", "iii")
			}
		}))
	}
	list = append(list, reaching("imports", 100_000-3, imports), // and three functions of its own
		passing("imports", 100_000, "100001 imports, at most 100000 are allowed", imports))
	limit("functions", 100_000, func(n int) []byte {
		n -= int(imported)
		none := typeOfNothing()
		return fill(fill(plainModule(), secFunction, n, equal(none)), secCode, n, equal(nothing...))
	})
	limit("custom sections", 100_000, func(n int) []byte {
		return slices.Concat(plainModule(), bytes.Repeat([]byte{secCustom, 1, 0}, n))
	})
	limit("parameters", 1000, func(n int) []byte { return withType(strings.Repeat("i", n) + ":") })
	limit("results", 1000, func(n int) []byte { return withType(":" + strings.Repeat("i", n)) })
	limit("locals of a function", 50_000, func(n int) []byte {
		return withBody(wt.Seq(locals(uint64(n)), []byte{endOp}))
	})
	limit("locals of all functions", 5_000_000, func(n int) []byte {
		const each = 50_000
		r := reactor()
		n-- // weir_invoke has one
		for range n / each {
			r.Body("", wt.Seq(locals(each), []byte{endOp}))
		}
		if n%each > 0 {
			r.Body("", wt.Seq(locals(uint64(n%each)), []byte{endOp}))
		}
		return misbehaving(r)
	})
	limit("bytes of a function body", 1<<20, func(n int) []byte {
		return withBody(slices.Concat([]byte{0}, bytes.Repeat([]byte{1}, n-2), []byte{endOp}))
	})
	limit("br_table targets", 65_536, func(n int) []byte {
		return withBody(slices.Concat([]byte{0}, zero, wt.BrTable(make([]uint32, n), 0), []byte{endOp}))
	})
	for what, open := range map[string][]byte{"blocks": {2, 0x40}, "loops": {3, 0x40}, "ifs": {0x41, 0, 4, 0x40}} {
		build := func(n int) []byte {
			return withBody(slices.Concat([]byte{0}, bytes.Repeat(open, n), bytes.Repeat([]byte{endOp}, n+1)))
		}
		list = append(list, reaching("nested "+what, 1000, build),
			passing("nested "+what, 1000, "1001 nested blocks, at most 1000 are allowed", build))
	}
	limit("elements of all segments", 1_000_000, func(n int) []byte {
		return edit(plainModule(), secElement, func([]byte) []byte {
			return slices.Concat([]byte{2, 1, 0, 1, 0, 1, 0}, wt.Uint(uint64(n-1)), make([]byte, n-1))
		})
	})
	limit("values held by a constant expression", 1000, func(n int) []byte {
		return edit(plainModule(), secGlobal, func([]byte) []byte {
			return slices.Concat([]byte{1, 0x7f, 0}, bytes.Repeat(zero, n), bytes.Repeat(wt.I32Add, n-1), []byte{endOp})
		})
	})

	// The operator's.
	const pages = Memory >> 16
	declares := func(f func(r *wt.Reactor, n int)) func(n int) []byte {
		return func(n int) []byte {
			r := reactor()
			f(r, n)
			return misbehaving(r)
		}
	}
	operators := func(what string, limit int, says string, build func(n int) []byte) {
		list = append(list, reaching(what, limit, build), passing(what, limit, says, build))
	}
	operators("pages of memory", pages, "its limit (memory) is", declares(func(r *wt.Reactor, n int) { r.Memory(uint32(n)) }))
	operators("pages of memory at most", 65_536, "65537 pages of memory", declares(func(r *wt.Reactor, n int) { r.Memory(4, uint32(n)) }))
	operators("table elements", 100_000, "its limit (table elements) is 100000", declares(func(r *wt.Reactor, n int) { r.Table(uint32(n)) }))
	operators("elements of ten tables", 100_000, "its limit (table elements) is 100000", declares(func(r *wt.Reactor, n int) {
		for range 9 {
			r.Table(10_000)
		}
		r.Table(uint32(n - 90_000))
	}))
	operators("bytes of the file", 32<<20, "the limit (module file) is 33554432", func(n int) []byte {
		wasm := plainModule()
		padding := n - len(wasm) - 6 // an id, a size of four bytes, an empty name
		return slices.Concat(wasm, []byte{secCustom}, wt.Uint(uint64(padding+1)), make([]byte, padding+1))
	})
	return list
}

// reaching is a module that has as many as it may.
func reaching(what string, limit int, build func(n int) []byte) Module {
	return Module{Name: fmt.Sprintf("%d %s", limit, what), Wasm: func() []byte { return build(limit) }}
}

// passing is a module that has one more.
func passing(what string, limit int, says string, build func(n int) []byte) Module {
	return Module{Name: fmt.Sprintf("%d %s", limit+1, what), Refused: says, Wasm: func() []byte { return build(limit + 1) }}
}

// plainModule is a good module.
func plainModule() []byte { return misbehaving(reactor()) }

// typeOfNothing is the index of the type () -> () in a plain module.
func typeOfNothing() byte {
	r := reactor()
	misbehaving(r)
	return byte(r.Type(""))
}

func withType(signature string) []byte {
	r := reactor()
	r.Type(signature)
	return misbehaving(r)
}

func withBody(body []byte) []byte {
	r := reactor()
	r.Body("", body)
	return misbehaving(r)
}

// many are modules that are large, as real ones are, and are to load.
func many() []Module {
	const n = 50_000
	return []Module{
		{Name: "50,000 functions", Wasm: func() []byte {
			r := reactor()
			for range n {
				r.Func("i:i", "i", wt.Get(0), wt.I32(1), wt.I32Add, wt.Set(1), wt.Get(1))
			}
			return misbehaving(r)
		}},
		{Name: "50,000 exported functions", Wasm: func() []byte {
			r := reactor()
			for i := range n {
				r.Export(fmt.Sprint("f", i), r.Func("", ""))
			}
			return misbehaving(r)
		}},
		{Name: "50,000 segments of data", Wasm: func() []byte {
			r := reactor()
			for i := range n {
				r.Data(int32(2048+i%10_000), []byte{byte(i)})
			}
			return misbehaving(r)
		}},
		{Name: "50,000 segments of elements", Wasm: func() []byte {
			r := reactor()
			r.Table(1)
			for range n {
				r.Elements(0, r.Input)
			}
			return misbehaving(r)
		}},
		{Name: "50,000 mutable globals", Wasm: func() []byte {
			r := reactor()
			for i := range n {
				r.Global(int32(i))
			}
			return misbehaving(r)
		}},
		{Name: "a giant function", Wasm: func() []byte {
			r := reactor()
			r.Func("", "iIfF", times(20_000, wt.Get(0), wt.I32(1), wt.I32Add, wt.Set(0), zero, wt.Load(0), wt.Set(0)))
			return misbehaving(r)
		}},
	}
}
