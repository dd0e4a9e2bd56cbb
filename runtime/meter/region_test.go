package meter

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// piece is a part of a body, as far as regions see it.
type piece struct {
	op   opcode // opNop stands for any instruction, opCall for a call that may take long
	pos  int
	cost uint32
	to   []uint32 // the labels of a branch
	body []piece  // of a block, or the first arm of an if
	also []piece  // the second arm
	end  int      // where the contents begin, of a block
}

// shape makes a random body, and has it cut into regions as it is made, which is
// how the rewriter does it.
type shape struct {
	*rand.Rand
	regions
	pos, left int
	loops     []bool // the open blocks
}

func (s *shape) next() int {
	s.pos++
	s.left--
	return s.pos
}

func (s *shape) pieces() (list []piece) {
	for n := s.IntN(8); n >= 0 && s.left > 0; n-- {
		list = append(list, s.piece())
	}
	return list
}

func (s *shape) piece() piece {
	p := piece{pos: s.next(), cost: uint32(s.IntN(12))}
	switch k := s.IntN(24); {
	case k < 8 || len(s.loops) > 12:
		p.op = opNop
		if s.IntN(40) == 0 {
			p.cost = 1500
		}
		s.add(p.pos, p.cost)
	case k < 11:
		p.op = opCall
		s.call(p.pos, p.cost)
	case k < 15:
		p.op = []opcode{opBr, opBrIf, opBrIf, opBrTable}[s.IntN(4)]
		for range 1 + s.IntN(4) {
			p.to = append(p.to, uint32(s.IntN(len(s.loops))))
		}
		if p.op != opBrTable {
			p.to = p.to[:1]
		}
		s.add(p.pos, p.cost)
		for _, l := range p.to {
			s.branch(l)
		}
		if p.op != opBrIf {
			s.leave()
		}
	case k == 15:
		p.op = opReturn
		s.add(p.pos, p.cost)
		s.leave()
	default:
		p.op = []opcode{opBlock, opBlock, opLoop, opIf}[s.IntN(4)]
		s.add(p.pos, p.cost)
		p.end = s.next()
		s.open(p.op, p.end)
		s.loops = append(s.loops, p.op == opLoop)
		p.body = s.pieces()
		if p.op == opIf && s.IntN(2) == 0 {
			s.next()
			s.otherwise()
			p.also = s.pieces()
		}
		s.next()
		s.close()
		s.loops = s.loops[:len(s.loops)-1]
	}
	return p
}

// walker takes a random way through a body and sees to it that what is promised
// holds wherever it comes.
type walker struct {
	*rand.Rand
	t      *testing.T
	checks map[int][]check
	steps  int

	paid  int64 // what has been charged and not been done
	since int64 // done since the last test
	rest  int64 // done since a call, without having been charged since; -1 without one
}

// The ways that a piece goes on: to the next one, out of so many blocks, or out of
// the function.
const (
	onward = -1
	gone   = 1 << 20
)

func (w *walker) come(pos int) {
	for _, c := range w.checks[pos] {
		w.paid = int64(c.cost)
		w.rest = -1
		if c.test {
			w.since = 0
		}
	}
}

func (w *walker) do(p *piece) {
	w.come(p.pos)
	w.steps--
	w.paid -= int64(p.cost)
	w.since += int64(p.cost)
	require.GreaterOrEqual(w.t, w.paid, int64(0), "what runs at %d has not been charged", p.pos)
	if p.op != opCall && p.cost > 0 && p.cost < regionMax { // a callee tests
		require.LessOrEqual(w.t, w.since, int64(regionMax), "too much runs untested at %d", p.pos)
	}
	if w.rest >= 0 {
		w.rest += int64(p.cost)
		require.LessOrEqual(w.t, w.rest, int64(restMax), "too much is left to do behind a call at %d", p.pos)
	}
}

func (w *walker) walk(list []piece) int {
	for i := range list {
		if w.steps < 0 {
			return gone
		}
		if way := w.piece(&list[i]); way != onward {
			return way
		}
	}
	return onward
}

func (w *walker) piece(p *piece) int {
	w.do(p)
	switch p.op {
	case opCall:
		w.rest = max(w.rest, 0)
		// The callee has tested; until the next test there may be as much
		// again as is left behind a call.
		w.since = regionMax - restMax
	case opReturn:
		return gone
	case opBr, opBrTable:
		return int(p.to[w.IntN(len(p.to))])
	case opBrIf:
		if w.IntN(2) == 0 {
			return int(p.to[0])
		}
	case opBlock, opLoop, opIf:
		body := p.body
		if p.op == opIf && w.IntN(2) == 0 {
			body = p.also
		}
		for {
			if p.op == opLoop {
				w.come(p.end)
			}
			way := w.walk(body)
			switch {
			case way == 0 && p.op == opLoop && w.steps >= 0:
				w.steps--
				continue
			case way == 0 || way == onward:
				return onward
			case way == gone:
				return gone
			}
			return way - 1
		}
	}
	return onward
}

// TestRegions walks through random bodies: whatever runs has been charged before,
// and neither too much runs between tests, nor is left to do behind calls.
func TestRegions(t *testing.T) {
	checks, steps := 0, 0
	for seed := range uint64(1200) {
		s := &shape{Rand: rand.New(rand.NewPCG(seed, 1)), left: 30 << (seed % 6), loops: []bool{false}}
		base := uint32(s.IntN(30))
		s.begin(0, base)
		body := s.pieces()
		require.True(t, s.close())
		w := &walker{Rand: s.Rand, t: t, checks: map[int][]check{}}
		for _, c := range s.finish(s.leaf()) {
			w.checks[c.pos] = append(w.checks[c.pos], c)
			checks++
		}
		merged := len(w.checks) > 0 && w.checks[0] == nil
		for range 10 {
			w.steps, w.paid, w.since, w.rest = 2000, 0, 0, -1
			switch {
			case merged: // what comes before the loop may run unpaid, a little
				w.paid = mergeMax
			case len(w.checks) == 0:
				w.paid = leafMax
			}
			w.come(0)
			w.paid -= int64(base)
			w.since += int64(base)
			w.walk(body)
			steps += 2000 - w.steps
		}
	}
	require.Greater(t, checks, 1000)
	require.Greater(t, steps, 50_000)
}
