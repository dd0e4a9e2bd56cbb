package meter

// constExpr reads a constant expression that gives one value of the wanted
// type. Unlike function bodies these are type-checked here to the end: engines
// evaluate them before any code runs, on less checked paths.
//
// global.get may name an immutable imported global only. That is what the
// accepted feature set says, and all that the default engine evaluates
// everywhere; the later relaxation to the module's own globals belongs to
// garbage collection.
func (p *parser) constExpr(want ValueType) {
	p.stack = p.stack[:0]
	in := &p.code
	for {
		start := p.pos
		p.next(in)
		if p.err != nil {
			return
		}
		switch in.op {
		case opI32Const:
			p.stack = append(p.stack, I32)
		case opI64Const:
			p.stack = append(p.stack, I64)
		case opF32Const:
			p.stack = append(p.stack, F32)
		case opF64Const:
			p.stack = append(p.stack, F64)
		case opV128Const:
			p.stack = append(p.stack, V128)
		case opRefNull:
			p.stack = append(p.stack, in.typ)
		case opRefFunc:
			p.check(in.index, len(p.m.Functions), "function", in.operand)
			p.stack = append(p.stack, FuncRef)
		case opGlobalGet:
			p.check(in.index, len(p.m.Globals), "global", in.operand)
			if p.err != nil {
				return
			}
			g := p.m.Globals[in.index]
			if !g.Imported || g.Mutable {
				p.fail(ErrMalformed, start, "a constant expression reads global %d, which is not an immutable import", in.index)
			}
			p.stack = append(p.stack, g.Type)
		case opI32Add, opI32Sub, opI32Mul:
			p.constBinary(start, I32)
		case opI64Add, opI64Sub, opI64Mul:
			p.constBinary(start, I64)
		case opEnd:
			if len(p.stack) != 1 || p.stack[0] != want {
				p.fail(ErrMalformed, start, "a constant expression must give one value of type %s", want)
			}
			return
		default:
			p.fail(ErrMalformed, start, "opcode %s is not constant", in.op)
		}
		if len(p.stack) > MaxConstStack {
			p.over(start, "values held by a constant expression", MaxConstStack, int64(len(p.stack)))
		}
	}
}

// constBinary applies an operator on two values of a type, which leaves one.
func (p *parser) constBinary(at int, t ValueType) {
	n := len(p.stack)
	if n < 2 || p.stack[n-1] != t || p.stack[n-2] != t {
		p.fail(ErrMalformed, at, "an operator of a constant expression lacks two values of type %s", t)
		return
	}
	p.stack = p.stack[:n-1]
}
