package meter_test

import (
	"bytes"
	"iter"
	"slices"
)

// The tests assemble modules by hand, so that each can be wrong in exactly one
// way. A module is a header and sections, a section is parts.

// Section ids, as the format numbers them.
const (
	secCustom byte = iota
	secType
	secImport
	secFunction
	secTable
	secMemory
	secGlobal
	secExport
	secStart
	secElement
	secCode
	secData
	secDataCount
)

// Value types.
const (
	i32       byte = 0x7f
	i64       byte = 0x7e
	funcref   byte = 0x70
	externref byte = 0x6f
)

const end byte = 0x0b

// u is an unsigned LEB128.
func u(v int) []byte {
	var b []byte
	for n := uint64(v); ; n >>= 7 {
		if n < 0x80 {
			return append(b, byte(n))
		}
		b = append(b, byte(n)|0x80)
	}
}

// cat joins parts: a byte stands for itself, an int for its LEB128, a string
// for a name with its length, bytes for themselves.
func cat(parts ...any) []byte {
	var b []byte
	for _, p := range parts {
		switch p := p.(type) {
		case byte:
			b = append(b, p)
		case int:
			b = append(b, u(p)...)
		case string:
			b = append(append(b, u(len(p))...), p...)
		case []byte:
			b = append(b, p...)
		default:
			panic("cat: not a part")
		}
	}
	return b
}

// vec is a list with its length in front.
func vec(items ...[]byte) []byte { return cat(len(items), bytes.Join(items, nil)) }

// many is a list of n equal items.
func many(n int, item []byte) []byte { return cat(n, bytes.Repeat(item, n)) }

func section(id byte, parts ...any) []byte {
	content := cat(parts...)
	return cat(id, len(content), content)
}

func header() []byte { return []byte("\x00asm\x01\x00\x00\x00") }

func module(sections ...[]byte) []byte { return cat(header(), bytes.Join(sections, nil)) }

// fn is a function type.
func fn(params, results []byte) []byte {
	return cat(byte(0x60), len(params), params, len(results), results)
}

// body is a function body without locals; code leaves out the final end.
func body(code ...any) []byte { return bodyWithLocals(vec(), code...) }

func bodyWithLocals(locals []byte, code ...any) []byte {
	content := cat(locals, cat(code...), end)
	return cat(len(content), content)
}

// function is a module of one function of type () -> (); code leaves out the
// final end.
func function(code ...any) []byte { return functionWith(nil, body(code...)) }

// functionWith is a module of one function of type () -> () with a whole body,
// and with the sections that come between functions and code.
func functionWith(between []byte, body []byte) []byte {
	return module(section(secType, vec(fn(nil, nil))), section(secFunction, vec(u(0))), between, section(secCode, vec(body)))
}

// memory is a memory section of one page.
func memory() []byte { return section(secMemory, vec(cat(byte(0), 1))) }

// rich is a valid module that uses every section and most forms of
// instruction: the seed that truncation and mutation start from.
func rich() []byte {
	code := body(
		byte(0x41), 0, byte(0x04), byte(0x40), byte(0x01), byte(0x05), byte(0x01), end, // if else
		byte(0x02), byte(0x40), byte(0x03), i32, byte(0x41), 1, end, byte(0x0d), 0, end, // block, loop, br_if
		byte(0x02), byte(0x40), byte(0x41), 0, byte(0x0e), vec(u(0), u(1)), 0, end, // br_table
		byte(0x42), 5, byte(0xa7), byte(0x1a), // i64.const, wrap
		byte(0x43), make([]byte, 4), byte(0x1a), byte(0x44), make([]byte, 8), byte(0x1a),
		byte(0x41), 0, byte(0x28), 2, 0, byte(0x1a), // i32.load
		byte(0x3f), byte(0), byte(0x40), byte(0), byte(0x1a), // memory.size, grow
		byte(0x10), 0, byte(0x41), 0, byte(0x11), 0, 0, // call, call_indirect
		byte(0x23), 1, byte(0x24), 1, // global.get, set
		byte(0xd0), funcref, byte(0xd1), byte(0x1a), byte(0xd2), 1, byte(0x1a), // references
		byte(0x41), 0, byte(0x25), 0, byte(0x1a), // table.get
		byte(0x41), 0, byte(0x41), 0, byte(0x41), 0, byte(0xfc), 8, 0, byte(0), // memory.init
		byte(0xfc), 9, 0, // data.drop
		byte(0x41), 0, byte(0x41), 0, byte(0x41), 0, byte(0xfc), 10, byte(0), byte(0), // memory.copy
		byte(0x41), 0, byte(0x41), 0, byte(0x41), 0, byte(0xfc), 11, byte(0), // memory.fill
		byte(0x41), 0, byte(0x41), 0, byte(0x41), 0, byte(0xfc), 12, 1, 0, // table.init
		byte(0xfc), 13, 1, // elem.drop
		byte(0x41), 0, byte(0x41), 0, byte(0x41), 0, byte(0xfc), 14, 0, 0, // table.copy
		byte(0xfc), 16, 0, byte(0x1a), // table.size
		byte(0xfd), 12, make([]byte, 16), byte(0xfd), 12, make([]byte, 16), byte(0xfd), 13, make([]byte, 16), // v128.const, shuffle
		byte(0xfd), 21, byte(15), byte(0x1a), // extract_lane
		byte(0x41), 0, byte(0x41), 0, byte(0x41), 1, byte(0x1c), vec([]byte{i32}), byte(0x1a), // select t
		byte(0x41), 0, byte(0xfd), 12, make([]byte, 16), byte(0xfd), 84, 0, 0, byte(3), byte(0x1a), // load8_lane
		byte(0x12), 0, // return_call
	)
	return module(
		section(secCustom, "producers", []byte{1, 2, 3}),
		section(secType, vec(fn(nil, nil), fn([]byte{i32, i64}, []byte{i32}))),
		section(secImport, vec(
			cat("weir", "f", byte(0), 0),
			cat("weir", "g", byte(3), i32, byte(0)),
		)),
		section(secFunction, vec(u(0))),
		section(secTable, vec(cat(funcref, byte(1), 2, 10))),
		section(secMemory, vec(cat(byte(1), 1, 2))),
		section(secGlobal, vec(cat(i32, byte(1), byte(0x23), 0, byte(0x41), 1, byte(0x6a), end))),
		section(secExport, vec(cat("run", byte(0), 1), cat("memory", byte(2), 0), cat("t", byte(1), 0), cat("g", byte(3), 1))),
		section(secStart, 0),
		section(secElement, vec(
			cat(0, byte(0x41), 0, end, vec(u(1))),
			cat(5, funcref, vec(cat(byte(0xd2), 1, end), cat(byte(0xd0), funcref, end))),
		)),
		section(secDataCount, 1),
		section(secCode, vec(code)),
		section(secData, vec(cat(0, byte(0x41), 8, end, "hello"))),
		section(secCustom, "name", []byte{0xff}),
	)
}

// span is where something lies in a module.
type span struct{ start, end int }

// eachSection goes through the sections of a module, each with its id and size.
func eachSection(b []byte) iter.Seq[span] {
	return func(yield func(span) bool) {
		for p := 8; p < len(b); {
			size, n, shift := 0, 1, 0
			for ; ; n++ {
				size |= int(b[p+n]&0x7f) << shift
				shift += 7
				if b[p+n] < 0x80 {
					break
				}
			}
			at := span{p, p + n + 1 + size}
			if !yield(at) {
				return
			}
			p = at.end
		}
	}
}

// richBoundaries are the offsets at which rich may be cut without cutting a
// section.
func richBoundaries() []int {
	at := []int{8}
	for s := range eachSection(rich()) {
		at = append(at, s.end)
	}
	return slices.Clip(at)
}
