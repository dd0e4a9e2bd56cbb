package meter

import (
	"cmp"
	"slices"
)

// The bounds of what is charged at once and of what runs untested, in units of
// fuel.
const (
	// regionMax bounds a region, which is what one check charges, and what one
	// function does between two tests.
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
)

// check is a place in a body where fuel is charged: before bytes[pos].
type check struct {
	pos  int
	cost uint32
	test bool // and looked at
}

// regions cuts a body into regions, each charged in advance by one check that
// stands in front of it. What a check charges runs at most once until the same
// check runs again, and never without it. That follows from three rules:
//
//   - A check charges what follows it up to the end of the block it stands in,
//     or up to the next check in that block; blocks inside are included but for
//     what checks inside them charge. To be in the middle of a block is to have
//     come by its earlier part, since branches lead only to the ends of blocks
//     and the heads of loops: so no branch gets past a check into what it
//     charges.
//   - The body of a loop is never part of a region outside: it begins with a
//     check of its own.
//   - Of the two arms of an if the dearer one is charged.
//
// So what is charged is an upper bound of what runs: a branch may leave the
// region before its end. Regions are cut where they would pass regionMax or,
// behind a call, restMax.
//
// Charging is cheap, testing what is left is not: the way to the host costs
// registers even where it is never taken. So only those checks test that some
// bound needs: at entries, at the heads of loops, and where more than regionMax
// would run without. What runs is followed forward over all branches for that.
type regions struct {
	frames []regionFrame
	checks []check

	// first is where the contents of the first loop begin, if nothing comes
	// before it but straight-line code without calls; else -1. straight says
	// that this is still possible.
	first    int
	straight bool

	// since is the most that can have run since the last test on any way to
	// here; dead says that there is no way.
	since uint32
	dead  bool
}

// regionFrame is an open block. It has one open region: at first the one that
// it begins with, which belongs to whatever encloses it, then that of its last
// check.
type regionFrame struct {
	op    opcode // opBlock, opLoop, opIf or opElse; zero for the function
	start int    // where the block's instruction is
	body  int    // where its contents begin
	check int    // the open region's place in checks, -1 for the first one
	cost  uint32 // of the open region so far
	head  uint32 // cost of the first region, once it is closed
	arm   uint32 // the head of the arm before the else

	// behind says that there is a call in the open region, and rest is what
	// comes after it. rests is the largest rest there was in the block, -1
	// without one.
	behind bool
	rest   uint32
	rests  int64

	// into is the largest since of the ways to the block's end so far, -1
	// without one; since and dead are what they were where it began.
	into  int64
	since uint32
	dead  bool
}

// begin starts a body whose code begins at pos and costs a base in advance.
func (r *regions) begin(pos int, base uint32) {
	r.frames = append(r.frames[:0], regionFrame{start: pos, body: pos, check: -1, cost: base, rests: -1, into: -1})
	r.checks = r.checks[:0]
	r.first, r.straight = -1, true
	r.since, r.dead = base, false
}

func (r *regions) top() *regionFrame { return &r.frames[len(r.frames)-1] }

// add charges an instruction at pos to the region it is in. It reports whether
// that took a new test.
func (r *regions) add(pos int, cost uint32) bool {
	f := r.top()
	test := !r.dead && r.since+cost > regionMax
	if test || f.full(cost) {
		r.cut(f, pos, test)
	}
	f.charge(cost)
	r.since += cost
	return test
}

// call charges a call that may take long. The callee begins with a test.
func (r *regions) call(pos int, cost uint32) {
	f := r.top()
	if f.full(cost) {
		r.cut(f, pos, false)
	}
	f.charge(cost)
	f.hold(0)
	r.since = regionMax - restMax
	r.straight = false
}

// full reports whether the open region cannot take the cost.
func (f *regionFrame) full(cost uint32) bool {
	return f.cost+cost > regionMax || f.behind && f.rest+cost > restMax
}

// charge adds to the open region.
func (f *regionFrame) charge(cost uint32) {
	f.cost += cost
	if f.behind {
		f.hold(f.rest + cost)
	}
}

// hold notes that a call is in the open region, and what comes after it.
func (f *regionFrame) hold(rest uint32) {
	f.behind, f.rest = true, rest
	f.rests = max(f.rests, int64(rest))
}

// cut closes the open region and begins the next with a check at pos.
func (r *regions) cut(f *regionFrame, pos int, test bool) {
	r.settle(f)
	f.check, f.cost = len(r.checks), 0
	f.behind, f.rest = false, 0
	r.checks = append(r.checks, check{pos: pos, test: test})
	if test {
		r.since = 0
	}
}

// settle notes the cost of the open region.
func (r *regions) settle(f *regionFrame) {
	if f.check < 0 {
		f.head = f.cost
	} else {
		r.checks[f.check].cost = f.cost
	}
}

// leave notes that what follows runs only after a branch to it, if at all.
func (r *regions) leave() { r.straight, r.dead = false, true }

// open enters a block whose instruction is bytes[start:body].
func (r *regions) open(op opcode, start, body int) {
	if op == opLoop && r.straight {
		r.first = body
	}
	if op != opBlock {
		r.straight = false
	}
	r.frames = append(r.frames, regionFrame{
		op: op, start: start, body: body, check: -1, rests: -1, into: -1, since: r.since, dead: r.dead,
	})
	if op == opLoop {
		r.cut(r.top(), body, true)
	}
}

// otherwise goes from the first arm of the open if to the second.
func (r *regions) otherwise(body int) {
	f := r.top()
	r.settle(f)
	r.arrive(f)
	*f = regionFrame{op: opElse, start: f.start, body: body, check: -1, arm: f.head, rests: f.rests, into: f.into, since: f.since, dead: f.dead}
	r.since, r.dead = f.since, f.dead
}

// arrive notes a way from here to the end of a block.
func (r *regions) arrive(f *regionFrame) {
	if !r.dead {
		f.into = max(f.into, int64(r.since))
	}
}

// branch notes a branch to a label.
func (r *regions) branch(label uint32) {
	r.straight = false
	if f := &r.frames[len(r.frames)-1-int(label)]; f.op != opLoop {
		r.arrive(f)
	}
}

// close leaves the innermost block. It reports whether that was the function.
func (r *regions) close() bool {
	f := r.top()
	r.settle(f)
	if len(r.frames) == 1 {
		return true
	}
	r.arrive(f)
	if f.op == opIf && !f.dead { // the way around it
		f.into = max(f.into, int64(f.since))
	}
	r.since, r.dead = uint32(max(f.into, 0)), f.into < 0

	head, rests, start := max(f.head, f.arm), f.rests, f.start
	r.frames = r.frames[:len(r.frames)-1]
	f = r.top()
	if f.full(head) {
		r.cut(f, start, false)
	}
	f.charge(head)
	if rests >= 0 {
		f.hold(max(f.rest, uint32(rests)))
	}
	return false
}

// head is what the body, once it is closed, begins with: the cost of the region
// that no check stands in front of yet.
func (r *regions) head() uint32 { return r.frames[0].head }

// finish puts the checks in order, once the body is closed. What the function
// begins with is charged by a check at its entry, unless it is a leaf, which its
// callers pay for, or can be left to its first loop.
func (r *regions) finish(leaf bool) []check {
	head := r.head()
	merge := r.first >= 0 && head <= mergeMax
	if !leaf && !merge {
		r.checks = append(r.checks, check{pos: r.frames[0].body, cost: head, test: true})
	}
	slices.SortStableFunc(r.checks, func(a, b check) int { return cmp.Compare(a.pos, b.pos) })
	if merge {
		i, _ := slices.BinarySearchFunc(r.checks, r.first, func(c check, pos int) int { return cmp.Compare(c.pos, pos) })
		r.checks[i].cost += head
	}
	return r.checks
}
