package meter

// instruction is one decoded instruction: bytes[start:end] of the file, of
// which bytes[operand:end] are the immediates. Which of the other fields hold
// something depends on the opcode's form.
type instruction struct {
	op      opcode
	enc     *encoding
	start   int
	operand int
	end     int

	// index and second are index immediates, in the order of the file: of
	// call_indirect the type and the table, of a bulk operation the segment
	// or the destination first. A single label is in index.
	index, second uint32
	// labels are the targets of a br_table, the default one last.
	labels []uint32
	// typ is a reference type, or the one result of a block.
	typ ValueType
	// blockType is how a block's type was written.
	blockType blockType
}

// blockType says what a block's type is.
type blockType byte

const (
	blockEmpty blockType = iota // no parameters, no results
	blockValue                  // one result
	blockIndex                  // the function type instruction.index
)

// next decodes one instruction into in. It checks what the encoding alone can
// tell; indexes are for the caller to check, who knows their spaces.
func (r *reader) next(in *instruction) {
	in.start = r.pos
	in.op = opcode(r.byte("an instruction"))
	in.enc = &encodings[in.op]
	if in.enc.form == formPrefix {
		r.prefixed(in)
	}
	in.operand = r.pos
	if r.err == nil && in.enc.form != formPlain {
		r.immediates(in)
	}
	in.end = r.pos
}

// prefixed reads the second part of an opcode of several bytes.
func (r *reader) prefixed(in *instruction) {
	prefix := in.op
	n := r.u32("an opcode")
	in.enc = &encoding{}
	if r.err != nil {
		return
	}
	switch {
	case prefix == prefixGC && n >= 0x80:
		r.unsupported(in.start, featureStringref)
	case prefix == prefixGC:
		r.unsupported(in.start, featureGC)
	case prefix == prefixThreads:
		r.unsupported(in.start, featureThreads)
	case prefix == prefixMisc && int64(n) < int64(len(miscEncodings)):
		in.enc = &miscEncodings[n]
	case prefix == prefixVector && int64(n) < int64(len(vectorEncodings)):
		in.enc = &vectorEncodings[n]
	}
	in.op = prefix<<16 | opcode(min(n, 0xffff))
}

func (r *reader) immediates(in *instruction) {
	switch in.enc.form {
	case formLocal, formLabel, formFunc, formGlobal, formTable, formData, formElem:
		in.index = r.u32("an index")
	case formI32:
		r.signed(32, "a constant")
	case formI64:
		r.signed(64, "a constant")
	case formMemarg:
		r.memarg(in)
	case formBlock:
		r.blockTypeOf(in)
	case formIndirect, formTables, formElemInit:
		in.index = r.u32("an index")
		in.second = r.u32("an index")
	case formLabels:
		n := r.count(MaxBrTable, "br_table targets")
		in.labels = in.labels[:0]
		for ; n >= 0 && r.err == nil; n-- {
			in.labels = append(in.labels, r.u32("a label"))
		}
	case formBytes:
		r.bytes(uint32(in.enc.lanes), "a constant")
	case formMemory:
		r.memoryIndex()
	case formMemories:
		r.memoryIndex()
		r.memoryIndex()
	case formDataInit:
		in.index = r.u32("an index")
		r.memoryIndex()
	case formRefType:
		in.typ = r.refType()
	case formSelect:
		start := r.pos
		if n := r.u32("the types of a select"); r.err == nil && n != 1 {
			r.fail(ErrMalformed, start, "a select of %d types, it must have one", n)
		}
		in.typ = r.valueType()
	case formLane:
		r.lane(in.enc.lanes)
	case formMemargLane:
		r.memarg(in)
		r.lane(in.enc.lanes)
	case formShuffle:
		for range 16 {
			r.lane(32)
		}
	case formForeign:
		r.unsupported(in.start, in.enc.feature)
	default:
		r.fail(ErrMalformed, in.start, "unknown opcode %s", in.op)
	}
}

// blockTypeOf reads the type of a block: nothing, a value type, or an index that
// is written as a positive signed number of 33 bits.
func (r *reader) blockTypeOf(in *instruction) {
	start := r.pos
	if start < r.end && r.b[start]&0xc0 == 0x40 { // one byte, and negative
		r.pos++
		if r.b[start] == 0x40 {
			in.blockType = blockEmpty
			return
		}
		in.blockType, in.typ = blockValue, ValueType(r.b[start])
		r.checkValueType(start, in.typ)
		return
	}
	i := r.signed(33, "a block type")
	if i < 0 {
		r.fail(ErrMalformed, start, "a block type is neither a value type nor an index")
		return
	}
	in.blockType, in.index = blockIndex, uint32(i)
}

// memarg reads the alignment and the offset of a memory access.
func (r *reader) memarg(in *instruction) {
	start := r.pos
	align := r.u32("an alignment")
	switch {
	case align&^0x3f == 0x40:
		r.unsupported(start, featureMultiMemory)
	case align > uint32(in.enc.align):
		r.fail(ErrMalformed, start, "an alignment of 2^%d, above the natural 2^%d", align, in.enc.align)
	}
	r.u32("a memory offset")
}

// memoryIndex reads the index of a memory, which is a zero byte.
func (r *reader) memoryIndex() {
	start := r.pos
	if r.byte("a memory index") != 0 {
		r.unsupported(start, featureMultiMemory)
	}
}

// lane reads the index of one of lanes lanes.
func (r *reader) lane(lanes byte) {
	start := r.pos
	if i := r.byte("a lane"); i >= lanes {
		r.fail(ErrMalformed, start, "lane %d of %d", i, lanes)
	}
}
