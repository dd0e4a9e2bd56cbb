package meter_test

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/weir-mcp/weir/runtime/meter"
)

// FuzzParse: no input panics or costs more memory than a constant factor of its
// size; what is accepted is still accepted, and the same, without its custom
// sections.
func FuzzParse(f *testing.F) {
	f.Add(rich())
	f.Add(module())
	f.Add(module(section(secType, most, make([]byte, 3))))
	f.Add(functionWith(nil, bodyWithLocals(vec(cat(most, i32)))))
	f.Add(function(bytes.Repeat([]byte{0x02, 0x40}, 20), bytes.Repeat([]byte{end}, 20)))
	f.Add(function(byte(0x41), 0, byte(0x0e), many(30, u(0)), 0))
	f.Add(module(section(secCustom, "name", byte(1), 5, most)))
	f.Add(module(section(secImport, vec(cat("a", "b", byte(1), externref, byte(0), 7), cat("a", "m", byte(2), byte(1), 3, 4)))))
	f.Add(module(section(secGlobal, vec(cat(i64, byte(0), byte(0x42), 2, byte(0x42), 3, byte(0x7e), end)))))
	f.Add([]byte("\x00asm\x0d\x00\x01\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		m, err := meter.Parse(b)
		runtime.ReadMemStats(&after)
		if used, most := after.TotalAlloc-before.TotalAlloc, uint64(1<<20+200*len(b)); used > most {
			t.Fatalf("%d bytes allocated for %d of input", used, len(b))
		}
		if err != nil {
			return
		}
		plain, err := meter.Parse(m.Stripped())
		if err != nil {
			t.Fatalf("accepted, but not without its custom sections: %v", err)
		}
		if len(plain.Custom) != 0 || !bytes.Equal(plain.Stripped(), m.Stripped()) {
			t.Fatal("stripping twice is not stripping once")
		}
		if len(plain.Functions) != len(m.Functions) || len(plain.Exports) != len(m.Exports) || plain.LargestBody != m.LargestBody {
			t.Fatal("stripping changed what the module declares")
		}
	})
}
