package meter

import "encoding/binary"

// chunkBytes is the most that a bulk operation on memory moves at once: nothing
// interrupts one, neither a deadline nor the host's garbage collector, and one on
// a whole memory takes tens of milliseconds. A longer one is done in pieces of
// this size, each charged and tested like an operation of its own. It must be a
// multiple of BytesPerUnit, so that the pieces cost what the whole does.
const chunkBytes = 1 << 20

// bulk is an operation that a helper stands for: memory.copy, memory.fill, or
// the memory.init of one data segment that is longer than chunkBytes.
type bulk struct {
	op      opcode
	segment uint32
	size    uint32 // of the segment
}

// The parameters of a bulk operation: where to, from where or what, how many.
const (
	bulkTo     = 0
	bulkFrom   = 1
	bulkLength = 2
)

// bulkOf gives the function that stands for a bulk operation of any length.
func (h *helpers) bulkOf(b bulk) uint32 {
	f, ok := h.bulks[b]
	if ok {
		return f
	}
	long := h.add(typeBulk, h.inPieces([]byte{0}, b))
	c := []byte{0, byte(opLocalGet), bulkLength}
	c = append(appendSigned(append(c, byte(opI32Const)), chunkBytes), byte(opI32GtU), byte(opIf), emptyBlock)
	c = append(c, byte(opLocalGet), bulkTo, byte(opLocalGet), bulkFrom, byte(opLocalGet), bulkLength)
	c = append(appendOp(c, opCall, long), byte(opReturn), byte(opEnd))
	f = h.add(typeBulk, h.rest(c, b))
	h.bulks[b] = f
	return f
}

// rest charges and does what is no longer than a piece.
func (h *helpers) rest(c []byte, b bulk) []byte {
	c = h.length(c, bulkLength, -bytesShift)
	return b.append(append(c, byte(opLocalGet), bulkTo, byte(opLocalGet), bulkFrom, byte(opLocalGet), bulkLength))
}

// inPieces does an operation that is longer than a piece. One that does not fit
// traps before it has done anything, so it is left to the engine as it is.
func (h *helpers) inPieces(c []byte, b bulk) []byte {
	end := func(c []byte, from byte) []byte { // where a range ends
		c = append(c, byte(opLocalGet), from, byte(opI64ExtendU), byte(opLocalGet), bulkLength, byte(opI64ExtendU))
		return append(c, byte(opI64Add))
	}
	memory := func(c []byte) []byte { // what it must not end behind
		c = append(c, byte(opMemorySize), 0, byte(opI64ExtendU), byte(opI64Const), pageShift)
		return append(c, byte(opI64Shl), byte(opI64GtU))
	}
	c = memory(end(c, bulkTo))
	switch b.op {
	case opMemoryCopy:
		c = append(memory(end(c, bulkFrom)), byte(opI32Or))
	case opMemoryInit:
		c = appendSigned(append(end(c, bulkFrom), byte(opI64Const)), int64(b.size))
		c = append(c, byte(opI64GtU), byte(opI32Or))
	}
	c = append(c, byte(opIf), emptyBlock, byte(opLocalGet), bulkTo, byte(opLocalGet), bulkFrom, byte(opLocalGet), bulkLength)
	c = append(b.append(c), byte(opReturn), byte(opEnd))
	if b.op == opMemoryCopy {
		// To a higher place the last piece goes first, since it may lie over
		// what comes before it.
		c = append(c, byte(opLocalGet), bulkTo, byte(opLocalGet), bulkFrom, byte(opI32GtU), byte(opIf), emptyBlock)
		c = h.rest(h.pieces(c, b, true), b)
		c = append(c, byte(opReturn), byte(opEnd))
	}
	return h.rest(h.pieces(c, b, false), b)
}

// pieces does pieces of an operation until no more than one is left, from its
// end or from its beginning.
func (h *helpers) pieces(c []byte, b bulk, fromEnd bool) []byte {
	move := func(c []byte, local byte, op, into opcode) []byte { // by a piece
		c = appendSigned(append(c, byte(opLocalGet), local, byte(opI32Const)), chunkBytes)
		return append(c, byte(op), byte(into), local)
	}
	c = append(c, byte(opLoop), emptyBlock)
	c = h.check(c, check{cost: chunkBytes / BytesPerUnit, test: true})
	at := []byte{bulkTo, bulkFrom}
	if fromEnd {
		c = move(c, bulkLength, opI32Sub, opLocalSet)
		for _, local := range at {
			c = append(c, byte(opLocalGet), local, byte(opLocalGet), bulkLength, byte(opI32Add))
		}
	} else {
		c = append(c, byte(opLocalGet), bulkTo, byte(opLocalGet), bulkFrom)
	}
	c = b.append(appendSigned(append(c, byte(opI32Const)), chunkBytes))
	if !fromEnd {
		if b.op == opMemoryFill {
			at = at[:1] // what it fills with stays
		}
		for _, local := range at {
			c = move(c, local, opI32Add, opLocalSet)
		}
		c = move(c, bulkLength, opI32Sub, opLocalSet)
	}
	c = appendSigned(append(c, byte(opLocalGet), bulkLength, byte(opI32Const)), chunkBytes)
	return append(c, byte(opI32GtU), byte(opBrIf), 0, byte(opEnd))
}

// append appends the operation's instruction.
func (b bulk) append(c []byte) []byte {
	c = append(c, byte(prefixMisc), byte(b.op&0xff))
	switch b.op {
	case opMemoryInit:
		return append(binary.AppendUvarint(c, uint64(b.segment)), 0)
	case opMemoryCopy:
		return append(c, 0, 0)
	}
	return append(c, 0)
}
