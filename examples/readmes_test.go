package examples_test

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/examples/internal/readme"
)

// The manual pages of modules are tested with the modules; these are about
// programs, and every command on them runs as it stands.
func TestReadmes(t *testing.T) {
	// What is compiled afresh on a machine that is busy with other tests takes
	// longer than a gateway waits for a folder: it comes out of the cache then.
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	for _, args := range [][]string{
		{"generate", "./..."},
		{"run", "../cmd/weir", "inspect", "interceptors/pii-redactor.wasm"},
		{"run", "../cmd/weir", "inspect", "interceptors/secret-scanner.wasm"},
		{"run", "../cmd/weir", "inspect", "interceptors/audit-trail.wasm"},
		// Which has a cache of its own.
		{"run", "../cmd/weir", "list", "--", "go", "run", "./server", "-modules", "interceptors"},
	} {
		out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput()
		require.NoError(t, err, "go %v: %s", args, out)
	}
	for _, dir := range []string{"server", "gateway", "gateway-chain"} {
		t.Run(dir, func(t *testing.T) { readme.Run(t, "..", dir) })
	}
}
