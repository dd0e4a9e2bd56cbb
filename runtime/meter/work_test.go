package meter_test

import (
	"bytes"
	"fmt"
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
	most := meter.MaxAllWork / (each * 1000)
	requireAccepted(t, build(most))
	requireRefused(t, build(most+1), meter.ErrLimit,
		fmt.Sprintf("units of work to compile the module, at most %d are allowed", meter.MaxAllWork))
}

// What compilers emit is charged little beyond its size.
func TestCompileMemoryOfPlainCode(t *testing.T) {
	m := requireAccepted(t, functionWith(nil, sized(meter.MaxBody)))
	require.Equal(t, int64(700*meter.MaxBody), m.CompileMemory)

	m = requireAccepted(t, guest(t))
	require.Less(t, m.CompileMemory, 2*700*int64(m.LargestBody))
}
