package wasmtest

import (
	"encoding/binary"
	"slices"
	"strings"
)

// Module is a module being assembled. The zero value is an empty one. Imports
// come before functions.
type Module struct {
	types   [][]byte
	imports [][]byte
	funcs   []uint32 // type of each defined function
	bodies  [][]byte
	tables  [][]byte
	memory  []byte
	globals [][]byte
	exports [][]byte
	start   []byte
	elems   [][]byte
	data    [][]byte
	passive bool // there are segments of data that code names
	customs [][]byte
	nImport uint32 // imported functions
}

// Func is the index of a function.
type Func uint32

// Sections of the binary format, in the order in which Bytes writes them.
const (
	secCustom, secType, secImport, secFunc, secTable, secMemory, secGlobal = 0, 1, 2, 3, 4, 5, 6
	secExport, secStart, secElem, secCode, secData, secDataCount           = 7, 8, 9, 10, 11, 12
)

// Type is the index of a signature such as "ii:i": letters i, I, f, F and V are
// i32, i64, f32, f64 and v128.
func (m *Module) Type(signature string) uint32 {
	params, results, _ := strings.Cut(signature, ":")
	b := slices.Concat([]byte{0x60}, valueTypes(params), valueTypes(results))
	for i, t := range m.types {
		if slices.Equal(t, b) {
			return uint32(i)
		}
	}
	m.types = append(m.types, b)
	return uint32(len(m.types) - 1)
}

var letters = map[rune]byte{'i': 0x7f, 'I': 0x7e, 'f': 0x7d, 'F': 0x7c, 'V': 0x7b}

func valueTypes(s string) []byte {
	b := Uint(uint64(len(s)))
	for _, r := range s {
		b = append(b, letters[r])
	}
	return b
}

// Import adds an imported function with a signature such as "ii:i".
func (m *Module) Import(module, name, signature string) Func {
	m.imports = append(m.imports, slices.Concat(text(module), text(name), []byte{0}, Uint(uint64(m.Type(signature)))))
	m.nImport++
	return Func(m.nImport - 1)
}

// ImportOther adds an import of another kind: 1 table, 2 memory, 3 global, with
// its description as the format encodes it.
func (m *Module) ImportOther(module, name string, kind byte, description ...byte) {
	m.imports = append(m.imports, slices.Concat(text(module), text(name), []byte{kind}, description))
}

// Func adds a function with a signature such as "i:i", locals such as "iI" and
// the given instructions; the closing end is added.
func (m *Module) Func(signature, locals string, body ...[]byte) Func {
	m.funcs = append(m.funcs, m.Type(signature))
	b := Uint(uint64(len(locals)))
	for _, r := range locals {
		b = append(b, 1, letters[r])
	}
	return m.define(append(append(b, slices.Concat(body...)...), 0x0b))
}

// Body adds a function whose body is given as the format encodes it: the local
// declarations, the instructions and the closing end.
func (m *Module) Body(signature string, body []byte) Func {
	m.funcs = append(m.funcs, m.Type(signature))
	return m.define(body)
}

func (m *Module) define(body []byte) Func {
	m.bodies = append(m.bodies, slices.Concat(Uint(uint64(len(body))), body))
	return m.NextFunc() - 1
}

// NextFunc is the index that the next function gets, which code can call before
// it is there.
func (m *Module) NextFunc() Func { return Func(m.nImport + uint32(len(m.funcs))) }

// Memory declares the memory in pages of 64 KiB, with a maximum if one is given,
// and exports it as "memory".
func (m *Module) Memory(pages uint32, max ...uint32) {
	m.memory = limits(pages, max)
	m.ExportAs("memory", 2, 0)
}

// Table declares a table of functions.
func (m *Module) Table(elements uint32, max ...uint32) {
	m.tables = append(m.tables, append([]byte{0x70}, limits(elements, max)...))
}

func limits(low uint32, high []uint32) []byte {
	if len(high) == 0 {
		return append([]byte{0}, Uint(uint64(low))...)
	}
	return slices.Concat([]byte{1}, Uint(uint64(low)), Uint(uint64(high[0])))
}

// Global adds a mutable i32 and returns its index.
func (m *Module) Global(value int32) uint32 { return m.GlobalOf(I32(value)) }

// GlobalOf adds a mutable i32 whose value the instructions push, and returns
// its index.
func (m *Module) GlobalOf(init []byte) uint32 { return m.GlobalAs(0x7f, init) }

// GlobalAs adds a mutable global of a type as the format encodes it, whose value
// the instructions push, and returns its index.
func (m *Module) GlobalAs(typ byte, init []byte) uint32 {
	m.globals = append(m.globals, slices.Concat([]byte{typ, 1}, init, []byte{0x0b}))
	return uint32(len(m.globals) - 1)
}

// Export exports a function.
func (m *Module) Export(name string, f Func) { m.ExportAs(name, 0, uint32(f)) }

// ExportAs exports anything: 0 function, 1 table, 2 memory, 3 global.
func (m *Module) ExportAs(name string, kind byte, index uint32) {
	m.exports = append(m.exports, slices.Concat(text(name), []byte{kind}, Uint(uint64(index))))
}

// Start makes f the start function.
func (m *Module) Start(f Func) { m.start = Uint(uint64(f)) }

// Elements puts functions into table 0, beginning at the given element.
func (m *Module) Elements(at int32, funcs ...Func) {
	b := slices.Concat([]byte{0}, I32(at), []byte{0x0b}, Uint(uint64(len(funcs))))
	for _, f := range funcs {
		b = append(b, Uint(uint64(f))...)
	}
	m.elems = append(m.elems, b)
}

// PassiveElements adds a segment of functions that code puts into tables, and
// returns its index.
func (m *Module) PassiveElements(funcs ...Func) uint32 {
	b := slices.Concat([]byte{1, 0}, Uint(uint64(len(funcs))))
	for _, f := range funcs {
		b = append(b, Uint(uint64(f))...)
	}
	m.elems = append(m.elems, b)
	return uint32(len(m.elems) - 1)
}

// PassiveData adds a segment of bytes that code puts into memory, and returns
// its index.
func (m *Module) PassiveData(b []byte) uint32 {
	m.data = append(m.data, slices.Concat([]byte{1}, Uint(uint64(len(b))), b))
	m.passive = true
	return uint32(len(m.data) - 1)
}

// Data puts bytes into memory.
func (m *Module) Data(at int32, b []byte) {
	m.data = append(m.data, slices.Concat([]byte{0}, I32(at), []byte{0x0b}, Uint(uint64(len(b))), b))
}

// Custom adds a custom section at the end.
func (m *Module) Custom(name string, b []byte) {
	m.customs = append(m.customs, slices.Concat(text(name), b))
}

// Bytes returns the module's binary.
func (m *Module) Bytes() []byte {
	out := []byte("\x00asm\x01\x00\x00\x00")
	section := func(id byte, body []byte) {
		out = append(append(append(out, id), Uint(uint64(len(body)))...), body...)
	}
	vector := func(id byte, items [][]byte) {
		if len(items) > 0 {
			section(id, append(Uint(uint64(len(items))), slices.Concat(items...)...))
		}
	}
	types := make([][]byte, len(m.funcs))
	for i, t := range m.funcs {
		types[i] = Uint(uint64(t))
	}
	vector(secType, m.types)
	vector(secImport, m.imports)
	vector(secFunc, types)
	vector(secTable, m.tables)
	if m.memory != nil {
		vector(secMemory, [][]byte{m.memory})
	}
	vector(secGlobal, m.globals)
	vector(secExport, m.exports)
	if m.start != nil {
		section(secStart, m.start)
	}
	vector(secElem, m.elems)
	if m.passive {
		section(secDataCount, Uint(uint64(len(m.data))))
	}
	vector(secCode, m.bodies)
	vector(secData, m.data)
	for _, c := range m.customs {
		section(secCustom, c)
	}
	return out
}

func text(s string) []byte { return append(Uint(uint64(len(s))), s...) }

// Uint encodes n as unsigned LEB128.
func Uint(n uint64) []byte { return binary.AppendUvarint(nil, n) }

// Int encodes n as signed LEB128.
func Int(n int64) []byte {
	var b []byte
	for {
		low := byte(n & 0x7f)
		n >>= 7
		if n == 0 && low&0x40 == 0 || n == -1 && low&0x40 != 0 {
			return append(b, low)
		}
		b = append(b, low|0x80)
	}
}
