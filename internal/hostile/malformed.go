package hostile

import (
	"slices"

	wt "github.com/weir-mcp/weir/internal/wasmtest"
)

// malformed are modules in which one thing is not as the format wants it, for
// each kind of section.
func malformed() (list []Module) {
	refused := func(name, says string, wasm func() []byte) {
		list = append(list, Module{Name: name, Refused: says, Wasm: wasm})
	}
	for _, id := range order {
		name := sectionNames[id] + " section"
		refused("a "+name+" with a byte too many", "malformed: "+sectionNames[id], func() []byte {
			return edit(complete(), id, func(b []byte) []byte { return append(slices.Clone(b), 0) })
		})
		refused("a "+name+" with a byte too few", "malformed: "+sectionNames[id], func() []byte {
			return edit(complete(), id, func(b []byte) []byte { return b[:len(b)-1] })
		})
		refused("a "+name+" that is empty", "malformed: "+sectionNames[id], func() []byte {
			return edit(complete(), id, func([]byte) []byte { return []byte{} })
		})
		refused("a "+name+" that comes twice", "malformed: "+sectionNames[id], func() []byte {
			all := split(complete())
			i := slices.IndexFunc(all, func(s section) bool { return s.id == id })
			return join(slices.Insert(all, i, all[i])...)
		})
		refused("a "+name+" that comes last", "malformed: ", func() []byte {
			all := split(complete())
			i := slices.IndexFunc(all, func(s section) bool { return s.id == id })
			if id == secData {
				return join(slices.Insert(slices.Delete(all, i, i+1), 0, all[i])...) // first, then
			}
			return join(append(slices.Delete(slices.Clone(all), i, i+1), all[i])...)
		})
		refused("a "+name+" of 2^32-1 bytes", "truncated: "+sectionNames[id], func() []byte {
			return slices.Concat(header, []byte{id}, most)
		})
		if id != secStart {
			refused("a "+name+" of 2^32-1 items", "over a limit: "+sectionNames[id], func() []byte {
				return edit(complete(), id, func(b []byte) []byte { return slices.Concat(most, b[1:]) })
			})
		}
	}
	refused("a custom section whose name passes its end", "malformed: custom", func() []byte {
		return append(complete(), secCustom, 2, 5, 'a')
	})
	refused("a custom section of 2^32-1 bytes", "truncated: custom", func() []byte {
		return append(append(complete(), secCustom), most...)
	})
	refused("a section that does not exist", "malformed: section header", func() []byte { return append(complete(), 99, 0) })
	refused("a number that takes too many bytes", "malformed: ", func() []byte {
		return slices.Concat(header, []byte{secType, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00})
	})
	refused("a module that is cut off", "truncated", func() []byte { b := complete(); return b[:len(b)-20] })
	refused("no bytes", "truncated", func() []byte { return nil })
	refused("text", "not a WebAssembly module", func() []byte { return []byte("(module)") })
	refused("another version of the format", "version", func() []byte { return []byte("\x00asm\x02\x00\x00\x00") })
	refused("a component", "component", func() []byte { return []byte("\x00asm\x0d\x00\x01\x00") })
	refused("fewer bodies than functions", "malformed: code", func() []byte {
		return edit(complete(), secFunction, func(b []byte) []byte { return append([]byte{b[0] + 1}, append(slices.Clone(b[1:]), 0)...) })
	})
	refused("a start function that does not exist", "malformed: start", func() []byte {
		return edit(complete(), secStart, func([]byte) []byte { return wt.Uint(1000) })
	})
	refused("more segments of data than were said", "malformed: ", func() []byte {
		return edit(complete(), secDataCount, func([]byte) []byte { return wt.Uint(1) })
	})

	// What we do not take is refused by its name.
	feature := func(name, says string, f func(r *wt.Reactor)) {
		refused(name, "unsupported feature: "+says, func() []byte {
			r := reactor()
			f(r)
			return misbehaving(r)
		})
	}
	code := func(b ...byte) func(r *wt.Reactor) {
		return func(r *wt.Reactor) { r.Func("", "", b) }
	}
	feature("an atomic instruction", "code, function 3", code(0xfe, 0x03, 0x00))
	feature("an exception", "code, function 3", code(0x06, 0x40, 0x0b))
	feature("relaxed SIMD", "code, function 3", code(0xfd, 0x80, 0x02))
	feature("a garbage-collected object", "code, function 3", code(0xfb, 0x00, 0x00))
	refused("a shared memory", "threads", func() []byte {
		return edit(complete(), secMemory, func([]byte) []byte { return []byte{1, 3, 4, 4} })
	})
	refused("a 64-bit memory", "memory64", func() []byte {
		return edit(complete(), secMemory, func([]byte) []byte { return []byte{1, 4, 4} })
	})
	refused("two memories", "multi-memory", func() []byte {
		return edit(complete(), secMemory, func([]byte) []byte { return []byte{2, 0, 4, 0, 4} })
	})
	return list
}
