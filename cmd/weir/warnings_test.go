package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/wasmtest"
)

// What would make every call fail, or never run, is said before it does.
func TestPlanWarnsOfConfigsAndOfEntriesThatMatchNothing(t *testing.T) {
	dir := t.TempDir()
	module := wasmtest.NewReactor(abi.Descriptor{Name: "guard", Type: abi.Validation, Hooks: abi.On(abi.Request, "*"),
		ConfigSchema: json.RawMessage(`{"type":"object","properties":{"deny":{"type":"array"}},"additionalProperties":false}`)})
	module.Invoke("", module.Answer(`{"result":{"valid":true}}`))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "guard.wasm"), module.Bytes(), 0o600))
	write := func(entries string) string {
		path := filepath.Join(dir, "weir.yaml")
		require.NoError(t, os.WriteFile(path, []byte("version: 1\nhosts:\n  - {name: local, modules: .}\ninterceptors:\n"+entries), 0o600))
		return path
	}

	bad := weir(t, "", "plan", "--config", write("  - {interceptor: guard, config: {deny: x}}\n  - {interceptor: gaurd, mode: audit}\n"))
	require.Equal(t, exitDone, bad.code, bad.errors)
	require.Contains(t, bad.out, "warning: guard on local is refused, so each of its calls fails: its config in the entry at "+filepath.Join(dir, "weir.yaml")+":5:")
	require.Contains(t, bad.out, "fails: its config in the entry at ")
	require.Contains(t, bad.out, "gaurd")

	good := weir(t, "", "plan", "--config", write("  - {interceptor: guard, config: {deny: [x]}}\n"))
	require.NotContains(t, good.out, "warning")
}

// A host that is down is told of with what that means and what to do about it.
func TestPlanTellsOfHostsThatAreDown(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "weir.yaml")
	require.NoError(t, os.WriteFile(path, []byte("version: 1\nhosts:\n"+
		"  - {name: closed, url: \"http://127.0.0.1:1/mcp\"}\n"+
		"  - {name: open, command: [./no-such-program], failOpen: true}\n"), 0o600))
	o := weir(t, "", "plan", "--config", path, "--event", "tools/call", "--phase", "request")
	require.Equal(t, exitDone, o.code, o.errors)
	for _, want := range []string{
		`warning: host "closed": does not answer as an MCP server: `, "connection refused", "see that an interceptor server answers at its url",
		"what it may guard is blocked until it answers", `warning: host "open": the command does not start`, "run its command by itself to see why",
		"it fails open: operations go on without it",
	} {
		require.Contains(t, o.out, want)
	}
}
