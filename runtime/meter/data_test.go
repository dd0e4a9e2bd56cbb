package meter_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
)

// at is an active data segment.
func at(offset int, data string) []byte { return cat(0, byte(0x41), s(int64(offset)), end, data) }

// s is a signed LEB128.
func s(v int64) []byte {
	var b []byte
	for {
		c := byte(v & 0x7f)
		if v >>= 7; v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

// TestDataSegments: merged or not, memory is what it was, and what could not be
// instantiated still cannot.
func TestDataSegments(t *testing.T) {
	page := func(sections ...[]byte) []byte {
		return module(append([][]byte{
			section(secType, vec(fn(nil, nil))), section(secFunction, vec(u(0))),
			section(secMemory, vec(cat(byte(0), 1))), section(secExport, vec(cat("memory", byte(2), 0))),
		}, sections...)...)
	}
	nothing := section(secCode, vec(body()))
	drop := section(secCode, vec(body(byte(0xfc), 9, 0)))
	data := func(segments ...[]byte) []byte { return page(nothing, section(secData, vec(segments...))) }
	long := string(bytes.Repeat([]byte("x"), 300))
	for name, c := range map[string]struct {
		module   []byte
		segments int
		fails    bool
	}{
		"none":                           {page(nothing), 0, false},
		"one":                            {data(at(5, "a")), 1, false},
		"neighbours":                     {data(at(5, "a"), at(6, "b"), at(7, "c")), 1, false},
		"a gap of 64":                    {data(at(0, "a"), at(65, "b")), 1, false},
		"a gap of 65":                    {data(at(0, "a"), at(66, "b")), 2, false},
		"out of order":                   {data(at(40, "c"), at(10, "a"), at(20, "b")), 1, false},
		"empty ones go":                  {data(at(3, ""), at(65536, "")), 0, false},
		"long ones":                      {data(at(0, long), at(300, long), at(1000, long)), 2, false},
		"a memory index":                 {data(cat(2, 0, byte(0x41), 1, end, "a"), at(2, "b")), 1, false},
		"up to the end":                  {data(at(65535, "a"), at(65534, "b")), 1, false},
		"overlapping, the last wins":     {data(at(0, "aaaa"), at(2, "bb")), 2, false},
		"overlapping, the other way":     {data(at(2, "bb"), at(0, "aaaa")), 2, false},
		"the same place":                 {data(at(2, "b"), at(2, "a")), 2, false},
		"past the end":                   {data(at(0, "a"), at(65536, "b"), at(1, "c")), 3, true},
		"an empty one past the end":      {data(at(65537, "")), 1, true},
		"at a negative place":            {data(at(-1, "a"), at(0, "b")), 2, true},
		"a passive one":                  {data(at(0, "a"), at(1, "b"), cat(1, "c")), 3, false},
		"a computed place":               {data(at(0, "a"), cat(0, byte(0x41), 1, byte(0x41), 1, byte(0x6a), end, "b")), 2, false},
		"dropped by code":                {page(section(secDataCount, 2), drop, section(secData, vec(at(0, "a"), at(1, "b")))), 2, false},
		"counted, and referred to by no": {page(section(secDataCount, 2), nothing, section(secData, vec(at(0, "a"), at(1, "b")))), 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, _ := fueled(unlimited, 1000)
			r, out := rewritten(t, c.module, generous)
			require.Equal(t, c.segments, r.DataSegments)
			require.Equal(t, c.segments, out.DataSegments)
			e := engine(t, wazero.NewRuntimeConfigInterpreter())
			before, errBefore := e.InstantiateWithConfig(ctx, c.module, wazero.NewModuleConfig().WithName("before"))
			after, errAfter := e.InstantiateWithConfig(ctx, r.Binary, wazero.NewModuleConfig().WithName("after"))
			require.Equal(t, c.fails, errBefore != nil)
			require.Equal(t, c.fails, errAfter != nil)
			if c.fails {
				return
			}
			want, _ := before.Memory().Read(0, 65536)
			got, _ := after.Memory().Read(0, 65536)
			require.True(t, bytes.Equal(want, got))
		})
	}
	t.Run("at the end of 4 GiB", func(t *testing.T) {
		r, _ := rewritten(t, module(section(secMemory, vec(cat(byte(0), 65536))), section(secData, vec(at(-1, "b"), at(-2, "a")))), generous)
		require.Equal(t, 1, r.DataSegments)
	})
	t.Run("of imported memory", func(t *testing.T) {
		r, _ := rewritten(t, module(section(secImport, vec(cat("m", "m", byte(2), byte(0), 1))), section(secData, vec(at(0, "a"), at(1, "b")))), generous)
		require.Equal(t, 2, r.DataSegments)
	})
	t.Run("100,000 of them stay small", func(t *testing.T) {
		var segments [][]byte
		for i := range 100_000 {
			segments = append(segments, at(i*65, "a"))
		}
		b := module(section(secMemory, vec(cat(byte(0), 100))), section(secData, vec(segments...)))
		r, _ := rewritten(t, b, generous)
		require.Equal(t, 1, r.DataSegments)
		require.Less(t, len(r.Binary), 7_000_000)
	})
	t.Run("of a Go guest", func(t *testing.T) {
		r, _ := rewritten(t, guest(t), generous)
		require.Less(t, r.DataSegments, 100)
	})
}
