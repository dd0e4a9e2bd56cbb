package meter

import "encoding/binary"

// helperType is one of the signatures behind the module's own.
type helperType int

const (
	typeExhausted  helperType = iota // of the host's import
	typeAction                       // of the refuelling and the deferred start
	typeLength                       // of what charges a length, and of memory.grow
	typeGrowFuncs                    // of table.grow
	typeGrowExtern                   // the same
	typeBulk                         // of what does a bulk operation on memory
)

var helperTypes = []FuncType{
	typeExhausted:  {Params: []ValueType{I64}, Results: []ValueType{I64}},
	typeAction:     {},
	typeLength:     {Params: []ValueType{I32}, Results: []ValueType{I32}},
	typeGrowFuncs:  {Params: []ValueType{FuncRef, I32}, Results: []ValueType{I32}},
	typeGrowExtern: {Params: []ValueType{ExternRef, I32}, Results: []ValueType{I32}},
	typeBulk:       {Params: []ValueType{I32, I32, I32}},
}

// helper is a function that the rewriting adds. No function of the module can
// name it: its index is above all original ones, and it is in no table.
type helper struct {
	typ  helperType
	code []byte // with its locals and without its size
}

// helpers are the functions, types and globals that are added behind the
// original ones. Those that not every module needs are made when first asked
// for.
type helpers struct {
	list []helper
	// first is the index of the first helper, behind the shifted functions.
	first uint32
	// types is the index of the first added type.
	types uint32
	// fuel and refused are the added globals, exhausted the host's import,
	// refuel the helper that calls it.
	fuel, refused, exhausted, refuel uint32

	bytes, elements, memory uint32            // 0: not made yet
	tables                  map[uint32]uint32 // by table
	bulks                   map[bulk]uint32
}

func (h *helpers) init(m *Module) {
	*h = helpers{
		first:     uint32(len(m.Functions)) + 1,
		types:     uint32(len(m.Types)),
		fuel:      uint32(len(m.Globals)),
		refused:   uint32(len(m.Globals)) + 1,
		exhausted: uint32(m.imported),
		tables:    map[uint32]uint32{},
		bulks:     map[bulk]uint32{},
	}
	c := appendOp([]byte{0}, opGlobalGet, h.fuel)
	c = appendOp(c, opCall, h.exhausted)
	c = appendOp(c, opGlobalSet, h.fuel)
	h.refuel = h.add(typeAction, c)
}

func (h *helpers) typeIndex(t helperType) uint32 { return h.types + uint32(t) }

// add adds a function; code has its locals and lacks the final end.
func (h *helpers) add(t helperType, code []byte) uint32 {
	h.list = append(h.list, helper{typ: t, code: append(code, byte(opEnd))})
	return h.first + uint32(len(h.list)) - 1
}

// start calls the start function. Exporting that itself would make a reference
// to it valid that was not.
func (h *helpers) start(function uint32) uint32 {
	if function >= h.exhausted {
		function++
	}
	return h.add(typeAction, appendOp([]byte{0}, opCall, function))
}

// check charges a constant cost, and tests the fuel if that is due. The test
// reads the fuel again rather than keep it in a local: engines forward what was
// just stored, and measured no difference.
func (h *helpers) check(c []byte, k check) []byte {
	c = appendOp(c, opGlobalGet, h.fuel)
	c = appendSigned(append(c, byte(opI64Const)), int64(k.cost))
	c = append(c, byte(opI64Sub))
	c = appendOp(c, opGlobalSet, h.fuel)
	if k.test {
		c = h.test(c)
	}
	return c
}

// test refuels where the fuel is below zero. The call is in the second arm of an if
// whose first one is empty: where the arms meet again the default engine goes on
// with the registers as the first one left them. Behind a call, as the only arm,
// everything would be on the stack from there on, called or not.
func (h *helpers) test(c []byte) []byte {
	c = appendOp(c, opGlobalGet, h.fuel)
	c = append(c, byte(opI64Const), 0, byte(opI64GeS), byte(opIf), emptyBlock, byte(opElse))
	return append(appendOp(c, opCall, h.refuel), byte(opEnd))
}

// emptyBlock is the type of a block without parameters and results.
const emptyBlock = 0x40

// length charges the i32 in a local, times two to the shift.
func (h *helpers) length(c []byte, local byte, shift int) []byte {
	c = appendOp(c, opGlobalGet, h.fuel)
	c = append(c, byte(opLocalGet), local, byte(opI64ExtendU))
	switch {
	case shift < 0:
		c = append(appendSigned(append(c, byte(opI64Const)), int64(-shift)), byte(opI64ShrU))
	case shift > 0:
		c = append(appendSigned(append(c, byte(opI64Const)), int64(shift)), byte(opI64Shl))
	}
	c = append(c, byte(opI64Sub))
	c = appendOp(c, opGlobalSet, h.fuel)
	return h.test(c)
}

// lengthOf gives the function that charges the length on top of the stack, in
// bytes or else in elements, and leaves it there.
func (h *helpers) lengthOf(bytes bool) uint32 {
	made, shift := &h.elements, 0
	if bytes {
		made, shift = &h.bytes, -bytesShift
	}
	if *made == 0 {
		*made = h.add(typeLength, append(h.length([]byte{0}, 0, shift), byte(opLocalGet), 0))
	}
	return *made
}

// growMemory gives the function that stands for memory.grow.
func (h *helpers) growMemory() uint32 {
	if h.memory == 0 {
		// Its local 0 is the number of pages, 1 the result.
		c := []byte{1, 1, byte(I32), byte(opLocalGet), 0, byte(opMemoryGrow), 0}
		h.memory = h.add(typeLength, h.grown(c, 0, 1, RefusedMemory, pageShift-bytesShift))
	}
	return h.memory
}

// growTable gives the function that stands for table.grow.
func (h *helpers) growTable(table uint32, element ValueType) uint32 {
	if f, ok := h.tables[table]; ok {
		return f
	}
	typ := typeGrowFuncs
	if element == ExternRef {
		typ = typeGrowExtern
	}
	// Its local 0 is the reference, 1 the number of elements, 2 the result.
	c := []byte{1, 1, byte(I32), byte(opLocalGet), 0, byte(opLocalGet), 1, byte(prefixMisc), byte(opTableGrow & 0xff)}
	f := h.add(typ, h.grown(binary.AppendUvarint(c, uint64(table)), 1, 2, RefusedTable, 0))
	h.tables[table] = f
	return f
}

// grown ends a function that has just grown something, with the result on the
// stack. Growth is charged when it was given: one that is refused does nothing,
// and guests ask for too much to see whether they get it. What was given is
// bounded by the limit of what grows.
func (h *helpers) grown(c []byte, length, result byte, refused int64, shift int) []byte {
	c = append(c, byte(opLocalTee), result)
	c = appendSigned(append(c, byte(opI32Const)), -1)
	c = append(c, byte(opI32Eq), byte(opIf), emptyBlock)
	c = appendOp(c, opGlobalGet, h.refused)
	c = append(appendSigned(append(c, byte(opI32Const)), refused), byte(opI32Or))
	c = appendOp(c, opGlobalSet, h.refused)
	c = h.length(append(c, byte(opElse)), length, shift)
	return append(c, byte(opEnd), byte(opLocalGet), result)
}

// bodies appends the helpers' bodies to a code section.
func (h *helpers) bodies(c []byte) []byte {
	for _, f := range h.list {
		c = binary.AppendUvarint(c, uint64(len(f.code)))
		c = append(c, f.code...)
	}
	return c
}
