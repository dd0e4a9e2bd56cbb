package hostile

import (
	"bytes"

	wt "github.com/weir-mcp/weir/internal/wasmtest"
)

// Shape is code that works for ever, or for long enough: called again and again
// it does not end.
type Shape struct {
	Name string
	// Deep: it ends by itself where the stack does.
	Deep bool
	// Build adds it to a module and returns the function () -> () to call. The
	// module must have memory and no table; counter is a global i64 of it, to
	// which some shapes add one for each four of their instructions.
	Build func(m *wt.Module, counter uint32) wt.Func
}

var (
	zero            = wt.I32(0)
	memoryFill      = []byte{0xfc, 11, 0}
	memoryCopy      = []byte{0xfc, 10, 0, 0}
	tableFill       = []byte{0xfc, 17, 0}
	tableCopy       = []byte{0xfc, 14, 0, 0}
	i32WrapI64      = []byte{0xa7}
	i32Shl          = []byte{0x74}
	i32DivS         = []byte{0x6d}
	allMemory       = wt.Seq(wt.MemorySize, wt.I32(16), i32Shl) // a length in bytes
	i64        byte = 0x7e
	endOp      byte = 0x0b
)

// count adds one to a counter.
func count(counter uint32) []byte {
	return wt.Seq(wt.GlobalGet(counter), wt.I64(1), wt.I64Add, wt.GlobalSet(counter))
}

// forever does something again and again.
func forever(code ...[]byte) []byte { return wt.Loop(wt.Seq(code...), wt.Br(0)) }

func times(n int, code ...[]byte) []byte { return bytes.Repeat(wt.Seq(code...), n) }

// refer puts functions into a table of 64 elements, beginning at 0.
func refer(m *wt.Module, functions ...wt.Func) {
	m.Table(64)
	m.Elements(0, functions...)
}

// plain is a shape of one function.
func plain(name string, code func(counter uint32) []byte) Shape {
	return Shape{Name: name, Build: func(m *wt.Module, counter uint32) wt.Func {
		return m.Func("", "", code(counter))
	}}
}

// fixed is a shape of one function that counts nothing.
func fixed(name string, code ...[]byte) Shape {
	return plain(name, func(uint32) []byte { return wt.Seq(code...) })
}

// tabled is a shape of one function that has a table with itself in it.
func tabled(name string, code ...[]byte) Shape {
	return Shape{Name: name, Build: func(m *wt.Module, _ uint32) wt.Func {
		run := m.Func("", "", code...)
		refer(m, run)
		return run
	}}
}

// called is a shape of a function that counts, and one that is made of its index.
func called(name string, code func(small wt.Func) []byte) Shape {
	return Shape{Name: name, Build: func(m *wt.Module, counter uint32) wt.Func {
		return m.Func("", "", code(m.Func("", "", count(counter))))
	}}
}

// Shapes are loops, recursions, mazes, and trains of what takes long.
func Shapes() []Shape {
	return []Shape{
		fixed("a loop", forever()),
		plain("a loop that works", func(c uint32) []byte { return forever(count(c)) }),
		plain("an if in a loop", func(c uint32) []byte { return forever(zero, wt.IfElse(count(c), times(200, count(c)))) }),
		fixed("a loop of divisions", forever(times(20_000, wt.I32(7), wt.I32(3), i32DivS, wt.Drop))),
		plain("200 nested loops", func(c uint32) []byte {
			code := count(c)
			for range 200 {
				code = forever(code)
			}
			return code
		}),
		plain("a br_table maze", maze),
		{Name: "33 functions, each twice", Build: func(m *wt.Module, counter uint32) wt.Func {
			last := m.Func("", "", count(counter))
			for range 33 {
				last = m.Func("", "", wt.Call(last), wt.Call(last))
			}
			return last
		}},

		plain("a giant body", func(c uint32) []byte { return times(60_000, count(c)) }),
		called("a giant body of calls to a leaf", func(small wt.Func) []byte { return times(60_000, wt.Call(small)) }),
		{Name: "a giant body of calls", Build: func(m *wt.Module, _ uint32) wt.Func {
			return m.Func("", "", times(60_000, wt.Call(m.Func("", "", wt.Loop()))))
		}},
		{Name: "a giant body of indirect calls", Build: func(m *wt.Module, counter uint32) wt.Func {
			refer(m, m.Func("", "", count(counter)))
			return m.Func("", "", times(10_000, zero, wt.CallIndirect(m.Type(""))))
		}},
		{Name: "a frame of 50,000 locals", Build: func(m *wt.Module, counter uint32) wt.Func {
			big := m.Body("", wt.Seq(locals(50_000), count(counter), []byte{endOp}))
			return m.Func("", "", forever(wt.Call(big)))
		}},

		{Name: "recursion", Deep: true, Build: func(m *wt.Module, _ uint32) wt.Func {
			return m.Func("", "", wt.Call(m.NextFunc()))
		}},
		{Name: "recursion that works", Deep: true, Build: func(m *wt.Module, counter uint32) wt.Func {
			return m.Func("", "", count(counter), wt.Call(m.NextFunc()), count(counter))
		}},
		{Name: "mutual recursion", Deep: true, Build: func(m *wt.Module, _ uint32) wt.Func {
			other := m.Func("", "", wt.I32(1), wt.CallIndirect(m.Type("")))
			run := m.Func("", "", zero, wt.CallIndirect(m.Type("")))
			refer(m, other, run)
			return run
		}},
		{Name: "a ring of tail calls", Build: func(m *wt.Module, counter uint32) wt.Func {
			first := m.NextFunc()
			m.Func("", "", count(counter), wt.ReturnCall(first+1))
			return m.Func("", "", count(counter), wt.ReturnCall(first))
		}},
		{Name: "a ring of indirect tail calls", Build: func(m *wt.Module, counter uint32) wt.Func {
			other := m.Func("", "", count(counter), wt.I32(1), wt.ReturnCallIndirect(m.Type("")))
			run := m.Func("", "", count(counter), zero, wt.ReturnCallIndirect(m.Type("")))
			refer(m, other, run)
			return run
		}},

		// Bulk operations take engines long to compile, so these trains are short.
		plain("memory.fill, all the memory", func(c uint32) []byte { return times(300, zero, zero, allMemory, memoryFill, count(c)) }),
		plain("memory.copy, all the memory", func(c uint32) []byte { return times(300, zero, zero, allMemory, memoryCopy, count(c)) }),
		fixed("memory.fill, a constant length", times(300, zero, zero, wt.I32(4000), memoryFill)),
		fixed("memory.fill, a big constant length", times(300, zero, zero, wt.I32(256<<10), memoryFill)),
		tabled("table.fill", times(300, zero, wt.RefNullFunc, wt.TableSize0, tableFill)),
		tabled("table.copy", times(300, zero, zero, wt.TableSize0, tableCopy)),
		fixed("growth that is refused", forever(wt.I32(-1), wt.MemoryGrow, wt.Drop)),
		fixed("growth by nothing", forever(zero, wt.MemoryGrow, wt.Drop)),
		{Name: "references", Build: func(m *wt.Module, _ uint32) wt.Func {
			run := m.Func("", "", times(300, wt.RefFunc(m.NextFunc()), wt.Drop))
			refer(m, run)
			return run
		}},
	}
}

// locals declares so many locals of 64 bits.
func locals(n uint64) []byte { return wt.Seq([]byte{1}, wt.Uint(n), []byte{i64}) }

// maze is a room in a room in a room, which is left for one that the counter
// tells.
func maze(counter uint32) []byte {
	const rooms = 500
	doors := make([]uint32, rooms)
	for i := range doors {
		doors[i] = uint32(i)
	}
	code := wt.Seq(wt.GlobalGet(counter), i32WrapI64, wt.BrTable(doors, 0))
	for range rooms {
		code = wt.Seq(wt.Block(code), count(counter))
	}
	return forever(code)
}
