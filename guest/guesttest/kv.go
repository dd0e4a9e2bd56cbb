//go:build !wasip1

package guesttest

import (
	"testing"

	"github.com/weir-mcp/weir/guest/internal/module"
)

// KV gives all interceptors of the program an empty store until the test ends,
// as a host does that grants kv. Without it the store is unavailable, as it is
// for a caller whom a host knows nothing of. It keeps what a host keeps for one
// caller: whose values are whose is the host's to know. Its time is that of
// package time, so that testing/synctest can move it. Tests that run in parallel
// share one store.
func KV(t testing.TB) {
	t.Helper()
	t.Cleanup(module.UseKV(module.NewKVDouble()))
}
