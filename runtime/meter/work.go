package meter

// work estimates what an engine spends on a function body beyond its size.
// Compilers that turn locals into values (SSA construction) search back from
// each use of a local to its definition and pass it through every block in
// between where paths meet, and they make a value of each result of a call. So
// there are bodies of 2 KB that take 340 MB to compile, and of 7 KB that take two
// minutes, growing with the square of the size or worse. The estimate is an upper
// bound of that work by the structure alone, in units of about 350 bytes or half
// a microsecond, measured on the default engine:
//
//   - a value that a call, a block or a branch passes is one unit;
//   - a bulk operation or an indirect call, which is written out as a sequence
//     with calls, loops and tests, is some more (heldFill and so on);
//   - an edge into a place where paths meet is one unit for each local that is
//     used after it, a loop's header two more and one for each loop around it
//     (what is carried through nested loops is simplified one loop at a time,
//     over all of them again);
//   - blocks with one way in, which are searched through but keep nothing, are
//     a unit for each workStep of them;
//   - each block, and each edge from one to the next, is a unit for each walkStep
//     blocks that every way to it goes through: the compiler walks back over
//     those for each, to find what is a loop. See walk.go.
//
// Code that compilers emit stays at a few units a byte.
type work struct {
	walk
	values uint64 // passed by calls, blocks and branches, or held otherwise
	steps  uint64 // blocks searched through
	// chain is how many blocks with one way in lie between here and the last
	// place where paths met.
	chain uint64
	// edges is the weight, in steps, of all edges into such places so far.
	edges uint64
	// used says for each local where it was used last: the edges so far, or,
	// inside loops, which outermost loop it was (with insideLoop set), because
	// it is then carried to that loop's end.
	used  []uint64
	loops []uint64 // edges at the end of each outermost loop
	depth int      // of open loops
}

// What instructions that are written out at length hold beyond what their bytes
// are charged.
const (
	heldFill     = 45 // memory.fill, table.fill
	heldTable    = 20 // table.copy, table.init
	heldBulk     = 12 // memory.copy, memory.init
	heldIndirect = 14 // call_indirect
)

const (
	workStep   = 64
	insideLoop = 1 << 63
)

func (w *work) reset(locals int) {
	if cap(w.used) < locals {
		w.used = make([]uint64, locals)
	}
	used := w.used[:locals]
	clear(used)
	*w = work{used: used, loops: w.loops[:0], walk: walk{at: 1}}
}

// use notes that a local is read or written.
func (w *work) use(local uint32) {
	w.steps += w.chain
	if w.depth > 0 {
		w.used[local] = uint64(len(w.loops)) | insideLoop
	} else {
		w.used[local] = w.edges
	}
}

// edge is the weight of an edge from here.
func (w *work) edge() uint64 { return workStep + w.chain }

// meet is a place where edges of the given weight come together.
func (w *work) meet(edges uint64) {
	w.edges += edges
	w.chain = 0
}

func (w *work) enterLoop() {
	w.meet(w.edge() + uint64(2+w.depth)*workStep)
	w.depth++
}

func (w *work) leaveLoop() {
	if w.depth--; w.depth == 0 {
		w.loops = append(w.loops, w.edges)
	}
}

// units is the estimate for the whole body, at its end, and held that part of it
// which takes memory: walking takes only time.
func (w *work) units() (units, held uint64) {
	carried := uint64(0)
	for _, u := range w.used {
		if u&insideLoop != 0 {
			u = w.loops[u&^insideLoop]
		}
		carried += u
	}
	held = w.values + (w.steps+carried)/workStep
	return held + w.walked/walkStep, held
}
