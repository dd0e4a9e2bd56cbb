package meter_test

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/runtime/meter"
)

// most is a LEB128 of 2^32-1.
var most = []byte{0xff, 0xff, 0xff, 0xff, 0x0f}

func nullElement() []byte { return cat(byte(0xd0), funcref, end) }

// sized is a function body of exactly n bytes.
func sized(n int) []byte { return body(bytes.Repeat([]byte{1}, n-2)) }

// TestFixedLimits: what reaches a limit is accepted, one more is refused, and
// the refusal names the limit and its value.
func TestFixedLimits(t *testing.T) {
	types := section(secType, vec(fn(nil, nil)))
	tests := []struct {
		what  string
		limit int
		build func(n int) []byte
	}{
		{"types", meter.MaxItems, func(n int) []byte { return module(section(secType, many(n, fn(nil, nil)))) }},
		{"parameters", meter.MaxParams, func(n int) []byte {
			return module(section(secType, vec(fn(bytes.Repeat([]byte{i32}, n), nil))))
		}},
		{"results", meter.MaxResults, func(n int) []byte {
			return module(section(secType, vec(fn(nil, bytes.Repeat([]byte{i32}, n)))))
		}},
		{"imports", meter.MaxItems, func(n int) []byte {
			return module(types, section(secImport, many(n, cat("", "", byte(0), 0))))
		}},
		{"functions", meter.MaxItems, func(n int) []byte {
			return module(types, section(secFunction, many(n, u(0))), section(secCode, many(n, body())))
		}},
		{"functions", meter.MaxItems, func(n int) []byte { // with imported ones
			return module(types, section(secImport, vec(cat("", "", byte(0), 0))),
				section(secFunction, many(n-1, u(0))), section(secCode, many(n-1, body())))
		}},
		{"tables", meter.MaxItems, func(n int) []byte {
			return module(section(secTable, many(n, cat(funcref, byte(0), 0))))
		}},
		{"globals", meter.MaxItems, func(n int) []byte {
			return module(section(secGlobal, many(n, cat(i32, byte(0), byte(0x41), 0, end))))
		}},
		{"globals", meter.MaxItems, func(n int) []byte {
			return module(section(secImport, vec(cat("", "", byte(3), i32, byte(0)))),
				section(secGlobal, many(n-1, cat(i32, byte(0), byte(0x41), 0, end))))
		}},
		{"values held by a constant expression", meter.MaxConstStack, func(n int) []byte {
			return module(section(secGlobal, vec(cat(i32, byte(0), bytes.Repeat([]byte{0x41, 0}, n), bytes.Repeat([]byte{0x6a}, n-1), end))))
		}},
		{"exports", meter.MaxItems, func(n int) []byte {
			items := make([][]byte, n)
			for i := range items {
				items[i] = cat(fmt.Sprint(i), byte(2), 0)
			}
			return module(memory(), section(secExport, vec(items...)))
		}},
		{"element segments", meter.MaxItems, func(n int) []byte {
			return module(section(secElement, many(n, cat(1, byte(0), 0))))
		}},
		{"data segments", meter.MaxItems, func(n int) []byte { return module(section(secData, many(n, cat(1, 0)))) }},
		{"data segments", meter.MaxItems, func(n int) []byte {
			return module(section(secDataCount, n), section(secData, many(n, cat(1, 0))))
		}},
		{"custom sections", meter.MaxItems, func(n int) []byte {
			return module(bytes.Repeat(section(secCustom, ""), n))
		}},
		{"locals of a function", meter.MaxLocals, func(n int) []byte {
			return functionWith(nil, bodyWithLocals(vec(cat(n, i32))))
		}},
		{"locals of a function", meter.MaxLocals, func(n int) []byte { // over two declarations
			return functionWith(nil, bodyWithLocals(vec(cat(n-1, i32), cat(1, i64))))
		}},
		{"local declarations", meter.MaxLocals, func(n int) []byte {
			return functionWith(nil, bodyWithLocals(many(n, cat(1, i32))))
		}},
		{"locals of all functions", meter.MaxAllLocals, func(n int) []byte {
			full := n / meter.MaxLocals
			bodies := cat(bytes.Repeat(bodyWithLocals(vec(cat(meter.MaxLocals, i32))), full), bodyWithLocals(vec(cat(n%meter.MaxLocals, i32))))
			return module(types, section(secFunction, many(full+1, u(0))), section(secCode, full+1, bodies))
		}},
		{"bytes of a function body", meter.MaxBody, func(n int) []byte { return functionWith(nil, sized(n)) }},
		{"br_table targets", meter.MaxBrTable, func(n int) []byte {
			return function(byte(0x41), 0, byte(0x0e), many(n, u(0)), 0)
		}},
		{"nested blocks", meter.MaxNesting, func(n int) []byte {
			return function(bytes.Repeat([]byte{0x02, 0x40}, n), bytes.Repeat([]byte{end}, n))
		}},
		{"nested blocks", meter.MaxNesting, func(n int) []byte {
			return function(bytes.Repeat([]byte{0x41, 0, 0x04, 0x40}, n-1), byte(0x03), byte(0x40), bytes.Repeat([]byte{end}, n))
		}},
		{"pages of memory", meter.MaxPages, func(n int) []byte { return module(section(secMemory, vec(cat(byte(0), n)))) }},
		{"pages of memory", meter.MaxPages, func(n int) []byte { return module(section(secMemory, vec(cat(byte(1), 0, n)))) }},
		{"elements of a segment", meter.MaxElements, func(n int) []byte {
			return module(types, section(secFunction, vec(u(0))), section(secElement, vec(cat(1, byte(0), many(n, u(0))))), section(secCode, vec(body())))
		}},
		{"elements of all segments", meter.MaxElements, func(n int) []byte {
			return module(section(secElement, vec(cat(5, funcref, many(n-1, nullElement())), cat(5, funcref, many(1, nullElement())))))
		}},
	}
	for i, tt := range tests {
		t.Run(fmt.Sprintf("%d %s", i, tt.what), func(t *testing.T) {
			requireAccepted(t, tt.build(tt.limit))
			requireRefused(t, tt.build(tt.limit+1), meter.ErrLimit,
				fmt.Sprintf("%d %s, at most %d are allowed", tt.limit+1, tt.what, tt.limit))
		})
	}
}

// TestBombs: a few bytes that would have an engine allocate gigabytes. Each is
// refused, and for next to no memory.
func TestBombs(t *testing.T) {
	types := section(secType, vec(fn(nil, nil)))
	for name, tt := range map[string]struct {
		module []byte
		kind   error
	}{
		"18 bytes, 2^32-1 types":       {module(section(secType, most, make([]byte, 3))), meter.ErrLimit},
		"2^32-1 parameters":            {module(section(secType, 1, byte(0x60), most)), meter.ErrLimit},
		"2^32-1 imports":               {module(section(secImport, most)), meter.ErrLimit},
		"2^32-1 functions":             {module(section(secFunction, most)), meter.ErrLimit},
		"2^32-1 tables":                {module(section(secTable, most)), meter.ErrLimit},
		"2^32-1 memories":              {module(section(secMemory, most)), meter.ErrLimit},
		"2^32-1 globals":               {module(section(secGlobal, most)), meter.ErrLimit},
		"2^32-1 exports":               {module(section(secExport, most)), meter.ErrLimit},
		"2^32-1 element segments":      {module(section(secElement, most)), meter.ErrLimit},
		"2^32-1 elements":              {module(section(secElement, vec(cat(1, byte(0), most)))), meter.ErrLimit},
		"2^32-1 bodies":                {module(types, section(secCode, most)), meter.ErrLimit},
		"2^32-1 data segments":         {module(section(secData, most)), meter.ErrLimit},
		"2^32-1 counted data segments": {module(section(secDataCount, most)), meter.ErrLimit},
		"2^32-1 bytes of data":         {module(section(secData, vec(cat(1, most)))), meter.ErrMalformed},
		"2^32-1 bytes of name":         {module(section(secImport, 1, most)), meter.ErrMalformed},
		"2^32-1 bytes of custom name":  {module(section(secCustom, most)), meter.ErrMalformed},
		"2^32-1 locals":                {functionWith(nil, bodyWithLocals(vec(cat(most, i32)))), meter.ErrLimit},
		"2^64 locals in declarations":  {functionWith(nil, bodyWithLocals(many(1000, cat(most, i32)))), meter.ErrLimit},
		"50 million locals":            {functionWith(nil, bodyWithLocals(vec(cat(50_000_000, i32)))), meter.ErrLimit},
		"2^32-1 local declarations":    {functionWith(nil, bodyWithLocals(most)), meter.ErrLimit},
		"2^32-1 br_table targets":      {function(byte(0x0e), most), meter.ErrLimit},
		"2^32-1 types of a select":     {function(byte(0x1c), most), meter.ErrMalformed},
		"2^32-1 bytes of body":         {module(types, section(secFunction, vec(u(0))), section(secCode, 1, most)), meter.ErrLimit},
		"2^32-1 bytes of section":      {module(cat(secType, most)), meter.ErrTruncated},
		"100,000 types, none there":    {module(section(secType, 100_000)), meter.ErrMalformed},
		"65,536 targets, none there":   {function(byte(0x0e), 65_536), meter.ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := meter.Parse(tt.module)
			runtime.ReadMemStats(&after)
			require.ErrorIs(t, err, tt.kind)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<16), "bytes allocated")
		})
	}
	require.Len(t, module(section(secType, most, make([]byte, 3))), 18)
}

// How deep the blocks nest is said, and not only that it is too deep, as far as
// the body can be read.
func TestTooDeepIsSaidToBeHowDeep(t *testing.T) {
	open := func(n int) []byte { return bytes.Repeat([]byte{0x02, 0x40}, n) }
	shut := func(n int) []byte { return bytes.Repeat([]byte{end}, n) }
	for name, c := range map[string]struct {
		body  []byte
		found int
	}{
		"at once":                      {cat(open(5000), shut(5000)), 5000},
		"on a second rise":             {cat(open(1001), shut(500), open(4000), shut(4501)), 4501},
		"of all kinds":                 {cat(open(1000), bytes.Repeat([]byte{0x03, 0x40, 0x41, 0, 0x04, 0x40}, 50), shut(1100)), 1100},
		"not the next one":             {cat(open(1001), shut(1002), open(5000)), 1001},
		"up to what is no instruction": {cat(open(1500), byte(0xff), open(1000)), 1500},
		"up to the end":                {open(3000), 3000},
	} {
		t.Run(name, func(t *testing.T) {
			requireRefused(t, function(c.body), meter.ErrLimit, fmt.Sprintf("%d nested blocks, at most %d are allowed", c.found, meter.MaxNesting))
		})
	}
}
