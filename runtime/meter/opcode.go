package meter

import "fmt"

// opcode is an instruction's opcode; for one behind a prefix byte, the prefix
// is in the bits from 16 up and the number that follows it below.
type opcode uint32

const (
	opUnreachable        opcode = 0x00
	opNop                opcode = 0x01
	opBlock              opcode = 0x02
	opLoop               opcode = 0x03
	opIf                 opcode = 0x04
	opElse               opcode = 0x05
	opEnd                opcode = 0x0b
	opBr                 opcode = 0x0c
	opBrIf               opcode = 0x0d
	opBrTable            opcode = 0x0e
	opReturn             opcode = 0x0f
	opCall               opcode = 0x10
	opCallIndirect       opcode = 0x11
	opReturnCall         opcode = 0x12
	opReturnCallIndirect opcode = 0x13
	opLocalGet           opcode = 0x20
	opLocalSet           opcode = 0x21
	opLocalTee           opcode = 0x22
	opGlobalGet          opcode = 0x23
	opGlobalSet          opcode = 0x24
	opTableGet           opcode = 0x25
	opTableSet           opcode = 0x26
	opMemorySize         opcode = 0x3f
	opMemoryGrow         opcode = 0x40
	opI32Const           opcode = 0x41
	opI64Const           opcode = 0x42
	opF32Const           opcode = 0x43
	opF64Const           opcode = 0x44
	opI32Eq              opcode = 0x46
	opI32GtU             opcode = 0x4b
	opI64GtU             opcode = 0x56
	opI64GeS             opcode = 0x59
	opI32Add             opcode = 0x6a
	opI32Sub             opcode = 0x6b
	opI32Mul             opcode = 0x6c
	opI32Or              opcode = 0x72
	opI64Add             opcode = 0x7c
	opI64Sub             opcode = 0x7d
	opI64Mul             opcode = 0x7e
	opI64Shl             opcode = 0x86
	opI64ShrU            opcode = 0x88
	opF32Sqrt            opcode = 0x91
	opF32Div             opcode = 0x95
	opF64Sqrt            opcode = 0x9f
	opF64Div             opcode = 0xa3
	opI64ExtendS         opcode = 0xac
	opI64ExtendU         opcode = 0xad
	opRefNull            opcode = 0xd0
	opRefFunc            opcode = 0xd2
	opMemoryInit                = prefixMisc<<16 | 8
	opDataDrop                  = prefixMisc<<16 | 9
	opMemoryCopy                = prefixMisc<<16 | 10
	opMemoryFill                = prefixMisc<<16 | 11
	opTableInit                 = prefixMisc<<16 | 12
	opElemDrop                  = prefixMisc<<16 | 13
	opTableCopy                 = prefixMisc<<16 | 14
	opTableGrow                 = prefixMisc<<16 | 15
	opTableFill                 = prefixMisc<<16 | 17
	opV128Const                 = prefixVector<<16 | 12
)

// The bytes that announce an opcode of more than one byte.
const (
	prefixGC      opcode = 0xfb
	prefixMisc    opcode = 0xfc
	prefixVector  opcode = 0xfd
	prefixThreads opcode = 0xfe
)

// String gives the opcode in hexadecimal, as the specification's index does.
func (o opcode) String() string {
	if o > 0xff {
		return fmt.Sprintf("%#x %d", uint32(o>>16), uint32(o&0xffff))
	}
	return fmt.Sprintf("%#x", uint32(o))
}

// form says which immediates follow an opcode.
type form byte

const (
	formUnknown    form = iota // no such opcode
	formForeign                // of a feature that is not accepted
	formPlain                  // none
	formBlock                  // a block type
	formLabel                  // a label
	formLabels                 // br_table's labels
	formFunc                   // a function index
	formIndirect               // a type index and a table index
	formSelect                 // a list of value types
	formLocal                  // a local index
	formGlobal                 // a global index
	formTable                  // a table index
	formTables                 // two table indexes: into, from
	formMemarg                 // alignment and offset
	formMemargLane             // alignment, offset and a lane
	formMemory                 // a memory index, a zero byte
	formMemories               // two of them
	formI32
	formI64
	formBytes    // lanes raw bytes
	formRefType  // a reference type
	formLane     // a lane index
	formShuffle  // sixteen lane indexes
	formData     // a data segment
	formDataInit // a data segment and a memory index
	formElem     // an element segment
	formElemInit // an element segment and a table index
	formPrefix   // the rest of the opcode
)

// encoding says how an opcode is followed.
type encoding struct {
	form form
	// align is the exponent of the natural alignment of a memory access.
	align byte
	// lanes is how many lanes an index chooses from, or how many raw bytes
	// follow.
	lanes byte
	// feature names what a foreign opcode belongs to.
	feature string
}

// The encodings of the opcodes of one byte, of those behind prefixMisc, and of
// those behind prefixVector.
var (
	encodings       = oneByteEncodings()
	miscEncodings   = prefixedMiscEncodings()
	vectorEncodings = prefixedVectorEncodings()
)

func oneByteEncodings() (t [256]encoding) {
	set := func(e encoding, from, to int) {
		for ; from <= to; from++ {
			t[from] = e
		}
	}
	forms := []struct {
		form     form
		from, to int
	}{
		{formPlain, 0x00, 0x01},    // unreachable, nop
		{formBlock, 0x02, 0x04},    // block, loop, if
		{formPlain, 0x05, 0x05},    // else
		{formPlain, 0x0b, 0x0b},    // end
		{formLabel, 0x0c, 0x0d},    // br, br_if
		{formLabels, 0x0e, 0x0e},   // br_table
		{formPlain, 0x0f, 0x0f},    // return
		{formFunc, 0x10, 0x10},     // call
		{formIndirect, 0x11, 0x11}, // call_indirect
		{formFunc, 0x12, 0x12},     // return_call
		{formIndirect, 0x13, 0x13}, // return_call_indirect
		{formPlain, 0x1a, 0x1b},    // drop, select
		{formSelect, 0x1c, 0x1c},   // select t
		{formLocal, 0x20, 0x22},    // local.get, set, tee
		{formGlobal, 0x23, 0x24},   // global.get, set
		{formTable, 0x25, 0x26},    // table.get, set
		{formMemory, 0x3f, 0x40},   // memory.size, grow
		{formI32, 0x41, 0x41},
		{formI64, 0x42, 0x42},
		{formPlain, 0x45, 0xc4},   // comparison, arithmetic, conversion, sign extension
		{formRefType, 0xd0, 0xd0}, // ref.null
		{formPlain, 0xd1, 0xd1},   // ref.is_null
		{formFunc, 0xd2, 0xd2},    // ref.func
		{formPrefix, 0xfb, 0xfe},
	}
	for _, f := range forms {
		set(encoding{form: f.form}, f.from, f.to)
	}
	t[opF32Const] = encoding{form: formBytes, lanes: 4}
	t[opF64Const] = encoding{form: formBytes, lanes: 8}
	// The loads and stores from 0x28 on, by the exponent of their width.
	for i, align := range []byte{
		2, 3, 2, 3, // i32, i64, f32, f64 load
		0, 0, 1, 1, // i32.load8, load16
		0, 0, 1, 1, 2, 2, // i64.load8, load16, load32
		2, 3, 2, 3, // i32, i64, f32, f64 store
		0, 1, // i32.store8, store16
		0, 1, 2, // i64.store8, store16, store32
	} {
		t[0x28+i] = encoding{form: formMemarg, align: align}
	}
	foreign := []struct {
		feature  string
		from, to int
	}{
		{featureExceptions, 0x06, 0x0a}, // try, catch, throw, rethrow, throw_ref
		{featureFuncRefs, 0x14, 0x15},   // call_ref, return_call_ref
		{featureExceptions, 0x18, 0x19}, // delegate, catch_all
		{featureExceptions, 0x1f, 0x1f}, // try_table
		{featureGC, 0xd3, 0xd3},         // ref.eq
		{featureFuncRefs, 0xd4, 0xd6},   // ref.as_non_null, br_on_null, br_on_non_null
		{featureStackSwitch, 0xe0, 0xe6},
	}
	for _, f := range foreign {
		set(encoding{form: formForeign, feature: f.feature}, f.from, f.to)
	}
	return t
}

func prefixedMiscEncodings() (t [23]encoding) {
	for i, f := range []form{
		formPlain, formPlain, formPlain, formPlain, // i32.trunc_sat
		formPlain, formPlain, formPlain, formPlain, // i64.trunc_sat
		formDataInit, formData, formMemories, formMemory, // memory.init, data.drop, memory.copy, fill
		formElemInit, formElem, formTables, // table.init, elem.drop, table.copy
		formTable, formTable, formTable, // table.grow, size, fill
	} {
		t[i] = encoding{form: f}
	}
	t[18] = encoding{form: formForeign, feature: featureMemoryControl}
	for i := 19; i <= 22; i++ {
		t[i] = encoding{form: formForeign, feature: featureWideArith}
	}
	return t
}

func prefixedVectorEncodings() (t [276]encoding) {
	for i := range 256 {
		t[i] = encoding{form: formPlain}
	}
	for i, align := range []byte{4, 3, 3, 3, 3, 3, 3, 0, 1, 2, 3, 4} { // load, load extended and splatted, store
		t[i] = encoding{form: formMemarg, align: align}
	}
	t[12] = encoding{form: formBytes, lanes: 16} // v128.const
	t[13] = encoding{form: formShuffle}
	for i, lanes := range []byte{16, 16, 16, 8, 8, 8, 4, 4, 2, 2, 4, 4, 2, 2} { // extract_lane, replace_lane
		t[21+i] = encoding{form: formLane, lanes: lanes}
	}
	for i := range 4 {
		lane := encoding{form: formMemargLane, align: byte(i), lanes: 16 >> i}
		t[84+i], t[88+i] = lane, lane // load_lane, store_lane
	}
	t[92] = encoding{form: formMemarg, align: 2} // load32_zero
	t[93] = encoding{form: formMemarg, align: 3} // load64_zero
	for _, hole := range []int{
		154, 162, 165, 166, 175, 176, 178, 179, 180, 187, 194, 197, 198,
		207, 208, 210, 211, 212, 226, 238,
	} {
		t[hole] = encoding{}
	}
	for i := 256; i < len(t); i++ {
		t[i] = encoding{form: formForeign, feature: featureRelaxedSIMD}
	}
	return t
}
