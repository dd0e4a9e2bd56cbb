package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
)

// TestWideningOverride is protocol.md §5: an override that would widen the hooks
// of a module in our own folder refuses the module, whatever its failOpen, and
// the last good version stays.
func TestWideningOverride(t *testing.T) {
	t.Parallel()
	const no, yes = `{"result":{"valid":false,"severity":"error"}}`, `{"result":{"valid":true}}`
	guard := func(failOpen bool, phases abi.Hooks) abi.Descriptor {
		return abi.Descriptor{Name: "guard", Type: abi.Validation, Hooks: phases, FailOpen: failOpen}
	}
	narrow, wide := abi.On(abi.Response, abi.ToolsCall), abi.OnBoth(abi.ToolsCall)
	conf := func(dir, entry string) string {
		return "hosts:\n" + modulesEntry("local", dir) + "interceptors:\n" + entry
	}
	// The head of weir.yaml puts the entry on line 5.
	const override = "  - {interceptor: guard, hooks: [{events: [tools/call], phase: request}]}\n"

	t.Run("the module is refused, and weir plan shows why", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		writeModule(t, dir, "guard", guard(true, narrow), no)
		writeModule(t, dir, "other", abi.Descriptor{Name: "other", Type: abi.Validation, Hooks: wide}, yes)
		file := write(t, t.TempDir(), "weir.yaml", "version: 1\n"+conf(dir, override))
		o := weir(t, "", "plan", "--config", file)
		require.Equal(t, exitDone, o.code, o.errors)
		require.Contains(t, o.out, "warning: guard.wasm on local is refused: the whole module is refused: ")
		require.Contains(t, o.out, file+":5:5", o.out)
		require.Contains(t, o.out, "may only narrow")
		require.Contains(t, o.out, "other")
		require.NotContains(t, o.out, "validation  guard")
	})
	t.Run("so is one whose copy would be widened", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		writeModule(t, dir, "guard", guard(false, narrow), no)
		file := write(t, t.TempDir(), "weir.yaml", "version: 1\n"+conf(dir,
			"  - {interceptor: guard}\n  - {interceptor: guard, as: copy, hooks: [{events: [\"*\"], phase: response}]}\n"))
		o := weir(t, "", "plan", "--config", file)
		require.Equal(t, exitDone, o.code, o.errors)
		require.Contains(t, o.out, file+":6:5")
		require.Contains(t, o.out, `interceptor "copy"`)
	})
	t.Run("a required one blocks", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		writeModule(t, dir, "guard", guard(true, narrow), yes)
		s := startRaw(t, gatewayCommand(t, conf(dir, strings.Replace(override, "guard,", "guard, required: true,", 1)),
			role(t, "backend", filepath.Join(t.TempDir(), "notes"))), clientReplies)
		hello(s, "2025-06-18")
		require.Contains(t, s.call(rpc(1, abi.ToolsCall, toolParams("echo", `{"text":"hello"}`))), `"reason":"discovery_failed"`)
	})
	t.Run("the last good version stays", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		writeModule(t, dir, "guard", guard(true, wide), no)
		s := startRaw(t, gatewayCommand(t, conf(dir, override), role(t, "backend", filepath.Join(t.TempDir(), "notes"))), clientReplies)
		hello(s, "2025-06-18")
		call := func(id int) string { return s.call(rpc(id, abi.ToolsCall, toolParams("echo", `{"text":"hello"}`))) }
		require.Contains(t, call(1), `"error"`)

		writeModule(t, dir, "guard", guard(true, narrow), no)
		eventually(t, "the new version is refused", func() bool { return strings.Contains(s.errs.String(), "the last good one serves on") })
		require.Contains(t, s.errs.String(), "weir.yaml:5:5")
		require.Contains(t, call(2), `"error"`, "the good version still guards")

		writeModule(t, dir, "guard", guard(true, wide), yes)
		id := 2
		eventually(t, "a version that the override narrows takes over", func() bool {
			id++
			return strings.Contains(call(id), `"text":"hello"`)
		})
	})
}
