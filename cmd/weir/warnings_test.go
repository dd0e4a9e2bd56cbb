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
