package meter

// The bounds of what is charged at once and of what runs untested, in units of
// fuel.
const (
	// regionMax bounds what one check charges, and what one function does
	// between two tests.
	regionMax = 1024

	// restMax bounds, for each call that a function makes, what has been
	// charged and is left to do when the call returns, and what is done then
	// before the next test. It is small because such rests add up over the
	// frames of a recursion: charged on the way down, done on the way up, where
	// nobody looks at the clock.
	restMax = 128

	// leafMax bounds the functions that are charged where they are called,
	// instead of checking by themselves.
	leafMax = 32

	// mergeMax bounds what a function may be charged for outside its first
	// loop to have it charged with each round of that loop, instead of by a
	// check of its own.
	mergeMax = 24

	// waysMax bounds how many checks charge for the same instruction, and with
	// it what following them takes.
	waysMax = 8
)

// check is a place in a body where fuel is charged: before bytes[pos].
type check struct {
	pos  int
	cost uint32
	test bool // and looked at
}

// regions cuts a body into regions: what runs between one check and the next
// ones, which the check charges in advance. That is followed forward over all
// branches; it ends everywhere, because each loop begins with a check. A check
// charges what the dearest way through its region costs, so what is charged is an
// upper bound of what runs, and exact where there is one way only. Where ways
// from several checks meet, each charges for what follows.
//
// A new check is put where a region would pass regionMax or, behind a call,
// restMax.
//
// Charging is cheap, testing what is left is not: the way to the host costs
// registers even where it is never taken. So only those checks test that some
// bound needs: at entries, at the heads of loops, and where more than regionMax
// would run without.
type regions struct {
	frames []regionFrame
	checks []check // by position; the first is that of the entry
	here   ways

	// first is the check of the first loop, if nothing comes before it but
	// straight-line code without calls; else 0. straight says that this is still
	// possible.
	first    int
	straight bool
}

// ways are all the ways from a body's beginning to a place in it.
type ways struct {
	// dead says that there is none.
	dead bool
	// tangled says that more than waysMax checks are the last one on some way;
	// open is not used then.
	tangled bool
	n       uint8
	open    [waysMax]way // the last checks
	// since is the most that can have run since the last test.
	since uint32
	// behind says that there is a call after the last check, and rest is the
	// most that can have run since.
	behind bool
	rest   uint32
}

// way is the dearest way from a check.
type way struct {
	check int
	cost  uint32
}

// regionFrame is an open block.
type regionFrame struct {
	op   opcode // opBlock, opLoop, opIf or opElse; zero for the function
	into ways   // the ways to its end so far
	arm  ways   // of an if, the ways to its beginning
}

// begin starts a body whose code begins at pos and costs a base in advance.
func (r *regions) begin(pos int, base uint32) {
	r.frames = append(r.frames[:0], regionFrame{into: ways{dead: true}})
	r.checks = append(r.checks[:0], check{pos: pos, test: true})
	r.here = ways{n: 1}
	r.first, r.straight = 0, true
	r.charge(base)
}

// add adds an instruction at pos. It reports whether that took a new test.
func (r *regions) add(pos int, cost uint32) bool {
	h := &r.here
	if h.dead || cost == 0 {
		return false
	}
	test := h.since+cost > regionMax
	if test || h.full(cost) {
		r.cut(pos, test)
	}
	r.charge(cost)
	return test
}

// call adds a call that may take long. The callee begins with a test.
func (r *regions) call(pos int, cost uint32) {
	h := &r.here
	if h.dead {
		return
	}
	if h.full(cost) {
		r.cut(pos, false)
	}
	r.charge(cost)
	h.behind = true
	h.since = regionMax - restMax
	r.straight = false
}

// full reports whether the open regions cannot take the cost.
func (h *ways) full(cost uint32) bool {
	if h.tangled || h.behind && h.rest+cost > restMax {
		return true
	}
	for _, w := range h.open[:h.n] {
		if w.cost+cost > regionMax {
			return true
		}
	}
	return false
}

// charge adds to the open regions.
func (r *regions) charge(cost uint32) {
	h := &r.here
	for i := range h.open[:h.n] {
		w := &h.open[i]
		w.cost += cost
		if c := &r.checks[w.check]; c.cost < w.cost {
			c.cost = w.cost
		}
	}
	h.since += cost
	if h.behind {
		h.rest += cost
	}
}

// cut begins a region with a check at pos.
func (r *regions) cut(pos int, test bool) {
	since := r.here.since
	if test {
		since = 0
	}
	r.here = ways{n: 1, since: since}
	r.here.open[0].check = len(r.checks)
	r.checks = append(r.checks, check{pos: pos, test: test})
}

// leave notes that what follows runs only after a branch to it, if at all.
func (r *regions) leave() { r.straight, r.here.dead = false, true }

// open enters a block whose contents begin at body.
func (r *regions) open(op opcode, body int) {
	if op == opLoop && !r.here.dead {
		if r.straight {
			r.first = len(r.checks)
		}
		r.cut(body, true)
	}
	if op != opBlock {
		r.straight = false
	}
	f := regionFrame{op: op, into: ways{dead: true}}
	if op == opIf {
		f.arm = r.here
	}
	r.frames = append(r.frames, f)
}

// otherwise goes from the first arm of the open if to the second.
func (r *regions) otherwise() {
	f := &r.frames[len(r.frames)-1]
	f.into.join(&r.here)
	f.op = opElse
	r.here = f.arm
}

// branch notes a branch to a label.
func (r *regions) branch(label uint32) {
	r.straight = false
	if f := &r.frames[len(r.frames)-1-int(label)]; f.op != opLoop {
		f.into.join(&r.here)
	}
}

// join adds the ways to another place from which one gets here.
func (h *ways) join(from *ways) {
	switch {
	case from.dead:
		return
	case h.dead:
		*h = *from
		return
	}
	h.since = max(h.since, from.since)
	h.behind = h.behind || from.behind
	h.rest = max(h.rest, from.rest)
	if h.tangled = h.tangled || from.tangled; h.tangled {
		return
	}
next:
	for _, w := range from.open[:from.n] {
		for i := range h.open[:h.n] {
			if mine := &h.open[i]; mine.check == w.check {
				mine.cost = max(mine.cost, w.cost)
				continue next
			}
		}
		if h.n == waysMax {
			h.tangled = true
			return
		}
		h.open[h.n] = w
		h.n++
	}
}

// close leaves the innermost block. It reports whether that was the function.
func (r *regions) close() bool {
	f := &r.frames[len(r.frames)-1]
	if len(r.frames) == 1 {
		return true
	}
	if f.op == opIf { // the way around it
		f.into.join(&f.arm)
	}
	f.into.join(&r.here)
	r.here = f.into
	r.frames = r.frames[:len(r.frames)-1]
	return false
}

// leaf reports whether the body, once it is closed, needs no check but that of
// its entry, which charges no more than leafMax.
func (r *regions) leaf() bool { return len(r.checks) == 1 && r.checks[0].cost <= leafMax }

// finish gives the checks, once the body is closed. What the function begins with
// is charged by a check at its entry, unless it is a leaf, which its callers pay
// for, or can be left to its first loop.
func (r *regions) finish(leaf bool) []check {
	entry := r.checks[0].cost
	switch {
	case leaf:
		return nil
	case r.first > 0 && entry <= mergeMax:
		r.checks[r.first].cost += entry
	default:
		return r.checks
	}
	return r.checks[1:]
}
