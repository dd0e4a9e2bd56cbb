package meter

import "encoding/binary"

// bodies rewrites every body and gives them, with the helpers behind.
func (w *rewriter) bodies() []byte {
	w.findLeaves()
	var code, body []byte
	n := w.enterBodies()
	if n > 0 {
		code = make([]byte, 0, cap(w.out))
	}
	sectionEnd := w.end
	for i := 0; i < n && w.err == nil; i++ {
		w.function = w.m.imported + i
		size := int(w.u32("the size of a body"))
		start := w.pos
		w.end = start + size
		w.cut(w.function)
		if w.err != nil {
			return nil
		}
		checks := w.regions.finish(w.leaves[w.function] > 0)
		body = w.rewritten(body[:0], start, checks)
		w.charge(start, len(body))
		code = append(binary.AppendUvarint(code, uint64(len(body))), body...)
		w.end = sectionEnd
	}
	w.function = -1
	return w.helpers.bodies(code)
}

// enterBodies goes to the first body and gives how many there are.
func (w *rewriter) enterBodies() int {
	if !w.enter(sectionCode) {
		return 0
	}
	return int(w.u32("a number of entries"))
}

// findLeaves finds the functions that are charged where they are called: those
// without calls and loops that cost at most leafMax. What the host or an
// indirect call may call has to charge itself.
func (w *rewriter) findLeaves() {
	for _, e := range w.m.Exports {
		if e.Kind == KindFunc {
			w.called[e.Index] = true
		}
	}
	if w.m.Start != nil {
		w.called[*w.m.Start] = true
	}
	n := w.enterBodies()
	sectionEnd := w.end
	for f := w.m.imported; f < w.m.imported+n && w.err == nil; f++ {
		size := int(w.u32("the size of a body"))
		body := w.pos
		if w.end = body + size; size <= leafBytes && !w.called[f] {
			w.function = f
			w.cut(f)
			if !w.calls && w.regions.leaf() {
				w.leaves[f] = byte(w.regions.checks[0].cost) + 1
			}
		}
		w.pos, w.end = body+size, sectionEnd
	}
	w.locals = 0 // they are counted again
}

// leafBytes bounds the bodies that are looked at as leaves. An instruction that
// costs something takes some two bytes.
const leafBytes = 6 * leafMax

// cut reads a body and cuts it into regions; it leaves in w.patches what has to
// be replaced. Decoding it checks everything again that the parser has checked.
func (w *rewriter) cut(function int) {
	typ := &w.m.Types[w.m.Functions[function]]
	locals := len(typ.Params) + w.localDeclarations()
	if w.err != nil {
		return
	}
	w.calls = false
	w.patches = w.patches[:0]
	w.work.reset(locals)
	w.frames = append(w.frames[:0], bodyFrame(typ))
	w.regions.begin(w.pos, uint32(locals)>>localsShift)
	w.checked()
	in := &w.code
	constant := -1 // where the immediate of an i32.const just before is
	for w.err == nil {
		w.next(in)
		if w.err != nil {
			return
		}
		length := constant
		constant = -1
		switch in.enc.form {
		case formLocal:
			w.work.use(in.index)
			w.pay(in, 1)
		case formI32:
			constant = in.operand
			w.pay(in, 1)
		case formPlain:
			if w.plain(in) {
				return
			}
		case formBlock:
			w.block(in)
		default:
			w.indexes(in)
			w.operation(in, length)
		}
	}
}

// pay charges an instruction.
func (w *rewriter) pay(in *instruction, cost uint32) {
	if w.regions.add(in.start, cost) {
		w.checked()
	}
}

// checked tells the estimate of what compiling takes of a check: two more ways
// that meet.
func (w *rewriter) checked() {
	w.work.meet(2 * w.work.edge())
	w.work.aside(asideTest)
}

// plain charges an instruction without immediates. It reports whether that was
// the last of the body.
func (w *rewriter) plain(in *instruction) (last bool) {
	switch in.op {
	case opElse:
		w.elseOf(in)
		w.regions.otherwise()
	case opEnd:
		w.parser.close()
		return w.regions.close()
	case opUnreachable:
		w.pay(in, 1)
		w.leave()
	case opReturn:
		w.work.values += w.frames[0].arity
		w.pay(in, 1)
		w.leave()
	default:
		w.pay(in, price(in.op))
	}
	return false
}

// leave notes that nothing goes on from here.
func (w *rewriter) leave() {
	w.work.at = nowhere
	w.regions.leave()
}

// block enters a block, loop or if.
func (w *rewriter) block(in *instruction) {
	values := w.work.values
	w.open(in)
	w.pay(in, price(in.op)+uint32(w.work.values-values))
	w.regions.open(in.op, in.end)
	if in.op == opLoop {
		w.checked()
	}
}

// operation charges an instruction with an index or a length, and notes what
// has to be replaced in it. If the instruction before it was an i32.const,
// length is where its immediate is, else -1.
func (w *rewriter) operation(in *instruction, length int) {
	cost := price(in.op)
	w.facts.instruction(in.op)
	switch in.enc.form {
	case formLabel:
		w.pay(in, cost+uint32(w.frames[len(w.frames)-1-int(in.index)].arity))
		w.regions.branch(in.index)
		if in.op == opBr {
			w.regions.leave()
		}
		return
	case formLabels:
		arity := uint64(0)
		for _, l := range in.labels {
			arity = max(arity, w.frames[len(w.frames)-1-int(l)].arity)
		}
		w.pay(in, cost+uint32(arity))
		for _, l := range in.labels {
			w.regions.branch(l)
		}
		w.regions.leave()
		return
	case formIndirect:
		w.calls = true
		w.long(in, cost+passed(w.m.Types[in.index]))
		return
	case formFunc:
		w.patch(patch{pos: in.operand, end: in.end, index: w.shifted(in.index)})
		if in.op != opRefFunc {
			w.call(in)
			return
		}
	case formMemory:
		if in.op == opMemoryGrow {
			w.patch(patch{pos: in.start, end: in.end, index: w.helpers.growMemory(), call: true})
		}
	}
	switch in.op {
	case opTableGrow:
		w.patch(patch{pos: in.start, end: in.end, index: w.helpers.growTable(in.index, w.m.Tables[in.index].Element), call: true})
	case opMemoryInit, opMemoryCopy, opMemoryFill:
		cost += w.length(in, length, bytesShift)
	case opTableInit, opTableCopy, opTableFill:
		cost += w.length(in, length, 0)
	}
	w.pay(in, cost)
}

// length charges a bulk operation: its length if that is a constant, at the
// offset constant, which is charged in advance like everything else; otherwise
// when it is known, just before the operation, or in pieces by the helper that
// does it instead.
func (w *rewriter) length(in *instruction, constant int, shift uint) uint32 {
	if constant >= 0 {
		at := w.reader
		at.pos = constant
		if n := uint32(at.signed(32, "a constant")) >> shift; n <= regionMax/2 {
			return n
		}
	}
	b := bulk{op: in.op}
	instead := in.op == opMemoryCopy || in.op == opMemoryFill
	if in.op == opMemoryInit {
		b.segment = in.index
		b.size, instead = w.m.longData[in.index]
	}
	if instead {
		w.patch(patch{pos: in.start, end: in.end, index: w.helpers.bulkOf(b), call: true})
	} else {
		w.patch(patch{pos: in.start, end: in.start, index: w.helpers.lengthOf(shift != 0), call: true})
	}
	return 0
}

// call charges the call of a function by its index.
func (w *rewriter) call(in *instruction) {
	w.calls = true
	cost := passed(w.m.Types[w.m.Functions[in.index]])
	leaf := w.leaves[in.index]
	switch {
	case int(in.index) < w.m.imported:
		w.pay(in, priceHost+cost)
	case leaf > 0:
		w.pay(in, priceCall+cost+uint32(leaf-1))
	default:
		w.long(in, priceCall+cost)
		return
	}
	if in.op == opReturnCall {
		w.regions.leave()
	}
}

// long charges a call that may take long. One that does not return here leaves
// nothing behind that could add up.
func (w *rewriter) long(in *instruction, cost uint32) {
	w.regions.call(in.start, cost)
	if in.op == opReturnCall || in.op == opReturnCallIndirect {
		w.regions.leave()
	}
}

// passed is how many values a call passes.
func passed(t FuncType) uint32 { return uint32(len(t.Params) + len(t.Results)) }

func (w *rewriter) patch(p patch) { w.patches = append(w.patches, p) }

// rewritten writes the body that was cut last, which begins at start, with its
// checks and patches.
func (w *rewriter) rewritten(b []byte, start int, checks []check) []byte {
	w.checks += len(checks)
	pos := start
	patches := w.patches
	for len(checks) > 0 || len(patches) > 0 {
		if len(patches) == 0 || len(checks) > 0 && checks[0].pos <= patches[0].pos {
			b = append(b, w.b[pos:checks[0].pos]...)
			b = w.helpers.check(b, checks[0])
			pos = checks[0].pos
			checks = checks[1:]
			continue
		}
		p := patches[0]
		patches = patches[1:]
		b = append(b, w.b[pos:p.pos]...)
		if p.call {
			b = append(b, byte(opCall))
		}
		b = binary.AppendUvarint(b, uint64(p.index))
		pos = p.end
	}
	return append(b, w.b[pos:w.end]...)
}
