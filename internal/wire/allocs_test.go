//go:build !race

package wire

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The race detector makes sync.Pool forget at random, hence the build tag.
func TestReadAllocatesTheMethodOnly(t *testing.T) {
	in := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":[1,2,3]},"_meta":{"progressToken":1}}}`)
	_, _ = Read(in)
	require.LessOrEqual(t, testing.AllocsPerRun(200, func() { _, _ = Read(in) }), 2.0)
}
