package meter

// walk estimates what a compiler spends on the shape of a body's control flow. To
// find the loops it asks, for each block and each edge into one, which blocks
// every way to it goes through (those that dominate it). The default engine
// walks back over them one by one, so that a train of n ifs takes n steps for each
// of them: 60,000 memory.fills, which are a loop each, are 540 KB of code and more
// than ten minutes.
//
// A step is 4 to 6 nanoseconds on the default engine. The walks are taken to go
// all the way back to the entry. How long they are is followed exactly where
// ways part, and from above where they meet: a block that several ways lead to is
// dominated by at most what dominates the nearest of them. So the arms of a
// br_table, which is how the Go compiler writes all its functions, are near.
type walk struct {
	// at is how many blocks dominate this place, itself included, or at most
	// so many; nowhere if nothing leads here.
	at uint64
	// walked is the steps so far.
	walked uint64
}

const (
	nowhere  = 1 << 62
	walkStep = 64
)

// spend walks back from here for so many blocks and edges.
func (w *walk) spend(blocks uint64) {
	if w.at != nowhere {
		w.walked += blocks * w.at
	}
}

// next enters the block that only this one leads to.
func (w *walk) next() {
	w.spend(2)
	w.enter(w.at)
}

// enter goes to a block behind one that lies so deep.
func (w *walk) enter(behind uint64) {
	w.at = behind
	if behind != nowhere {
		w.at++
	}
}

// jump is an edge from here to the end of a block, or to the head of a loop.
func (w *walk) jump(to *frame) {
	w.spend(2) // the edge may need a block of its own
	to.nearest = min(to.nearest, w.at)
}

// table is a br_table of so many ways, to the labels that jump has seen; there is
// a block in each of the ways.
func (w *walk) table(ways int) { w.spend(2 * uint64(ways)) }

// aside is code that goes another way and comes back: blocks and edges of it.
func (w *walk) aside(n uint64) {
	w.spend(n)
	w.enter(w.at)
}

// end leaves a block.
func (w *walk) end(f *frame) {
	if f.op == 0 {
		return
	}
	if f.op != opLoop {
		w.jump(f)
	} else {
		f.nearest = w.at
	}
	switch {
	case f.op == opIf: // the arm that is not there is a block too
		ends := f.nearest == nowhere
		w.at = f.begin
		w.spend(3)
		if w.enter(f.begin); ends {
			w.next() // and the only way
		}
	case f.op == opElse && f.arm != nowhere && f.nearest != nowhere:
		w.enter(f.begin) // from both arms
	case f.op == opElse:
		w.enter(min(f.arm, f.nearest))
	default:
		w.enter(f.nearest)
	}
	w.spend(1)
}

// What instructions and checks that are loops or branches inside are made of:
// blocks, edges, and the blocks that those edges need.
const (
	asideFill = 12
	asideTest = 10
)
