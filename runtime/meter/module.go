package meter

import (
	"fmt"
	"slices"
	"strings"
)

// ValueType is the type of a value, as the binary format encodes it.
type ValueType byte

// The accepted value types.
const (
	I32       ValueType = 0x7f
	I64       ValueType = 0x7e
	F32       ValueType = 0x7d
	F64       ValueType = 0x7c
	V128      ValueType = 0x7b
	FuncRef   ValueType = 0x70
	ExternRef ValueType = 0x6f
)

// String gives the type's name in the text format.
func (t ValueType) String() string {
	switch t {
	case I32:
		return "i32"
	case I64:
		return "i64"
	case F32:
		return "f32"
	case F64:
		return "f64"
	case V128:
		return "v128"
	case FuncRef:
		return "funcref"
	case ExternRef:
		return "externref"
	}
	return fmt.Sprintf("type(%#x)", byte(t))
}

// isRef reports whether the type is one that tables and segments hold.
func (t ValueType) isRef() bool { return t == FuncRef || t == ExternRef }

// isNumber reports whether the type is one that a host can read and write as a
// number of up to 64 bits.
func (t ValueType) isNumber() bool { return t == I32 || t == I64 || t == F32 || t == F64 }

// FuncType is the signature of a function.
type FuncType struct {
	Params, Results []ValueType
}

// String gives the signature as abi.md writes them: "(i32, i32) -> i32",
// "() -> ()".
func (t FuncType) String() string {
	list := func(types []ValueType) string {
		names := make([]string, len(types))
		for i, v := range types {
			names[i] = v.String()
		}
		return strings.Join(names, ", ")
	}
	if len(t.Results) == 1 {
		return "(" + list(t.Params) + ") -> " + list(t.Results)
	}
	return "(" + list(t.Params) + ") -> (" + list(t.Results) + ")"
}

// Equal reports whether both are the same signature.
func (t FuncType) Equal(u FuncType) bool {
	return slices.Equal(t.Params, u.Params) && slices.Equal(t.Results, u.Results)
}

// Kind is what an import or an export is.
type Kind byte

// The kinds of imports and exports, as the binary format encodes them.
const (
	KindFunc   Kind = 0
	KindTable  Kind = 1
	KindMemory Kind = 2
	KindGlobal Kind = 3
)

// String gives the kind's name in the text format.
func (k Kind) String() string {
	switch k {
	case KindFunc:
		return "func"
	case KindTable:
		return "table"
	case KindMemory:
		return "memory"
	case KindGlobal:
		return "global"
	}
	return fmt.Sprintf("kind(%d)", byte(k))
}

// Import is something the module asks its host for.
type Import struct {
	// Module and Name are its two names; both may be empty or hold any UTF-8.
	Module, Name string
	Kind         Kind
	// Index is its place in the index space of its kind: in Tables, in
	// Globals, or the function's index.
	Index uint32
	// Type is a function's signature; empty for the other kinds.
	Type FuncType
}

// Export is something the module offers. Names are unique within a module.
type Export struct {
	Name string
	Kind Kind
	// Index is its place in the index space of its kind, imported entries
	// first.
	Index uint32
	// Type is a function's signature; empty for the other kinds.
	Type FuncType
}

// Limits are the declared bounds of a memory in pages of 64 KiB, or of a table
// in elements. Max says nothing unless HasMax is set.
type Limits struct {
	Min, Max uint32
	HasMax   bool
}

// Memory is a linear memory; Min and Max are in pages of 64 KiB and at most
// MaxPages.
type Memory struct {
	Limits
	Imported bool
}

// Table is a table of references.
type Table struct {
	Limits
	Element  ValueType
	Imported bool
}

// Global is a global variable.
type Global struct {
	Type     ValueType
	Mutable  bool
	Imported bool
}

// Module is what a module declares, after [Parse] has accepted it. It is not
// changed by this package and may be read by several goroutines. It holds on
// to the bytes it was parsed from.
type Module struct {
	Types   []FuncType
	Imports []Import
	Exports []Export

	// Functions gives for each function, imported ones first, the index of
	// its signature in Types.
	Functions []uint32
	// Tables and Globals are whole index spaces, imported entries first.
	Tables  []Table
	Globals []Global
	// Memory is the module's linear memory, or nil: it has at most one.
	Memory *Memory
	// Start is the index of the start function, or nil.
	Start *uint32

	// ElementSegments and DataSegments are how many the module has; Elements
	// is how many entries all element segments hold together.
	ElementSegments, DataSegments, Elements int

	// Custom lists the names of the custom sections in file order; they are
	// what [Module.Stripped] leaves out. Nothing has read their contents.
	Custom []string

	// LargestBody is the encoded size of the largest function body in bytes.
	LargestBody int
	// CompileMemory is how many bytes an engine may take to compile the most
	// expensive function body: what a compilation is charged (abi.md "Load"),
	// 700 for each byte of the body and more where its structure asks for it.
	CompileMemory int64

	bytes    []byte
	sections []section
	imported int // functions
	// longData is how long the data segments are that memory.init takes in
	// pieces, by their indexes.
	longData map[uint32]uint32
}

// section is a section of the file: all of it, id and size included, is
// bytes[start:end].
type section struct {
	id         byte
	start, end int
}

// ImportedFunctions is how many of Functions are imported.
func (m *Module) ImportedFunctions() int { return m.imported }

// Stripped gives the module without its custom sections: the bytes for an
// engine. Nothing in a custom section changes what a module does, and engines
// read some of them with less care than code. The result may share memory with
// what was parsed: neither may be written to.
func (m *Module) Stripped() []byte {
	if len(m.Custom) == 0 {
		return m.bytes
	}
	out := make([]byte, 0, len(m.bytes))
	out = append(out, m.bytes[:headerSize]...)
	for _, s := range m.sections {
		if s.id != sectionCustom {
			out = append(out, m.bytes[s.start:s.end]...)
		}
	}
	return out
}
