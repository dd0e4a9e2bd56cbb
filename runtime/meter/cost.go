package meter

// Fuel is charged in units of about the price of one simple instruction of
// compiled code: 0.05 to 0.3 ns on the machine where BenchmarkPrices was run last
// (README.md). The prices follow what instructions take in the default engine's
// compiler, by the order of magnitude, and err on the dear side for what other
// engines and older processors do slowly, like division. They are part of what a
// budget means, so they change only with [Version].
const (
	priceCall     = 6   // of a function of the module, and one for each value passed
	priceHost     = 150 // of an imported function: leaving the engine and coming back
	priceIndirect = 12  // beyond priceCall
	priceLeave    = 150 // of an instruction that leaves compiled code: growth and bulk work on tables
	priceBulk     = 30  // of a bulk operation on memory, beyond its length

	// bytesShift: a bulk operation on memory is charged one unit for each 8
	// bytes. On a table it is charged one for each element.
	bytesShift = 3

	// localsShift: a frame is charged one unit for each 8 of its locals.
	// Compilers clear what is used, interpreters everything.
	localsShift = 3

	// pageShift: a page of memory is 64 KiB.
	pageShift = 16
)

// BytesPerUnit is how many bytes memory.copy, memory.fill and memory.init move
// for one unit of fuel. A host that copies bytes on behalf of a guest charges
// them alike.
const BytesPerUnit = 1 << bytesShift

// LocalsPerUnit is how many locals a function may have for each unit of fuel that
// a call of it costs beyond a fixed price. It bounds how fast a guest can make its
// stack grow.
const LocalsPerUnit = 1 << localsShift

// The prices of the opcodes of one byte, of those behind prefixMisc, and of
// those behind prefixVector. Calls, blocks and branches also pay one unit for
// each value they pass.
var (
	prices       = oneBytePrices()
	miscPrices   = prefixedMiscPrices()
	vectorPrices = prefixedVectorPrices()
)

// price is what an instruction costs, whatever its operands are.
func price(op opcode) uint32 {
	switch op >> 16 {
	case 0:
		return uint32(prices[op])
	case prefixMisc:
		return uint32(miscPrices[op&0xffff])
	}
	return uint32(vectorPrices[op&0xffff])
}

func oneBytePrices() (t [256]byte) {
	for i := range t {
		t[i] = 1
	}
	// What leaves no code behind: nop, block, loop, else, end.
	for _, op := range []opcode{opNop, opBlock, opLoop, opElse, opEnd} {
		t[op] = 0
	}
	set := func(price byte, ops ...opcode) {
		for _, op := range ops {
			t[op] = price
		}
	}
	set(4, opBrTable)
	set(priceCall, opCall, opReturnCall)
	set(priceCall+priceIndirect, opCallIndirect, opReturnCallIndirect)
	set(3, opTableGet, opTableSet)
	set(priceLeave, opMemoryGrow, opRefFunc)
	for op := 0x28; op <= 0x3e; op++ { // loads and stores
		t[op] = 2
	}
	for op := 0x6d; op <= 0x70; op++ { // i32 div and rem
		t[op] = 16
	}
	for op := 0x7f; op <= 0x82; op++ { // i64 div and rem
		t[op] = 40
	}
	set(2, opI32Mul, opI64Mul)
	for op := 0x8b; op <= 0xa6; op++ { // arithmetic of f32 and f64
		t[op] = 3
	}
	set(16, opF32Div, opF64Div, opF32Sqrt, opF64Sqrt)
	for op := 0xa8; op <= 0xbf; op++ { // conversions between integers and floats
		t[op] = 4
	}
	set(1, opI64ExtendS, opI64ExtendU)
	return t
}

func prefixedMiscPrices() (t [18]byte) {
	for i := range t {
		switch {
		case i <= 7: // saturating conversions
			t[i] = 8
		case i == 9, i == 13, i == 16: // data.drop, elem.drop, table.size
			t[i] = 2
		case i <= 11: // memory.init, copy, fill
			t[i] = priceBulk
		default: // table.init, copy, grow, fill
			t[i] = priceLeave
		}
	}
	return t
}

func prefixedVectorPrices() (t [256]byte) {
	for i := range t {
		t[i] = 3
	}
	for _, div := range []int{227, 231, 239, 243} { // f32x4 and f64x2: sqrt, div
		t[div] = 24
	}
	for _, slow := range []int{ // what takes a dozen machine instructions
		107, 108, 109, // i8x16 shifts
		139, 140, 141,
		203, 204, 205, 213, // i64x2 shifts, mul
		98, 248, 249, 252, 253, // popcnt, conversions
	} {
		t[slow] = 12
	}
	return t
}
