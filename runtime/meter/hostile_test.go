package meter_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/weir-mcp/weir/internal/hostile"
	"github.com/weir-mcp/weir/internal/wasmtest"
	"github.com/weir-mcp/weir/runtime/meter"
)

// work is a module of functions of type () -> () of which the last is exported
// as "run". It has a memory of 16 pages, a table of 64 elements that holds its
// functions, and the global 0, an i64 for bodies to count in.
func work(bodies ...[]byte) []byte {
	var functions, elements [][]byte
	for i := range bodies {
		functions = append(functions, u(0))
		elements = append(elements, u(i))
	}
	return module(
		section(secType, vec(fn(nil, nil))),
		section(secFunction, vec(functions...)),
		section(secTable, vec(cat(funcref, byte(0), 64))),
		section(secMemory, vec(cat(byte(0), 16))),
		section(secGlobal, vec(cat(i64, byte(1), byte(0x42), 0, end))),
		section(secExport, vec(cat("run", byte(0), len(bodies)-1), cat("memory", byte(2), 0))),
		section(secElement, vec(cat(0, byte(0x41), 0, end, vec(elements...)))),
		section(secCode, vec(bodies...)),
	)
}

// unreferred is a module without its element segments, so that small functions
// are leaves.
func unreferred(b []byte) []byte {
	out := header()
	for at := range eachSection(b) {
		if b[at.start] != secElement {
			out = append(out, b[at.start:at.end]...)
		}
	}
	return out
}

// count is a unit of visible work: four instructions that add one to the global.
var count = cat(byte(0x23), 0, byte(0x42), 1, byte(0x7c), byte(0x24), 0)

func forever(code ...any) []byte {
	return cat(byte(0x03), byte(0x40), cat(code...), byte(0x0c), 0, end)
}

// TestHostileModulesRunOutOfFuel: whatever their shape, the host gets to say no,
// and soon: what is charged passes the budget by no more than what may be charged
// between two tests, and what is done by no more than that either.
func TestHostileModulesRunOutOfFuel(t *testing.T) {
	const usual, all = 2048, 1<<20/meter.BytesPerUnit + 2048
	type most struct {
		charge int64 // between two tests
		full   bool  // as far as the budget goes something is counted
	}
	of := map[string]most{
		"a loop":                             {usual, false},
		"a loop that works":                  {usual, true},
		"an if in a loop":                    {usual, false},
		"a loop of divisions":                {usual, false},
		"200 nested loops":                   {usual, true},
		"a br_table maze":                    {usual, true},
		"33 functions, each twice":           {usual, true},
		"a giant body":                       {usual, true},
		"a giant body of calls to a leaf":    {usual, true},
		"a giant body of calls":              {usual, false},
		"a giant body of indirect calls":     {usual, true},
		"a frame of 50,000 locals":           {6250 + usual, true},
		"recursion":                          {usual, false},
		"recursion that works":               {usual, true},
		"mutual recursion":                   {usual, false},
		"a ring of tail calls":               {usual, true},
		"a ring of indirect tail calls":      {usual, true},
		"memory.fill, all the memory":        {all, false},
		"memory.copy, all the memory":        {all, false},
		"memory.fill, a constant length":     {usual, false},
		"memory.fill, a big constant length": {all, false},
		"table.fill":                         {64 + usual, false},
		"table.copy":                         {64 + usual, false},
		"growth that is refused":             {usual, false},
		"growth by nothing":                  {usual, false},
		"references":                         {usual, false},
	}
	for _, shape := range hostile.Shapes() {
		t.Run(shape.Name, func(t *testing.T) {
			most, ok := of[shape.Name]
			require.True(t, ok, "a shape that this test does not know")
			m := &wasmtest.Module{}
			m.Memory(16)
			counter := m.GlobalAs(i64, wasmtest.I64(0))
			m.Export("run", shape.Build(m, counter))
			wasm := m.Bytes()
			eachMode(t, func(t *testing.T, config wazero.RuntimeConfig) {
				const budget = 10_000
				ctx, tank := fueled(budget, 3000)
				i := instance(t, ctx, config, wasm, generous)
				_, err := i.ExportedFunction("run").Call(ctx)
				require.ErrorIs(t, err, errNoFuel)
				require.Greater(t, tank.spent, int64(budget))
				require.LessOrEqual(t, tank.spent, budget+most.charge)

				counted := int64(i.ExportedGlobal("weir:global:0").(api.MutableGlobal).Get())
				require.LessOrEqual(t, 4*counted, budget+most.charge)
				if most.full {
					require.Positive(t, counted)
				}
			})
		})
	}
}

// loop0 is code that keeps a function from being a leaf.
func loop0() []byte { return cat(byte(0x03), byte(0x40), end) }

// TestAHostileStartFunction runs out of fuel like any other.
func TestAHostileStartFunction(t *testing.T) {
	b := module(section(secType, vec(fn(nil, nil))), section(secFunction, vec(u(0))), section(secStart, 0), section(secCode, vec(body(forever()))))
	r, _ := rewritten(t, b, generous)
	eachMode(t, func(t *testing.T, config wazero.RuntimeConfig) {
		ctx, _ := fueled(1000, 100)
		_, err := engine(t, config).InstantiateWithConfig(ctx, r.Binary, wazero.NewModuleConfig())
		require.ErrorIs(t, err, errNoFuel)
	})
}

// TestRestsOfARecursion: what a deep recursion has been charged for on its way
// down and does on its way up stays small in each frame, so that the host is
// asked while it goes up.
func TestRestsOfARecursion(t *testing.T) {
	// f(n) calls f(n-1) and then works; g does so in a block inside, which
	// jumps behind other code.
	const depth, after = 1000, 500
	down := cat(byte(0x20), 0, byte(0x04), byte(0x40), byte(0x20), 0, byte(0x41), 1, byte(0x6b), byte(0x10), 0, end)
	for name, code := range map[string][]byte{
		"behind the call":    cat(down, times(after, count)),
		"behind blocks":      cat(byte(0x02), byte(0x40), byte(0x02), byte(0x40), down, times(after/2, count), byte(0x0c), 1, end, times(after, count), end, times(after/2, count)),
		"behind a table":     cat(byte(0x02), byte(0x40), byte(0x02), byte(0x40), down, byte(0x41), 0, byte(0x0e), vec(u(0), u(1)), 1, end, times(after, count), end),
		"behind another one": cat(down, times(after/2, cat(count, byte(0x10), 1))),
	} {
		t.Run(name, func(t *testing.T) {
			b := module(
				section(secType, vec(fn([]byte{i32}, nil), fn(nil, nil))),
				section(secFunction, vec(u(0), u(1))),
				section(secGlobal, vec(cat(i64, byte(1), byte(0x42), 0, end))),
				section(secExport, vec(cat("run", byte(0), 0))),
				section(secCode, vec(body(code), body(loop0()))),
			)
			eachMode(t, func(t *testing.T, config wazero.RuntimeConfig) {
				ctx, tank := fueled(unlimited, 10_000)
				i := instance(t, ctx, config, b, generous)
				counter := i.ExportedGlobal("weir:global:0").(api.MutableGlobal)
				// Between two questions to the host, what is counted stays
				// near what was handed out.
				last, most := uint64(0), uint64(0)
				tank.asked = func() {
					most = max(most, counter.Get()-last)
					last = counter.Get()
				}
				_, err := i.ExportedFunction("run").Call(ctx, depth)
				require.NoError(t, err)
				require.Greater(t, counter.Get(), uint64(depth*after/2))
				require.Less(t, 4*most, uint64(10_000+depth*128+2048))
			})
		})
	}
}

// TestWhatIsCharged is a specification by examples: what a call of an exported
// function costs.
func TestWhatIsCharged(t *testing.T) {
	nop, drop := []byte{0x01}, []byte{0x1a}
	zero := cat(byte(0x41), 0)
	for name, c := range map[string]struct {
		body  []byte
		units int64
	}{
		"nothing":                      {body(), 0},
		"nop, block and end are free":  {body(nop, byte(0x02), byte(0x40), nop, end), 0},
		"constants and drops":          {body(zero, drop, zero, drop), 4},
		"a division":                   {body(byte(0x41), 9, byte(0x41), 3, byte(0x6d), drop), 3 + 16},
		"a load":                       {body(zero, byte(0x28), 2, 0, drop), 2 + 2},
		"locals":                       {bodyWithLocals(vec(cat(80, i64)), nop), 10},
		"the dearer arm, taken or not": {body(zero, byte(0x04), byte(0x40), times(10, count), byte(0x05), count, end), 2 + 40},
		"the arm that is there":        {body(zero, byte(0x04), byte(0x40), times(10, count), end), 2 + 40},
		"a value that a block passes":  {body(byte(0x02), i32, zero, end, drop), 1 + 2},
		"what nothing leads to":        {body(byte(0x02), byte(0x40), byte(0x0c), 0, times(10, count), end), 1},
		"a region that is left early":  {body(byte(0x02), byte(0x40), byte(0x41), 1, byte(0x0d), 0, times(10, count), end), 2 + 40},
		"the dearest of three ways": {body(byte(0x02), byte(0x40), byte(0x02), byte(0x40), byte(0x02), byte(0x40), zero, byte(0x0e), vec(u(0), u(1)), 2, end,
			times(10, count), byte(0x0c), 1, end, times(12, count), byte(0x0c), 0, end, count), 1 + 4 + 48 + 1 + 4},
		"a loop that goes round three times": {bodyWithLocals(vec(cat(1, i32)), byte(0x03), byte(0x40), count,
			byte(0x20), 0, byte(0x41), 1, byte(0x6a), byte(0x22), 0, byte(0x41), 3, byte(0x47), byte(0x0d), 0, end), 3 * (4 + 7)},
		"what comes before a loop, each round": {bodyWithLocals(vec(cat(1, i32)), count, byte(0x03), byte(0x40),
			byte(0x20), 0, byte(0x41), 1, byte(0x6a), byte(0x22), 0, byte(0x41), 3, byte(0x47), byte(0x0d), 0, end), 3 * (4 + 7)},
		"unless that is too much": {bodyWithLocals(vec(cat(1, i32)), times(7, count), byte(0x03), byte(0x40),
			byte(0x20), 0, byte(0x41), 1, byte(0x6a), byte(0x22), 0, byte(0x41), 3, byte(0x47), byte(0x0d), 0, end), 28 + 3*7},
		"a call of a leaf":          {body(byte(0x10), 0), 6 + 4},
		"a call of another":         {body(byte(0x10), 1), 6 + 4},
		"a call of an exported one": {body(byte(0x23), 0, byte(0x50), byte(0x04), byte(0x40), count, byte(0x10), 2, end), 2 * (3 + 4 + 6)},
		"a fill by a constant":      {body(zero, zero, byte(0x41), s(800), byte(0xfc), 11, byte(0)), 3 + 30 + 100},
		"a fill by another length":  {body(zero, zero, byte(0x3f), byte(0), byte(0xfc), 11, byte(0)), 3 + 30 + 16/8},
		"a fill of everything":      {body(zero, zero, byte(0x41), s(1<<20), byte(0xfc), 11, byte(0)), 3 + 30 + 1<<20/8},
		"a growth":                  {body(byte(0x41), 2, byte(0x40), byte(0), drop), 2 + 150 + 2<<13},
		"a growth too far":          {body(byte(0x41), s(70000), byte(0x40), byte(0), drop), 2 + 150},
	} {
		t.Run(name, func(t *testing.T) {
			b := unreferred(work(body(count), body(forever(byte(0x23), 0, byte(0x50), byte(0x0d), 1, byte(0x0f))), c.body))
			eachMode(t, func(t *testing.T, config wazero.RuntimeConfig) {
				ctx, tank := fueled(unlimited, 1<<40)
				i := instance(t, ctx, config, b, generous)
				_, err := i.ExportedFunction("run").Call(ctx)
				require.NoError(t, err)
				require.Equal(t, c.units, tank.used(fuel(i)))
			})
		})
	}
}
