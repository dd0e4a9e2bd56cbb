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
		p.end = sectionEnd
	}
	p.bodies = n
	p.function = -1
}

// body reads one function body, from its local declarations to the end that
// closes it, which must be its last byte.
func (p *parser) body(typ *FuncType) {
	locals := len(typ.Params) + p.localDeclarations()
	p.frame = p.frame[:0]
	in := &p.code
	for p.err == nil {
		p.next(in)
		if p.err != nil {
			return
		}
		switch in.enc.form {
		case formLocal:
			p.check(in.index, locals, "local", in.operand)
		case formPlain:
			if in.op == opEnd {
				if len(p.frame) == 0 {
					if p.pos != p.end {
						p.fail(ErrMalformed, p.pos, "the function ends %d bytes before its body does", p.end-p.pos)
					}
					return
				}
				p.frame = p.frame[:len(p.frame)-1]
			} else if in.op == opElse {
				p.elseOf(in)
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

// open enters a block, loop or if.
func (p *parser) open(in *instruction) {
	if in.blockType == blockIndex {
		p.check(in.index, len(p.m.Types), "type", in.operand)
	}
	if len(p.frame) == MaxNesting {
		p.over(in.start, "nested blocks", MaxNesting, MaxNesting+1)
		return
	}
	p.frame = append(p.frame, byte(in.op))
}

// elseOf turns the if that is open into its else branch.
func (p *parser) elseOf(in *instruction) {
	top := len(p.frame) - 1
	if top < 0 || p.frame[top] != byte(opIf) {
		p.fail(ErrMalformed, in.start, "an else outside an if")
		return
	}
	p.frame[top] = byte(opElse)
}

// indexes checks the index immediates of an instruction against their spaces.
// They are the module's own: an index that only a later rewrite would make
// valid is refused here.
func (p *parser) indexes(in *instruction) {
	m := p.m
	switch in.enc.form {
	case formLabel:
		p.check(in.index, len(p.frame)+1, "label", in.operand)
	case formLabels:
		for _, l := range in.labels {
			p.check(l, len(p.frame)+1, "label", in.operand)
		}
	case formFunc:
		p.check(in.index, len(m.Functions), "function", in.operand)
	case formIndirect:
		p.check(in.index, len(m.Types), "type", in.operand)
		p.check(in.second, len(m.Tables), "table", in.operand)
	case formGlobal:
		p.check(in.index, len(m.Globals), "global", in.operand)
		if in.op == opGlobalSet && p.err == nil && !m.Globals[in.index].Mutable {
			p.fail(ErrMalformed, in.start, "global %d is set, and it is immutable", in.index)
		}
	case formTable:
		p.check(in.index, len(m.Tables), "table", in.operand)
	case formTables:
		p.check(in.index, len(m.Tables), "table", in.operand)
		p.check(in.second, len(m.Tables), "table", in.operand)
	case formElem:
		p.check(in.index, m.ElementSegments, "element segment", in.operand)
	case formElemInit:
		p.check(in.index, m.ElementSegments, "element segment", in.operand)
		p.check(in.second, len(m.Tables), "table", in.operand)
	case formMemarg, formMemargLane, formMemory, formMemories:
		p.needMemory(in)
	case formData:
		p.dataSegment(in)
	case formDataInit:
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
