package meter_test

import (
	"bytes"
	"fmt"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/runtime/meter"
)

func times(n int, b []byte) []byte { return bytes.Repeat(b, n) }

// withResults is a module of one function, which has a type of a thousand
// results, at 1, and imports a function of it, at 0.
func withResults(body []byte) []byte {
	return module(
		section(secType, vec(fn(nil, nil), fn(nil, times(1000, []byte{i32})))),
		section(secImport, vec(cat("e", "f", byte(0), 1))),
		section(secFunction, vec(u(0))),
		section(secCode, vec(body)),
	)
}

// returning is a module of one function of a thousand results.
func returning(body []byte) []byte {
	return module(
		section(secType, vec(fn(nil, times(1000, []byte{i32})))),
		section(secFunction, vec(u(0))),
		section(secCode, vec(body)),
	)
}

// read reads each of a thousand locals.
func read() []byte {
	var code []byte
	for i := range 1000 {
		code = append(code, cat(byte(0x20), i, byte(0x1a))...)
	}
	return code
}

// carry is a body that carries a thousand locals through code.
func carry(code []byte) []byte {
	return withResults(bodyWithLocals(vec(cat(1000, i32)), read(), code, read()))
}

func block(code ...any) []byte { return cat(byte(0x02), byte(0x40), cat(code...), end) }

func loop(code ...any) []byte { return cat(byte(0x03), byte(0x40), cat(code...), end) }

var leave = cat(byte(0x20), 0, byte(0x0d), 0) // local.get 0, br_if 0

// compileBombs are shapes that cost an engine far more than their size, each by
// how often it repeats what it is made of.
var compileBombs = map[string]func(n int) []byte{
	"results of calls":  func(n int) []byte { return withResults(body(times(n, cat(byte(0x10), 0)), byte(0))) },
	"results of blocks": func(n int) []byte { return withResults(body(times(n, cat(byte(0x02), 1, byte(0), end)), byte(0))) },
	"values of branches": func(n int) []byte {
		return withResults(body(byte(0x02), 1, byte(0), byte(0x0e), many(n, u(0)), 0, end, byte(0)))
	},
	"values of returns": func(n int) []byte { return returning(body(byte(0), times(n, []byte{0x0f}))) },

	"locals through blocks": func(n int) []byte { return carry(times(n, block(leave))) },
	"locals through ifs":    func(n int) []byte { return carry(times(n, cat(byte(0x20), 0, byte(0x04), byte(0x40), end))) },
	"locals through elses": func(n int) []byte {
		return carry(times(n, cat(byte(0x20), 0, byte(0x04), byte(0x40), byte(0x05), end)))
	},
	"locals through loops": func(n int) []byte { return carry(times(n, loop(leave))) },
	"locals through nested loops": func(n int) []byte {
		n = min(n, meter.MaxNesting)
		return withResults(bodyWithLocals(vec(cat(1000, i32)), times(n, cat(byte(0x03), byte(0x40))), read(), times(n, cat(leave, end))))
	},
	"locals of a loop, round its blocks": func(n int) []byte {
		return withResults(bodyWithLocals(vec(cat(1000, i32)), loop(read(), times(n, block(leave)), leave)))
	},
	"many ways into one place": func(n int) []byte { return carry(block(times(n, leave))) },
	"a long way back": func(n int) []byte {
		return functionWith(nil, bodyWithLocals(vec(cat(1, i32)), times(10*n, leave)))
	},
}

func TestCompileBombsAreRefused(t *testing.T) {
	for name, bomb := range compileBombs {
		t.Run(name, func(t *testing.T) {
			requireRefused(t, bomb(3000), meter.ErrLimit,
				fmt.Sprintf("units of work to compile a function, at most %d are allowed", meter.MaxWork))
			m := requireAccepted(t, bomb(20))
			require.Greater(t, m.CompileMemory, 700*int64(m.LargestBody))
		})
	}
}

// A bomb that is cut into functions is one all the same.
func TestWorkOfAllFunctionsIsBounded(t *testing.T) {
	const each = 2000 // thousands of units
	build := func(n int) []byte {
		return module(
			section(secType, vec(fn(nil, times(1000, []byte{i32})))),
			section(secFunction, many(n, u(0))),
			section(secCode, many(n, body(byte(0), times(each, []byte{0x0f})))),
		)
	}
	most := workOfAny / (each * 1000)
	requireAccepted(t, build(most))
	requireTooMuchWork(t, build(most+1))
	require.Less(t, len(build(most)), 10_000, "so that its size allows for nothing")
}

// workOfAny is what a module is allowed whatever its size.
const workOfAny = 8 << 20

// requireTooMuchWork checks that the module as a whole is refused for it.
func requireTooMuchWork(t *testing.T, b []byte) {
	t.Helper()
	requireRefused(t, b, meter.ErrLimit,
		fmt.Sprintf("units of work to compile the module, at most %d are allowed", min(meter.MaxAllWork, workOfAny+len(b)/2)))
}

// A module is allowed work for its size, up to the limit of all.
func TestLargeModulesAreAllowedMoreWork(t *testing.T) {
	const each = 2000 // thousands of units
	build := func(n, padding int) []byte {
		return cat(module(
			section(secType, vec(fn(nil, times(1000, []byte{i32})))),
			section(secFunction, many(n, u(0))),
			section(secCode, many(n, body(byte(0), times(each, []byte{0x0f})))),
		), section(secCustom, "", make([]byte, padding)))
	}
	requireTooMuchWork(t, build(5, 0))
	requireAccepted(t, build(5, 4<<20))
	requireTooMuchWork(t, build(6, 4<<20))
	requireAccepted(t, build(8, 16<<20))
	requireTooMuchWork(t, build(9, 20<<20))
}

// Each function is looked up among all exports, those of mutable globals, which
// the rewriting adds, included.
func TestLookingUpFunctionsIsWork(t *testing.T) {
	exporting := func(functions, exports, globals int) []byte {
		list := make([][]byte, exports)
		for i := range list {
			list[i] = cat(fmt.Sprint(i), byte(0), 0)
		}
		return module(
			section(secType, vec(fn(nil, nil))),
			section(secFunction, many(functions, u(0))),
			section(secGlobal, many(globals, cat(i32, byte(1), byte(0x41), 0, end))),
			section(secExport, vec(list...)),
			section(secCode, many(functions, body())),
		)
	}
	requireAccepted(t, exporting(50_000, 50_000, 0))
	requireAccepted(t, exporting(50_000, 1, 50_000))
	requireAccepted(t, exporting(1, 100_000, 0))
	requireAccepted(t, exporting(100_000, 1, 0))
	requireTooMuchWork(t, exporting(100_000, 100_000, 0))
	requireTooMuchWork(t, exporting(100_000, 1, 99_999))
}

// walks are trains of blocks, for each of which the engine walks back over all
// before it: each by what one of them is and how many may be in a body. None that
// is accepted takes the engine more than some five seconds.
var walks = map[string]struct {
	code []byte
	most int
}{
	"memory.fill":            {cat(zero, zero, zero, byte(0xfc), 11, byte(0)), 10_000},
	"table.fill":             {cat(zero, byte(0xd0), funcref, zero, byte(0xfc), 17, 0), 10_000},
	"an if":                  {cat(zero, byte(0x04), byte(0x40), end), 12_000},
	"an if with a call":      {cat(zero, byte(0x04), byte(0x40), byte(0x10), 0, end), 12_000},
	"both arms":              {cat(zero, byte(0x04), byte(0x40), byte(0x10), 0, byte(0x05), byte(0x10), 0, end), 12_000},
	"an if that returns":     {cat(zero, byte(0x04), byte(0x40), byte(0x0f), end), 8_500},
	"an if that traps":       {cat(zero, byte(0x04), byte(0x40), byte(0x00), end), 8_500},
	"an if with a tail call": {cat(zero, byte(0x04), byte(0x40), byte(0x12), 0, end), 8_500},
	"an else that returns":   {cat(zero, byte(0x04), byte(0x40), byte(0x05), byte(0x0f), end), 9_500},
	"a block":                {block(zero, byte(0x0d), 0), 13_000},
	"a branch":               {cat(zero, byte(0x0d), 0), 17_000},
	"a br_table":             {block(zero, byte(0x0e), many(4, u(0)), 0), 7_500},
	"a loop":                 {loop(), 14_000},
	"a loop that goes round": {loop(zero, byte(0x0d), 0), 8_500},
}

var zero = cat(byte(0x41), 0)

// walking is a module of one function, which has n times the code.
func walking(code []byte, n int) []byte {
	return functionWith(cat(section(secTable, vec(cat(funcref, byte(0), 1))), memory()), body(times(n, code)))
}

func TestTrainsOfBlocksAreBounded(t *testing.T) {
	for name, c := range walks {
		t.Run(name, func(t *testing.T) {
			refused := sort.Search(40_000, func(n int) bool {
				_, err := meter.Parse(walking(c.code, n))
				return err != nil
			})
			require.LessOrEqual(t, refused, c.most)
			require.Greater(t, refused, c.most*3/4)
			requireTooMuchWork(t, walking(c.code, refused))
			m := requireAccepted(t, walking(c.code, refused-1))
			if !strings.HasSuffix(name, ".fill") {
				require.Less(t, m.CompileMemory, 1000*int64(m.LargestBody), "walking takes no memory")
			}
		})
	}
}

// What is written out at length is charged for it, and bounded by it.
func TestLongInstructionsAreCharged(t *testing.T) {
	prefix := cat(section(secTable, vec(cat(funcref, byte(0), 1))), memory(), section(secElement, vec(cat(1, byte(0), vec(u(0))))), section(secDataCount, 1))
	for name, c := range map[string]struct {
		code  []byte
		units int64
	}{
		"memory.fill":   {cat(zero, zero, zero, byte(0xfc), 11, byte(0)), 45},
		"table.fill":    {cat(zero, byte(0xd0), funcref, zero, byte(0xfc), 17, 0), 45},
		"table.copy":    {cat(zero, zero, zero, byte(0xfc), 14, 0, 0), 20},
		"table.init":    {cat(zero, zero, zero, byte(0xfc), 12, 0, 0), 20},
		"memory.copy":   {cat(zero, zero, zero, byte(0xfc), 10, byte(0), byte(0)), 12},
		"memory.init":   {cat(zero, zero, zero, byte(0xfc), 8, 0, byte(0)), 12},
		"call_indirect": {cat(zero, byte(0x11), 0, 0), 14},
	} {
		t.Run(name, func(t *testing.T) {
			m := requireAccepted(t, cat(functionWith(prefix, body(times(1000, c.code))), section(secData, vec(cat(1, "abc")))))
			require.Equal(t, 700*int64(m.LargestBody)+350*1000*c.units, m.CompileMemory)
		})
	}
}

// The checks are blocks too: what is short enough without them need not be with.
func TestTrainsOfChecksAreBounded(t *testing.T) {
	m := requireAccepted(t, walking(walks["a loop"].code, 8_500))
	_, err := m.Rewrite(generous)
	require.ErrorIs(t, err, meter.ErrLimit)
	m = requireAccepted(t, walking(walks["a loop"].code, 5_000))
	_, err = m.Rewrite(generous)
	require.NoError(t, err)
}

// What no branch comes near, or lies behind a br_table, is no train.
func TestWhatIsNotATrain(t *testing.T) {
	unreachable := cat(byte(0x00), times(40_000, walks["an if"].code))
	requireAccepted(t, functionWith(nil, body(unreachable)))

	// As the Go compiler writes functions: a table of blocks in a loop.
	const rooms = 900
	labels := make([][]byte, rooms)
	for i := range labels {
		labels[i] = u(i)
	}
	code := cat(zero, byte(0x0e), vec(labels...), 0)
	for i := range rooms {
		code = cat(block(code), times(10, walks["an if"].code), byte(0x0c), rooms-1-i)
	}
	requireAccepted(t, functionWith(nil, body(loop(code))))
}

// What compilers emit is charged little beyond its size.
func TestCompileMemoryOfPlainCode(t *testing.T) {
	m := requireAccepted(t, functionWith(nil, sized(meter.MaxBody)))
	require.Equal(t, int64(700*meter.MaxBody), m.CompileMemory)

	m = requireAccepted(t, guest(t))
	require.Less(t, m.CompileMemory, 2*700*int64(m.LargestBody))
}
