package meter

// The bits of the flags of an element segment. A segment is active unless the
// first is set; the second then tells passive from declarative, and gives an
// active one its own table index; the third holds expressions instead of
// function indexes.
const (
	elementInactive    = 1
	elementExplicit    = 2
	elementExpressions = 4
)

func (p *parser) elementSection() {
	n := p.count(MaxItems, "element segments")
	for ; n > 0 && p.err == nil; n-- {
		p.elementSegment()
		p.m.ElementSegments++
	}
}

func (p *parser) elementSegment() {
	start := p.pos
	flags := p.u32("the flags of an element segment")
	if flags > elementInactive|elementExplicit|elementExpressions {
		p.fail(ErrMalformed, start, "unknown flags of an element segment %#x", flags)
		return
	}
	table := -1
	if flags&elementInactive == 0 {
		var t uint32
		at := p.pos
		if flags&elementExplicit != 0 {
			t = p.index(len(p.m.Tables), "table")
		} else if len(p.m.Tables) == 0 {
			p.fail(ErrMalformed, at, "unknown table 0: there are none")
		}
		p.constExpr(I32)
		table = int(t)
	}
	if p.err != nil {
		return
	}
	typ := FuncRef
	at := p.pos
	switch {
	case flags&(elementInactive|elementExplicit) == 0: // a funcref, unsaid
	case flags&elementExpressions != 0:
		typ = p.refType()
	default:
		if kind := p.byte("the kind of an element segment"); kind != 0 {
			p.fail(ErrMalformed, at, "unknown kind of elements %#x", kind)
		}
	}
	if table >= 0 && p.err == nil && p.m.Tables[table].Element != typ {
		p.fail(ErrMalformed, at, "a segment of %s for table %d of %s", typ, table, p.m.Tables[table].Element)
	}
	p.elements(flags&elementExpressions != 0, typ)
}

// elements reads the entries of a segment.
func (p *parser) elements(expressions bool, typ ValueType) {
	start := p.pos
	n := p.count(MaxElements, "elements of a segment")
	if p.m.Elements += n; p.m.Elements > MaxElements {
		p.over(start, "elements of all segments", MaxElements, int64(p.m.Elements))
	}
	for ; n > 0 && p.err == nil; n-- {
		if expressions {
			p.constExpr(typ)
		} else {
			p.index(len(p.m.Functions), "function")
		}
	}
}

// dataSection reads the data segments. Flags are those of the format: 0 is
// active, 1 passive, 2 active with a memory index.
func (p *parser) dataSection() {
	n := p.count(MaxItems, "data segments")
	for ; n > 0 && p.err == nil; n-- {
		start := p.pos
		switch flags := p.u32("the flags of a data segment"); flags {
		case 0:
			p.activeData(start)
		case 1:
		case 2:
			p.zeroMemory()
			p.activeData(start)
		default:
			p.fail(ErrMalformed, start, "unknown flags of a data segment %#x", flags)
		}
		size := p.u32("the size of a data segment")
		p.bytes(size, "a data segment")
		if size > chunkBytes && p.err == nil {
			if p.m.longData == nil {
				p.m.longData = map[uint32]uint32{}
			}
			p.m.longData[uint32(p.m.DataSegments)] = size
		}
		p.m.DataSegments++
	}
}

func (p *parser) activeData(at int) {
	if p.m.Memory == nil && p.err == nil {
		p.fail(ErrMalformed, at, "an active data segment, and the module has no memory")
	}
	p.constExpr(I32)
}

// zeroMemory reads the index of a memory, which can only be zero.
func (p *parser) zeroMemory() {
	start := p.pos
	if p.u32("a memory index") != 0 {
		p.unsupported(start, featureMultiMemory)
	}
}
