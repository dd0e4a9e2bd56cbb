package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/wasmtest"
)

// What fails blocks, unless it fails open. A sink never blocks, so neither is
// said of one.
func TestListAndPlanSayHowTheOthersThanSinksFail(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	module := wasmtest.NewReactor(
		abi.Descriptor{Name: "guard", Type: abi.Validation, Hooks: abi.On(abi.Request, abi.ToolsCall)},
		abi.Descriptor{Name: "hint", Type: abi.Validation, FailOpen: true, Hooks: abi.On(abi.Request, abi.ToolsCall)},
		abi.Descriptor{Name: "trail", Type: abi.Sink, FailOpen: true, Hooks: abi.On(abi.Request, abi.ToolsCall)},
	)
	module.Invoke("", module.Answer(`{"result":{"valid":true}}`))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "three.wasm"), module.Bytes(), 0o600))

	listed := weir(t, "", "list", dir)
	require.Equal(t, exitDone, listed.code, listed.errors)
	require.Contains(t, listed.out, "guard: validation, active, fails closed\n")
	require.Contains(t, listed.out, "hint: validation, active, fails open\n")
	require.Contains(t, listed.out, "trail: sink, active\n")

	planned := weir(t, "", "plan", "--hosts", dir, "--event", "tools/call", "--phase", "request")
	require.Equal(t, exitDone, planned.code, planned.errors)
	require.Equal(t, "tools/call request (sending)\n"+
		"  1.  validation  guard  on host1\n"+
		"        author   hooks tools/call\n"+
		"        default  active, fails closed, no timeout, no config, not required\n"+
		"  2.  validation  hint   on host1\n"+
		"        author   fails open, hooks tools/call\n"+
		"        default  active, no timeout, no config, not required\n"+
		"  3.  sink        trail  on host1\n"+
		"        author   hooks tools/call\n"+
		"        default  active, no timeout, no config, not required\n", planned.out)
}
