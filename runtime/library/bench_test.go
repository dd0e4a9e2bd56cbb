package library_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/internal/wasmtest"
	"github.com/weir-mcp/weir/runtime"
	"github.com/weir-mcp/weir/runtime/library"
)

// What the library adds to a call: a native interceptor, and the smallest real
// module.
func BenchmarkInvoke(b *testing.B) {
	dir := b.TempDir()
	put(b, dir, "m.wasm", string(wasmtest.Allowing("module")))
	l := openFolder(b, dir, quick(realLoader(b, runtime.DefaultLimits())))
	require.NoError(b, l.Register(library.Check("native", onCalls, func(json.RawMessage) bool { return true })))
	for _, name := range []string{"native", "module"} {
		b.Run(name, func(b *testing.B) {
			inv := call(name)
			for b.Loop() {
				if _, err := l.Invoke(b.Context(), inv); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
