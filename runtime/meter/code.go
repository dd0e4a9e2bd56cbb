package meter

func (p *parser) codeSection() {
	imported := p.m.imported
	n := p.count(MaxItems, "function bodies")
	if declared := len(p.m.Functions) - imported; p.err == nil && n != declared {
		p.fail(ErrMalformed, p.pos, "the function section declares %d functions, the code section has %d bodies", declared, n)
	}
	sectionEnd := p.end
	for i := 0; i < n && p.err == nil; i++ {
		p.function = imported + i
		start := p.pos
		size := p.u32("the size of a body")
		switch {
		case p.err != nil:
			return
		case size > MaxBody:
			p.over(start, "bytes of a function body", MaxBody, int64(size))
			return
		case uint64(size) > uint64(p.left()):
			p.short("a function body")
			return
		}
		p.m.LargestBody = max(p.m.LargestBody, int(size))
		p.end = p.pos + int(size)
		p.body(&p.m.Types[p.m.Functions[p.function]])
		p.charge(start, int(size))
		p.end = sectionEnd
	}
	p.bodies = n
	p.function = -1
}

// body reads one function body, from its local declarations to the end that
// closes it, which must be its last byte.
func (p *parser) body(typ *FuncType) {
	locals := len(typ.Params) + p.localDeclarations()
	if p.err != nil {
		return
	}
	p.work.reset(locals)
	p.frames = append(p.frames[:0], bodyFrame(typ))
	in := &p.code
	for p.err == nil {
		p.next(in)
		if p.err != nil {
			return
		}
		switch in.enc.form {
		case formLocal:
			if p.check(in.index, locals, "local", in.operand); p.err == nil {
				p.work.use(in.index)
			}
		case formPlain:
			switch in.op {
			case opElse:
				p.elseOf(in)
			case opReturn:
				p.work.values += p.frames[0].arity
				p.work.at = nowhere
			case opUnreachable:
				p.work.at = nowhere
			case opEnd:
				p.close()
				if len(p.frames) > 0 {
					continue
				}
				if p.pos != p.end {
					p.fail(ErrMalformed, p.pos, "the function ends %d bytes before its body does", p.end-p.pos)
				}
				return
			}
		case formBlock:
			p.open(in)
		default:
			p.indexes(in)
		}
	}
}

// localDeclarations reads how many locals a body declares.
func (p *parser) localDeclarations() int {
	total := 0
	for n := p.count(MaxLocals, "local declarations"); n > 0 && p.err == nil; n-- {
		start := p.pos
		k := p.u32("a number of locals")
		if int64(total)+int64(k) > MaxLocals {
			p.over(start, "locals of a function", MaxLocals, int64(total)+int64(k))
			return 0
		}
		total += int(k)
		p.valueType()
	}
	if p.locals += total; p.locals > MaxAllLocals {
		p.over(p.pos, "locals of all functions", MaxAllLocals, int64(p.locals))
	}
	return total
}

// frame is an open block, or at the bottom the function itself.
type frame struct {
	op opcode // opBlock, opLoop, opIf or opElse; zero for the function
	// arity is how many values a branch to its label passes.
	arity uint64
	// edges is the weight of the branches to its end so far; chain is what
	// work.chain was where an if began.
	edges, chain uint64
	// begin is what walk.at was where it began; nearest is the least that it
	// was where something led to its end so far, and arm the same for the arm of
	// an if before its else.
	begin, nearest, arm uint64
}

// bodyFrame is the frame of a whole body.
func bodyFrame(typ *FuncType) frame {
	return frame{arity: uint64(len(typ.Results)), nearest: nowhere}
}

// open enters a block, loop or if.
func (p *parser) open(in *instruction) {
	var typ FuncType
	switch in.blockType {
	case blockValue:
		typ.Results = oneResult
	case blockIndex:
		if p.check(in.index, len(p.m.Types), "type", in.operand); p.err != nil {
			return
		}
		typ = p.m.Types[in.index]
	}
	if len(p.frames) > MaxNesting {
		p.over(in.start, "nested blocks", MaxNesting, p.deepest())
		return
	}
	f := frame{op: in.op, arity: uint64(len(typ.Results)), chain: p.work.chain, begin: p.work.at, nearest: nowhere}
	p.passes(typ)
	switch in.op {
	case opLoop:
		f.arity = uint64(len(typ.Params))
		p.work.enterLoop()
		p.work.next()
	case opIf:
		p.work.chain++
		p.work.next()
	}
	p.frames = append(p.frames, f)
}

// deepest is how deep blocks nest from here to the end of the body, or to what
// cannot be read, the one that has just begun included. It is told to whoever
// built the module.
func (p *parser) deepest() int64 {
	ahead, in := p.reader, instruction{}
	depth, most := len(p.frames), len(p.frames)
	for depth > 0 {
		ahead.next(&in)
		switch {
		case ahead.err != nil:
			return int64(most)
		case in.enc.form == formBlock:
			depth++
			most = max(most, depth)
		case in.op == opEnd:
			depth--
		}
	}
	return int64(most)
}

// oneResult stands for the results of any block with one.
var oneResult = []ValueType{I32}

// passes charges the values that go in and out of a call or a block.
func (p *parser) passes(typ FuncType) {
	p.work.values += uint64(len(typ.Params) + len(typ.Results))
}

// elseOf turns the if that is open into its else branch.
func (p *parser) elseOf(in *instruction) {
	f := &p.frames[len(p.frames)-1]
	if f.op != opIf {
		p.fail(ErrMalformed, in.start, "an else outside an if")
		return
	}
	f.op = opElse
	p.work.jump(f)
	f.arm, f.nearest = f.nearest, nowhere
	p.work.at = f.begin
	p.work.next()
	f.edges += p.work.edge()
	p.work.chain = f.chain + 1
}

// close leaves the innermost block.
func (p *parser) close() {
	f := p.frames[len(p.frames)-1]
	p.frames = p.frames[:len(p.frames)-1]
	w := &p.work
	w.end(&f)
	switch {
	case f.op == opLoop:
		w.leaveLoop()
	case f.op == opIf: // the way around it ends here too
		w.meet(f.edges + w.edge() + workStep + f.chain)
	case f.op == opElse, f.op == opBlock && f.edges > 0:
		w.meet(f.edges + w.edge())
	}
}

// branch checks a label, found at the offset at, and charges the edge to it.
func (p *parser) branch(label uint32, at int) {
	if p.check(label, len(p.frames), "label", at); p.err != nil {
		return
	}
	f := &p.frames[len(p.frames)-1-int(label)]
	p.work.values += f.arity
	p.work.jump(f)
	switch f.op {
	case 0: // a return
	case opLoop:
		p.work.edges += p.work.edge()
	default:
		f.edges += p.work.edge()
	}
}

// charge adds up what compiling the body read last will take.
func (p *parser) charge(at, size int) {
	if p.err != nil {
		return
	}
	units, held := p.work.units()
	if held > MaxWork {
		p.over(at, "units of work to compile a function", MaxWork, int64(held))
		return
	}
	p.spend(at, units)
	p.m.CompileMemory = max(p.m.CompileMemory, memoryPerByte*int64(size)+memoryPerUnit*int64(held))
}

// spend adds up the work for the whole module.
func (p *parser) spend(at int, units uint64) {
	most := min(MaxAllWork, mostWorkOfAny+len(p.b)/bytesPerUnitOfWork)
	if p.allWork += units; p.allWork > uint64(most) {
		p.over(at, "units of work to compile the module", most, int64(p.allWork))
	}
}

// indexes checks the index immediates of an instruction against their spaces.
// They are the module's own: an index that only a later rewrite would make
// valid is refused here.
func (p *parser) indexes(in *instruction) {
	m := p.m
	switch in.enc.form {
	case formLabel:
		p.branch(in.index, in.operand)
		p.work.chain++
		p.work.next()
		if in.op == opBr {
			p.work.at = nowhere
		}
	case formLabels:
		p.work.table(len(in.labels))
		for _, l := range in.labels {
			p.branch(l, in.operand)
		}
		p.work.at = nowhere
	case formFunc:
		if p.check(in.index, len(m.Functions), "function", in.operand); p.err == nil && in.op != opRefFunc {
			p.passes(m.Types[m.Functions[in.index]])
		}
		if in.op == opReturnCall {
			p.work.at = nowhere
		}
	case formIndirect:
		if p.check(in.index, len(m.Types), "type", in.operand); p.err == nil {
			p.passes(m.Types[in.index])
		}
		p.check(in.second, len(m.Tables), "table", in.operand)
		p.work.values += heldIndirect
		if in.op == opReturnCallIndirect {
			p.work.at = nowhere
		}
	case formGlobal:
		p.check(in.index, len(m.Globals), "global", in.operand)
		if in.op == opGlobalSet && p.err == nil && !m.Globals[in.index].Mutable {
			p.fail(ErrMalformed, in.start, "global %d is set, and it is immutable", in.index)
		}
	case formTable:
		p.check(in.index, len(m.Tables), "table", in.operand)
		if in.op == opTableFill {
			p.work.values += heldFill
			p.work.aside(asideFill)
		}
	case formTables:
		p.work.values += heldTable
		p.check(in.index, len(m.Tables), "table", in.operand)
		p.check(in.second, len(m.Tables), "table", in.operand)
	case formElem:
		p.check(in.index, m.ElementSegments, "element segment", in.operand)
	case formElemInit:
		p.work.values += heldTable
		p.check(in.index, m.ElementSegments, "element segment", in.operand)
		p.check(in.second, len(m.Tables), "table", in.operand)
	case formMemarg, formMemargLane, formMemory, formMemories:
		p.needMemory(in)
		switch in.op {
		case opMemoryFill:
			p.work.values += heldFill
			p.work.aside(asideFill)
		case opMemoryCopy:
			p.work.values += heldBulk
		}
	case formData:
		p.dataSegment(in)
	case formDataInit:
		p.work.values += heldBulk
		p.dataSegment(in)
		p.needMemory(in)
	}
}

// dataSegment checks the data segment that an instruction names. The segments
// come after the code, so their count has to be declared before it.
func (p *parser) dataSegment(in *instruction) {
	if p.dataCount < 0 {
		p.fail(ErrMalformed, in.start, "opcode %s needs a data count section", in.op)
		return
	}
	p.check(in.index, p.dataCount, "data segment", in.operand)
}

func (p *parser) needMemory(in *instruction) {
	if p.m.Memory == nil {
		p.fail(ErrMalformed, in.start, "opcode %s, and the module has no memory", in.op)
	}
}
