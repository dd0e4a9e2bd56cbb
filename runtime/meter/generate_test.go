package meter_test

import (
	"math/rand/v2"
)

// generator writes valid modules that end: functions call only later ones, and
// loops count down. They trap now and then. Every piece of straight-line code
// ticks: it adds one to a global, which takes four instructions, so that what
// ran is known apart from any metering.
type generator struct {
	*rand.Rand
	code  []byte
	local int // of the function being written: the first of each type
	// labels are the open blocks; of a loop, whose label must not be branched
	// to but by its own count, the entry is false.
	labels []bool
	loops  int // nested
	index  int
	size   int // how much more the function may grow
}

const (
	generatedFunctions = 6
	generatedLocals    = 3 // of each type
	generatedCounters  = 3 // so many loops may nest
	tickGlobal         = 2
)

var generatedTypes = []byte{i32, i64, 0x7d, 0x7c}

// generate writes a module from a seed. It exports "run", which takes an i32 and
// an i64 and gives an i64, its memory, and its globals through metering.
func generate(seed uint64) []byte {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, seed^0x9e3779b97f4a7c15))}
	var bodies [][]byte
	for i := range generatedFunctions {
		bodies = append(bodies, g.function(i))
	}
	var functions, elements [][]byte
	for i := range generatedFunctions {
		functions = append(functions, u(0))
		elements = append(elements, u(i))
	}
	return module(
		section(secType, vec(fn([]byte{i32, i64}, []byte{i64}), fn([]byte{i32}, []byte{i32}))),
		section(secFunction, vec(functions...)),
		section(secTable, vec(cat(funcref, byte(0), generatedFunctions+2))),
		section(secMemory, vec(cat(byte(1), 1, 3))),
		section(secGlobal, vec(
			cat(i32, byte(1), byte(0x41), 7, end),
			cat(byte(0x7c), byte(1), byte(0x44), make([]byte, 8), end),
			cat(i64, byte(1), byte(0x42), 0, end),
		)),
		section(secExport, vec(cat("run", byte(0), 0), cat("memory", byte(2), 0))),
		section(secElement, vec(cat(0, byte(0x41), 0, end, vec(elements...)))),
		section(secCode, vec(bodies...)),
		section(secData, vec(at(8, "some data"), at(40, "more"))),
	)
}

func (g *generator) emit(parts ...any) { g.code = append(g.code, cat(parts...)...) }

func (g *generator) function(index int) []byte {
	g.code, g.index, g.loops, g.labels = nil, index, 0, []bool{true}
	g.size = 8 << g.IntN(7)
	g.local = 2
	g.tick()
	for range 1 + g.IntN(8) {
		g.statement(5)
	}
	g.value(i64, 3)
	locals := vec(cat(generatedLocals, i32), cat(generatedLocals, i64), cat(generatedLocals, byte(0x7d)), cat(generatedLocals, byte(0x7c)), cat(generatedCounters, i32))
	content := cat(locals, g.code, end)
	return cat(len(content), content)
}

func (g *generator) tick() {
	g.emit(byte(0x23), tickGlobal, byte(0x42), 1, byte(0x7c), byte(0x24), tickGlobal)
}

// of gives a random local of a type.
func (g *generator) of(typ byte) int {
	for i, t := range generatedTypes {
		if t == typ {
			return g.local + i*generatedLocals + g.IntN(generatedLocals)
		}
	}
	panic("of: no such type")
}

func (g *generator) anyType() byte { return generatedTypes[g.IntN(len(generatedTypes))] }

// block writes a block around a body; the label may be branched to.
func (g *generator) block(op byte, body func()) {
	g.emit(op, byte(0x40))
	g.labels = append(g.labels, op != 0x03)
	g.tick()
	body()
	g.labels = g.labels[:len(g.labels)-1]
	g.emit(end)
	g.tick()
}

// label gives the label of an open block, or false.
func (g *generator) label() (int, bool) {
	for range 4 {
		if i := 1 + g.IntN(max(1, len(g.labels)-1)); i < len(g.labels) && g.labels[i] {
			return len(g.labels) - 1 - i, true
		}
	}
	return 0, false
}

func (g *generator) statement(depth int) {
	if g.size--; g.size < 0 || depth == 0 {
		g.value(i32, 1)
		g.emit(byte(0x24), 0)
		return
	}
	some := func() {
		for range 1 + g.IntN(3) {
			g.statement(depth - 1)
		}
	}
	switch g.IntN(18) {
	case 0, 1, 2:
		t := g.anyType()
		g.value(t, depth)
		g.emit(byte(0x21), g.of(t))
	case 3:
		g.value(0x7c, depth)
		g.emit(byte(0x24), 1)
	case 4, 5: // a store
		g.address(depth)
		g.value(i64, depth)
		g.emit(byte(0x37), g.IntN(4), g.IntN(100))
	case 6, 7:
		g.block(0x02, some)
	case 8, 9:
		g.value(i32, depth)
		g.emit(byte(0x04), byte(0x40))
		g.labels = append(g.labels, true)
		g.tick()
		some()
		if g.IntN(2) == 0 {
			g.emit(byte(0x05))
			g.tick()
			some()
		}
		g.labels = g.labels[:len(g.labels)-1]
		g.emit(end)
		g.tick()
	case 10, 11: // a loop that counts down
		if g.loops == generatedCounters {
			some()
			return
		}
		counter := g.local + 4*generatedLocals + g.loops
		g.loops++
		g.emit(byte(0x41), 1+g.IntN(12), byte(0x21), counter)
		g.block(0x03, func() {
			some()
			g.emit(byte(0x20), counter, byte(0x41), 1, byte(0x6b), byte(0x22), counter)
			if g.IntN(8) > 0 { // else nothing branches to it
				g.emit(byte(0x0d), 0)
			} else {
				g.emit(byte(0x1a))
			}
		})
		g.loops--
	case 12: // br_if
		if l, ok := g.label(); ok {
			g.value(i32, depth)
			g.emit(byte(0x0d), l)
			g.tick()
		}
	case 13: // br_table, or br, and dead code
		l, ok := g.label()
		if !ok {
			return
		}
		if g.IntN(2) == 0 {
			g.emit(byte(0x0c), l)
		} else {
			k, _ := g.label()
			if !g.labels[len(g.labels)-1-k] {
				k = l
			}
			g.value(i32, depth)
			g.emit(byte(0x0e), vec(u(k), u(l), u(k)), l)
		}
		if g.IntN(2) == 0 {
			g.emit(byte(0x41), 1, byte(0x24), 0)
		}
	case 14: // bulk
		g.address(1)
		if g.IntN(2) == 0 {
			g.value(i32, 1)
			g.length()
			g.emit(byte(0xfc), 11, byte(0))
		} else {
			g.address(1)
			g.length()
			g.emit(byte(0xfc), 10, byte(0), byte(0))
		}
	case 15: // return, rarely a trap
		if g.IntN(3) > 0 {
			return
		}
		g.value(i32, depth)
		g.emit(byte(0x04), byte(0x40))
		g.tick()
		if g.IntN(20) == 0 {
			g.emit(byte(0x00))
		} else {
			g.value(i64, 1)
			g.emit(byte(0x0f))
		}
		g.emit(end)
		g.tick()
	default:
		g.value(i64, depth)
		g.emit(byte(0x1a))
	}
}

// address is one that mostly lies in memory.
func (g *generator) address(depth int) {
	g.value(i32, depth)
	if g.IntN(40) > 0 {
		g.emit(byte(0x41), s(0x7fff), byte(0x71))
	}
}

// length is a length, sometimes constant.
func (g *generator) length() {
	switch g.IntN(3) {
	case 0:
		g.emit(byte(0x41), s(int64(g.IntN(10_000))))
	case 1:
		g.value(i32, 1)
		g.emit(byte(0x41), s(0xfff), byte(0x71))
	default:
		g.emit(byte(0x3f), byte(0), byte(0x41), s(8), byte(0x74))
	}
}

// value writes code that leaves a value of the type.
func (g *generator) value(typ byte, depth int) {
	if g.size--; depth <= 0 || g.size < 0 || g.IntN(4) == 0 {
		g.simple(typ)
		return
	}
	two := func(op byte) {
		g.value(typ, depth-1)
		g.value(typ, depth-1)
		if g.IntN(40) > 0 { // divisions by zero end everything
			switch {
			case op >= 0x6d && op <= 0x70:
				g.emit(byte(0x41), 1, byte(0x72))
			case op >= 0x7f && op <= 0x82:
				g.emit(byte(0x42), 1, byte(0x84))
			}
		}
		g.emit(op)
	}
	one := func(from byte, op ...any) {
		g.value(from, depth-1)
		g.emit(op...)
	}
	switch g.IntN(7) {
	case 0: // a choice
		g.value(i32, depth-1)
		g.emit(byte(0x04), typ)
		g.labels = append(g.labels, false)
		g.tick()
		g.value(typ, depth-1)
		g.emit(byte(0x05))
		g.tick()
		g.value(typ, depth-1)
		g.labels = g.labels[:len(g.labels)-1]
		g.emit(end)
		g.tick()
		return
	case 1:
		g.value(typ, depth-1)
		g.emit(byte(0x22), g.of(typ))
		return
	}
	switch typ {
	case i32:
		switch g.IntN(7) {
		case 0:
			one(i64, byte(0xa7)) // wrap
		case 1:
			one(0x7c, byte(0xfc), 2) // trunc_sat
		case 2:
			g.address(depth - 1)
			g.emit(byte(0x2d), 0, g.IntN(1000)) // load8_u
		case 3:
			one(i32, byte(0x41), 3, byte(0x71), byte(0x40), byte(0)) // memory.grow
		case 4:
			g.value(i64, depth-1)
			g.value(i64, depth-1)
			g.emit(byte(0x51 + g.IntN(10)))
		default:
			two(byte(0x6a + g.IntN(15)))
		}
	case i64:
		switch {
		case g.index < generatedFunctions-1 && g.IntN(3) == 0:
			g.value(i32, depth-1)
			g.value(i64, depth-1)
			callee := g.index + 1 + g.IntN(generatedFunctions-1-g.index)
			switch g.IntN(8) {
			case 0: // beyond the last: a trap
				g.emit(byte(0x41), callee+g.IntN(2)*generatedFunctions, byte(0x11), 0, 0)
			case 1:
				g.emit(byte(0x41), callee, byte(0x11), 0, 0)
			default:
				g.emit(byte(0x10), callee)
			}
			g.tick()
		case g.IntN(3) == 0:
			one(i32, byte(0xac))
		case g.IntN(3) == 0:
			g.address(depth - 1)
			g.emit(byte(0x29), 0, g.IntN(1000))
		default:
			two(byte(0x7c + g.IntN(15)))
		}
	case 0x7d:
		if g.IntN(3) == 0 {
			one(0x7c, byte(0xb6))
		} else {
			two(byte(0x92 + g.IntN(4)))
		}
	default:
		switch g.IntN(4) {
		case 0:
			one(i32, byte(0xb7))
		case 1:
			one(0x7c, byte(0x9f)) // sqrt
		default:
			two(byte(0xa0 + g.IntN(4)))
		}
	}
}

func (g *generator) simple(typ byte) {
	if g.IntN(2) == 0 {
		g.emit(byte(0x20), g.of(typ))
		return
	}
	switch typ {
	case i32:
		if g.IntN(3) == 0 {
			g.emit(byte(0x20), 0)
		} else {
			g.emit(byte(0x41), s(int64(int32(g.Uint32())>>g.IntN(32))))
		}
	case i64:
		if g.IntN(3) == 0 {
			g.emit(byte(0x20), 1)
		} else {
			g.emit(byte(0x42), s(int64(g.Uint64())>>g.IntN(64)))
		}
	case 0x7d:
		g.emit(byte(0x43), []byte{0, 0, byte(g.IntN(256)), byte(0x3f + g.IntN(2))})
	default:
		g.emit(byte(0x44), []byte{0, 0, 0, 0, 0, 0, byte(g.IntN(256)), byte(0x3f + g.IntN(2))})
	}
}
