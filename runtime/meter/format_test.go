package meter_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/runtime/meter"
)

// refusal is a module that is refused, and a part of what its error says.
type refusal struct {
	name   string
	module []byte
	words  string
}

func requireMalformed(t *testing.T, tests []refusal) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { requireRefused(t, tt.module, meter.ErrMalformed, tt.words) })
	}
}

func TestWhatIsNotAModule(t *testing.T) {
	for _, tt := range []struct {
		name string
		b    string
		kind error
	}{
		{"nothing", "", meter.ErrTruncated},
		{"half the magic", "\x00a", meter.ErrTruncated},
		{"no version", "\x00asm", meter.ErrTruncated},
		{"half a version", "\x00asm\x01\x00", meter.ErrTruncated},
		{"text format", "(module)", meter.ErrNotWasm},
		{"an executable", "\x7fELF\x02\x01\x01\x00", meter.ErrNotWasm},
		{"one other byte", "M", meter.ErrNotWasm},
		{"a component", "\x00asm\x0d\x00\x01\x00", meter.ErrComponent},
		{"a later version", "\x00asm\x02\x00\x00\x00", meter.ErrMalformed},
		{"a section without size", "\x00asm\x01\x00\x00\x00\x01", meter.ErrTruncated},
		{"a section cut off", "\x00asm\x01\x00\x00\x00\x01\x02\x00", meter.ErrTruncated},
	} {
		t.Run(tt.name, func(t *testing.T) { requireRefused(t, []byte(tt.b), tt.kind, "") })
	}
}

// TestForeignFeatures: what is outside the accepted features is refused by its
// name, wherever it shows.
func TestForeignFeatures(t *testing.T) {
	op := func(code ...any) []byte { return functionWith(memory(), body(code...)) }
	for _, tt := range []struct {
		feature, where string
		module         []byte
	}{
		{"threads", "shared memory", module(section(secMemory, vec(cat(byte(3), 1, 1))))},
		{"threads", "imported shared memory", module(section(secImport, vec(cat("", "", byte(2), byte(3), 1, 1))))},
		{"threads", "shared global", module(section(secGlobal, vec(cat(i32, byte(3), byte(0x41), 0, end))))},
		{"threads", "atomic.fence", op(byte(0xfe), 3, byte(0))},
		{"threads", "i32.atomic.load", op(byte(0x41), 0, byte(0xfe), 0x10, 2, 0)},
		{"memory64", "memory", module(section(secMemory, vec(cat(byte(4), 1))))},
		{"memory64", "memory with maximum", module(section(secMemory, vec(cat(byte(5), 1, 2))))},
		{"memory64", "table", module(section(secTable, vec(cat(funcref, byte(4), 1))))},
		{"multi-memory", "two memories", module(section(secMemory, vec(cat(byte(0), 1), cat(byte(0), 1))))},
		{"multi-memory", "one imported, one not", module(section(secImport, vec(cat("", "", byte(2), byte(0), 1))), memory())},
		{"multi-memory", "load", op(byte(0x41), 0, byte(0x28), 0x42, 1, 0)},
		{"multi-memory", "memory.grow", op(byte(0x41), 0, byte(0x40), byte(1))},
		{"multi-memory", "memory.copy", op(byte(0xfc), 10, byte(0), byte(1))},
		{"multi-memory", "data segment", module(memory(), section(secData, vec(cat(2, 1, byte(0x41), 0, end, 0))))},
		{"custom page sizes", "memory", module(section(secMemory, vec(cat(byte(8), 1, 0))))},
		{"exception handling", "tag section", module(section(13, vec()))},
		{"exception handling", "tag import", module(section(secImport, vec(cat("", "", byte(4), 0, 0))))},
		{"exception handling", "tag export", module(section(secExport, vec(cat("", byte(4), 0))))},
		{"exception handling", "try", op(byte(0x06), byte(0x40), end)},
		{"exception handling", "throw", op(byte(0x08), 0)},
		{"exception handling", "try_table", op(byte(0x1f), byte(0x40), 0, end)},
		{"exception handling", "exnref", module(section(secTable, vec(cat(byte(0x69), byte(0), 1))))},
		{"garbage collection", "struct type", module(section(secType, vec(cat(byte(0x5f), 0))))},
		{"garbage collection", "array type", module(section(secType, vec(cat(byte(0x5e), i32, byte(0)))))},
		{"garbage collection", "recursive types", module(section(secType, vec(cat(byte(0x4e), 0))))},
		{"garbage collection", "anyref local", functionWith(nil, bodyWithLocals(vec(cat(1, byte(0x6e)))))},
		{"garbage collection", "struct.new", op(byte(0xfb), 0, 0)},
		{"garbage collection", "ref.eq", op(byte(0xd3))},
		{"function references", "(ref 0)", module(section(secType, vec(cat(byte(0x60), 1, byte(0x64), 0, 0))))},
		{"function references", "ref.null 0", op(byte(0xd0), byte(0x63))},
		{"function references", "call_ref", op(byte(0x14), 0)},
		{"function references", "br_on_null", op(byte(0xd5), 0)},
		{"function references", "table with initialiser", module(section(secTable, vec(cat(byte(0x40), byte(0), funcref, byte(0), 1, byte(0xd0), funcref, end))))},
		{"relaxed SIMD", "swizzle", op(byte(0xfd), 256)},
		{"relaxed SIMD", "dot", op(byte(0xfd), 275)},
		{"stringref", "section", module(section(14, vec()))},
		{"stringref", "type", module(section(secType, vec(fn([]byte{0x67}, nil))))},
		{"stringref", "string.new", op(byte(0xfb), 0x80)},
		{"stack switching", "cont type", module(section(secType, vec(cat(byte(0x5d), 0))))},
		{"stack switching", "resume", op(byte(0xe3), 0)},
		{"wide arithmetic", "i64.add128", op(byte(0xfc), 19)},
		{"memory control", "memory.discard", op(byte(0xfc), 18, byte(0))},
	} {
		t.Run(tt.feature+" "+tt.where, func(t *testing.T) {
			e := requireRefused(t, tt.module, meter.ErrUnsupported, "build the module without it")
			require.Regexp(t, "^"+tt.feature+":", e.Reason)
		})
	}
}

func TestAcceptedFeatures(t *testing.T) {
	v128 := cat(byte(0xfd), 12, make([]byte, 16))
	for name, b := range map[string][]byte{
		"sign extension":        function(byte(0x41), 0, byte(0xc0), byte(0x1a)),
		"saturating conversion": function(byte(0x43), make([]byte, 4), byte(0xfc), 0, byte(0x1a)),
		"multi-value block": module(section(secType, vec(fn(nil, nil), fn(nil, []byte{i32, i32}))), section(secFunction, vec(u(0))),
			section(secCode, vec(body(byte(0x02), 1, byte(0x41), 0, byte(0x41), 0, end, byte(0x1a), byte(0x1a))))),
		"bulk memory":           functionWith(memory(), body(byte(0x41), 0, byte(0x41), 0, byte(0x41), 0, byte(0xfc), 11, byte(0))),
		"reference types":       module(section(secTable, vec(cat(externref, byte(0), 1), cat(funcref, byte(0), 1)))),
		"SIMD":                  function(v128, v128, byte(0xfd), 255, byte(0x1a), byte(0x1a)),
		"extended constants":    module(section(secGlobal, vec(cat(i64, byte(0), byte(0x42), 2, byte(0x42), 3, byte(0x7e), end)))),
		"tail calls":            function(byte(0x12), 0),
		"indirect tail calls":   functionWith(section(secTable, vec(cat(funcref, byte(0), 1))), body(byte(0x41), 0, byte(0x13), 0, 0)),
		"long LEB128":           function(byte(0x41), []byte{0x80, 0x80, 0x80, 0x80, 0x00}, byte(0x1a)),
		"largest i32":           function(byte(0x41), []byte{0xff, 0xff, 0xff, 0xff, 0x07}, byte(0x1a)),
		"smallest i32":          function(byte(0x41), []byte{0x80, 0x80, 0x80, 0x80, 0x78}, byte(0x1a)),
		"smallest i64":          function(byte(0x42), bytes.Repeat([]byte{0x80}, 9), byte(0x7f), byte(0x1a)),
		"code after a branch":   function(byte(0x0c), 0, byte(0x01)),
		"no data, none counted": module(section(secDataCount, 0)),
		"names of any UTF-8":    module(memory(), section(secExport, vec(cat("", byte(2), 0), cat("\u0000é\U0001f980", byte(2), 0)))),
	} {
		t.Run(name, func(t *testing.T) { requireAccepted(t, b) })
	}
}

func TestMalformedSections(t *testing.T) {
	types := section(secType, vec(fn(nil, nil)))
	requireMalformed(t, []refusal{
		{"unknown section", module(section(15)), "unknown section id 15"},
		{"two of one section", module(types, types), "two of this section"},
		{"out of order", module(memory(), types), "out of order"},
		{"data count after code", module(types, section(secFunction, vec(u(0))), section(secCode, vec(body())), section(secDataCount, 0)), "out of order"},
		{"data count after data", module(section(secData, vec()), section(secDataCount, 0)), "out of order"},
		{"section larger than its contents", module(section(secType, vec(fn(nil, nil)), byte(0))), "end 1 bytes before the section"},
		{"section smaller than its contents", module(section(secType, byte(1), byte(0x60))), "passes the end"},
		{"empty type section", module(section(secType)), "passes the end"},
		{"size of too many bytes", module([]byte{secType, 0x80, 0x80, 0x80, 0x80, 0x80, 0}), "more bytes than 32 bits need"},
		{"size too large", module([]byte{secType, 0xff, 0xff, 0xff, 0xff, 0x1f}), "larger than 32 bits"},
		{"custom section without name", module(section(secCustom)), "passes the end"},
		{"custom name not UTF-8", module(section(secCustom, "\xff")), "UTF-8"},

		{"unknown form of type", module(section(secType, vec([]byte{0x61, 0, 0}))), "unknown form of type 0x61"},
		{"unknown value type", module(section(secType, vec(fn([]byte{0x79}, nil)))), "unknown value type 0x79"},

		{"import of an unknown kind", module(section(secImport, vec(cat("", "", byte(5), 0)))), "unknown kind of import 5"},
		{"import of an unknown type", module(section(secImport, vec(cat("", "", byte(0), 0)))), "unknown type 0"},
		{"import's module not UTF-8", module(section(secImport, vec(cat("\xc0\x80", "", byte(2), byte(0), 0)))), "UTF-8"},
		{"import's name not UTF-8", module(section(secImport, vec(cat("", "\xed\xa0\x80", byte(2), byte(0), 0)))), "UTF-8"},

		{"function of an unknown type", module(section(secFunction, vec(u(0)))), "unknown type 0"},
		{"functions without code", module(types, section(secFunction, vec(u(0)))), "declares 1 functions, the code section has 0"},
		{"code without functions", module(types, section(secCode, vec(body()))), "declares 0 functions, the code section has 1"},
		{"more code than functions", module(types, section(secFunction, vec(u(0))), section(secCode, vec(body(), body()))), "declares 1 functions, the code section has 2"},

		{"table of numbers", module(section(secTable, vec(cat(i32, byte(0), 1)))), "not a reference type"},
		{"table's minimum above its maximum", module(section(secTable, vec(cat(funcref, byte(1), 2, 1)))), "minimum of 2 elements is above its maximum of 1"},
		{"unknown flags of limits", module(section(secTable, vec(cat(funcref, byte(0x10), 1)))), "unknown flags of limits"},
		{"memory's minimum above its maximum", module(section(secMemory, vec(cat(byte(1), 2, 1)))), "minimum of 2 pages is above its maximum of 1"},

		{"unknown mutability", module(section(secGlobal, vec(cat(i32, byte(4), byte(0x41), 0, end)))), "unknown mutability"},

		{"export of an unknown kind", module(section(secExport, vec(cat("", byte(5), 0)))), "unknown kind of export 5"},
		{"export of an unknown function", module(section(secExport, vec(cat("", byte(0), 0)))), "unknown function 0"},
		{"export of an unknown table", module(section(secExport, vec(cat("", byte(1), 0)))), "unknown table 0"},
		{"export of an unknown memory", module(section(secExport, vec(cat("", byte(2), 0)))), "unknown memory 0"},
		{"export of an unknown global", module(section(secExport, vec(cat("", byte(3), 0)))), "unknown global 0"},
		{"one name twice", module(memory(), section(secExport, vec(cat("x", byte(2), 0), cat("x", byte(2), 0)))), `two exports are called "x"`},
		{"export's name not UTF-8", module(memory(), section(secExport, vec(cat("\xfe", byte(2), 0)))), "UTF-8"},

		{"unknown start function", module(section(secStart, 0)), "unknown function 0"},
		{"start function with a result", module(section(secType, vec(fn(nil, []byte{i32}))), section(secImport, vec(cat("", "", byte(0), 0))), section(secStart, 0)), "it must be () -> ()"},
		{"start function with a parameter", module(section(secType, vec(fn([]byte{i32}, nil))), section(secImport, vec(cat("", "", byte(0), 0))), section(secStart, 0)), "it must be () -> ()"},

		{"data counted, none there", module(section(secDataCount, 1)), "1 data segments are declared, the data section has 0"},
		{"data counted wrongly", module(section(secDataCount, 1), section(secData, vec(cat(1, 0), cat(1, 0)))), "1 data segments are declared, the data section has 2"},
	})
}

func TestMalformedSegments(t *testing.T) {
	table := section(secTable, vec(cat(funcref, byte(0), 1), cat(externref, byte(0), 1)))
	zero := cat(byte(0x41), 0, end)
	elem := func(parts ...any) []byte { return module(table, section(secElement, vec(cat(parts...)))) }
	requireMalformed(t, []refusal{
		{"unknown flags of elements", elem(8), "unknown flags"},
		{"no table", module(section(secElement, vec(cat(0, zero, vec())))), "unknown table 0"},
		{"unknown table", elem(2, 2, zero, byte(0), vec()), "unknown table 2"},
		{"unknown kind of elements", elem(1, byte(1), vec()), "unknown kind of elements"},
		{"unknown function", elem(0, zero, vec(u(0))), "unknown function 0"},
		{"unknown function in an expression", elem(4, zero, vec(cat(byte(0xd2), 0, end))), "unknown function 0"},
		{"elements of numbers", elem(5, i32, vec()), "not a reference type"},
		{"functions for a table of externref", elem(2, 1, zero, byte(0), vec()), "a segment of funcref for table 1 of externref"},
		{"externref for a table of functions", elem(6, 0, zero, externref, vec()), "a segment of externref for table 0 of funcref"},
		{"a null of another type", elem(5, funcref, vec(cat(byte(0xd0), externref, end))), "must give one value of type funcref"},
		{"an offset of 64 bits", elem(0, byte(0x42), 0, end, vec()), "must give one value of type i32"},

		{"unknown flags of data", module(memory(), section(secData, vec(cat(3, 0)))), "unknown flags"},
		{"data without memory", module(section(secData, vec(cat(0, zero, 0)))), "has no memory"},
		{"data past its section", module(memory(), section(secData, vec(cat(1, 5, byte(0))))), "passes the end"},
		{"data at an offset of 64 bits", module(memory(), section(secData, vec(cat(0, byte(0x42), 0, end, 0)))), "must give one value of type i32"},
	})
}

func TestMalformedConstantExpressions(t *testing.T) {
	imports := section(secImport, vec(
		cat("", "const", byte(3), i32, byte(0)),
		cat("", "var", byte(3), i32, byte(1)),
	))
	global := func(code ...any) []byte {
		return module(imports, section(secGlobal, vec(
			cat(i32, byte(0), byte(0x41), 0, end),
			cat(i32, byte(0), cat(code...), end),
		)))
	}
	requireAccepted(t, global(byte(0x23), 0))
	requireMalformed(t, []refusal{
		{"empty", global(), "must give one value of type i32"},
		{"two values", global(byte(0x41), 0, byte(0x41), 0), "must give one value of type i32"},
		{"another type", global(byte(0x42), 0), "must give one value of type i32"},
		{"no end", module(section(secGlobal, vec(cat(i32, byte(0), byte(0x41), 0)))), "passes the end"},
		{"not constant", global(byte(0x41), 0, byte(0x67)), "opcode 0x67 is not constant"},
		{"division", global(byte(0x41), 1, byte(0x41), 1, byte(0x6d)), "not constant"},
		{"a call", global(byte(0x10), 0), "not constant"},
		{"a block", global(byte(0x02), i32, byte(0x41), 0, end), "not constant"},
		{"one operand", global(byte(0x41), 1, byte(0x6a)), "lacks two values of type i32"},
		{"operands of another type", global(byte(0x42), 1, byte(0x42), 1, byte(0x6a)), "lacks two values of type i32"},
		{"a mutable import", global(byte(0x23), 1), "not an immutable import"},
		{"an own global", global(byte(0x23), 2), "not an immutable import"},
		{"itself", global(byte(0x23), 3), "unknown global 3"},
		{"unknown function", global(byte(0xd2), 0), "unknown function 0"},
	})
}

func TestMalformedCode(t *testing.T) {
	op := func(code ...any) []byte { return functionWith(memory(), body(code...)) }
	raw := func(content ...any) []byte { b := cat(content...); return functionWith(nil, cat(len(b), b)) }
	vector := func(sub int, rest ...any) []byte { return op(byte(0xfd), sub, cat(rest...)) }
	requireMalformed(t, []refusal{
		{"empty body", raw(), "passes the end"},
		{"no end", raw(vec(), byte(1)), "passes the end"},
		{"code after the end", raw(vec(), end, byte(1)), "ends 1 bytes before its body"},
		{"a block left open", raw(vec(), byte(0x02), byte(0x40), end), "passes the end"},
		{"body past its section", module(section(secType, vec(fn(nil, nil))), section(secFunction, vec(u(0))), section(secCode, 1, 10, byte(0), end)), "passes the end"},
		{"local of an unknown type", functionWith(nil, bodyWithLocals(vec(cat(1, byte(0x40))))), "unknown value type 0x40"},

		{"else alone", op(byte(0x05)), "else outside an if"},
		{"else in a block", op(byte(0x02), byte(0x40), byte(0x05), end), "else outside an if"},
		{"two elses", op(byte(0x41), 0, byte(0x04), byte(0x40), byte(0x05), byte(0x05), end), "else outside an if"},
		{"block in an if takes no else", op(byte(0x41), 0, byte(0x04), byte(0x40), byte(0x03), byte(0x40), byte(0x05), end, end), "else outside an if"},

		{"unknown local", op(byte(0x20), 0), "unknown local 0"},
		{"unknown global", op(byte(0x23), 0), "unknown global 0"},
		{"unknown function", op(byte(0x10), 1), "unknown function 1"},
		{"unknown function of a tail call", op(byte(0x12), 1), "unknown function 1"},
		{"unknown function of ref.func", op(byte(0xd2), 1), "unknown function 1"},
		{"unknown label", op(byte(0x0c), 1), "unknown label 1"},
		{"unknown label in a block", op(byte(0x02), byte(0x40), byte(0x0c), 2, end), "unknown label 2"},
		{"unknown target", op(byte(0x0e), vec(u(1)), 0), "unknown label 1"},
		{"unknown default target", op(byte(0x0e), vec(u(0)), 1), "unknown label 1"},
		{"unknown block type", op(byte(0x02), 1, end), "unknown type 1"},
		{"block type of no value type", op(byte(0x02), byte(0x41), end), "unknown value type 0x41"},
		{"negative block type", op(byte(0x02), []byte{0xff, 0x7f}, end), "neither a value type nor an index"},
		{"unknown type of call_indirect", functionWith(section(secTable, vec(cat(funcref, byte(0), 1))), body(byte(0x11), 1, 0)), "unknown type 1"},
		{"unknown table of call_indirect", op(byte(0x11), 0, 0), "unknown table 0"},
		{"unknown table", op(byte(0x25), 0), "unknown table 0"},
		{"unknown table of table.copy", functionWith(section(secTable, vec(cat(funcref, byte(0), 1))), body(byte(0xfc), 14, 0, 1)), "unknown table 1"},
		{"unknown element segment", op(byte(0xfc), 13, 0), "unknown element segment 0"},
		{"unknown element segment of table.init", functionWith(section(secTable, vec(cat(funcref, byte(0), 1))), body(byte(0xfc), 12, 0, 0)), "unknown element segment 0"},
		{"memory.init without a data count", op(byte(0xfc), 8, 0, byte(0)), "needs a data count section"},
		{"data.drop without a data count", op(byte(0xfc), 9, 0), "needs a data count section"},
		{"unknown data segment", functionWith(cat(memory(), section(secDataCount, 0)), body(byte(0xfc), 9, 0)), "unknown data segment 0"},
		{"immutable global set", functionWith(section(secGlobal, vec(cat(i32, byte(0), byte(0x41), 0, end))), body(byte(0x41), 0, byte(0x24), 0)), "immutable"},

		{"load without memory", function(byte(0x41), 0, byte(0x28), 2, 0), "no memory"},
		{"memory.size without memory", function(byte(0x3f), byte(0)), "no memory"},
		{"memory.copy without memory", function(byte(0xfc), 10, byte(0), byte(0)), "no memory"},
		{"alignment of i32.load8_u", op(byte(0x2d), 1, 0), "above the natural 2^0"},
		{"alignment of i32.load", op(byte(0x28), 3, 0), "above the natural 2^2"},
		{"alignment of i64.load", op(byte(0x29), 4, 0), "above the natural 2^3"},
		{"alignment of i64.store32", op(byte(0x3e), 3, 0), "above the natural 2^2"},
		{"alignment of v128.load", vector(0, 5, 0), "above the natural 2^4"},
		{"alignment of v128.load64_splat", vector(10, 4, 0), "above the natural 2^3"},
		{"alignment of v128.load16_lane", vector(85, 2, 0, byte(0)), "above the natural 2^1"},
		{"alignment of 2^128", op(byte(0x28), 0x80, 0), "above the natural"},

		{"lane of i8x16", vector(21, byte(16)), "lane 16 of 16"},
		{"lane of i16x8", vector(24, byte(8)), "lane 8 of 8"},
		{"lane of i32x4", vector(28, byte(4)), "lane 4 of 4"},
		{"lane of i64x2", vector(30, byte(2)), "lane 2 of 2"},
		{"lane of f32x4", vector(32, byte(4)), "lane 4 of 4"},
		{"lane of f64x2", vector(34, byte(2)), "lane 2 of 2"},
		{"lane of load64_lane", vector(87, 0, 0, byte(2)), "lane 2 of 2"},
		{"lane of store8_lane", vector(88, 0, 0, byte(16)), "lane 16 of 16"},
		{"lane of shuffle", vector(13, make([]byte, 15), byte(32)), "lane 32 of 32"},

		{"constant too large", op(byte(0x41), []byte{0xff, 0xff, 0xff, 0xff, 0x0f}), "larger than 32 bits"},
		{"negative constant too large", op(byte(0x41), []byte{0x80, 0x80, 0x80, 0x80, 0x70}), "larger than 32 bits"},
		{"constant of too many bytes", op(byte(0x41), []byte{0x80, 0x80, 0x80, 0x80, 0x80, 0}), "more bytes than 32 bits need"},
		{"constant of 65 bits", op(byte(0x42), bytes.Repeat([]byte{0x80}, 9), byte(1)), "larger than 64 bits"},
		{"constant of eleven bytes", op(byte(0x42), bytes.Repeat([]byte{0x80}, 10), byte(0)), "more bytes than 64 bits need"},
		{"constant cut off", raw(vec(), byte(0x44), make([]byte, 7)), "passes the end"},
		{"no type of select", op(byte(0x1c), 0), "a select of 0 types"},
		{"two types of select", op(byte(0x1c), 2, i32, i32), "a select of 2 types"},
		{"null of a number", op(byte(0xd0), i32), "not a reference type"},

		{"unknown opcode", op(byte(0x27)), "unknown opcode 0x27"},
		{"the last opcode", op(byte(0xff)), "unknown opcode 0xff"},
		{"unknown bulk opcode", op(byte(0xfc), 23), "unknown opcode 0xfc 23"},
		{"unknown vector opcode", vector(154), "unknown opcode 0xfd 154"},
		{"vector opcode past all", vector(276), "unknown opcode 0xfd 276"},
		{"largest vector opcode", op(byte(0xfd), most), "unknown opcode 0xfd"},
	})
}
