package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/chain"
	"github.com/weir-mcp/weir/internal/wasmtest"
)

// planFolder is a module of five interceptors and a file of policy for them.
func planFolder(t *testing.T, entries string) (config string) {
	t.Helper()
	dir := t.TempDir()
	calls := abi.On(abi.Request, abi.ToolsCall)
	module := wasmtest.NewReactor(
		abi.Descriptor{Name: "guard", Type: abi.Validation, Hooks: abi.OnBoth("*"), Mode: abi.Audit},
		abi.Descriptor{Name: "redact", Type: abi.Mutation, Hooks: calls, PriorityHint: abi.Priority(-7)},
		abi.Descriptor{Name: "trail", Type: abi.Sink, Hooks: calls},
		abi.Descriptor{Name: "idle", Type: abi.Validation, Hooks: abi.Hooks{}},
		abi.Descriptor{Name: "noisy", Type: abi.Sink, Hooks: abi.OnBoth("*")},
	)
	module.Invoke("", module.Answer(`{"result":{"valid":true}}`))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "five.wasm"), module.Bytes(), 0o600))
	return write(t, dir, "weir.yaml", "version: 1\nhosts:\n  - {name: local, modules: .}\ninterceptors:\n"+entries)
}

// Each setting is said once, beneath where it came from: an entry of policy by
// its line, the author, or the default.
func TestPlanSaysWhereEachSettingCameFrom(t *testing.T) {
	t.Setenv("WEIR_TEST_PATTERN", "hunter2")
	config := planFolder(t, `  - {interceptor: "*", timeout: 200ms}
  - {interceptor: guard, required: true, mode: active, hooks: [{events: [tools/call, "prompts/*"], phase: request}]}
  - {interceptor: redact, as: redact-names, priorityHint: {request: 5}, failOpen: true, config: {what: "${WEIR_TEST_PATTERN}"}}
  - {interceptor: noisy, enabled: false}
`)
	o := weir(t, "", "plan", "--config", config, "--event", "tools/call", "--phase", "request")
	require.Equal(t, exitDone, o.code, o.errors)
	require.Equal(t, strings.ReplaceAll(`tools/call request (sending)
  1.  mutation    redact-names (a copy of redact)  on local
        policy FILE:7:5  fails open, priority 5, config {"what":"${WEIR_TEST_PATTERN}"}
        policy FILE:5:5  timeout 200ms
        author           hooks tools/call
        default          active, not required
  2.  validation  guard                            on local
        policy FILE:6:5  active, hooks tools/call, required
        policy FILE:5:5  timeout 200ms
        default          fails closed, no config
  3.  sink        trail                            on local
        policy FILE:5:5  timeout 200ms
        author           hooks tools/call
        default          active, no config, not required
  left out  validation  idle    on local  not_hooked
  left out  sink        noisy   on local  disabled: policy FILE:8:5
  left out  mutation    redact  on local  replaced: only copies of it are served; an entry with its own name and no `+"`as`"+` would serve it too
`, "FILE", config), strings.ReplaceAll(o.out, strings.Repeat(" ", len(config)-len("FILE")), ""), "padding aside")
}

// What runs nowhere is said once, at the end, with the reason that matters.
func TestPlanShowsWhatIsInNoPlan(t *testing.T) {
	config := planFolder(t, `  - {interceptor: noisy, enabled: false}
  - {interceptor: trail, hooks: []}
  - {interceptor: guard, hooks: [{events: [tools/call], phase: request}]}
`)
	o := weir(t, "", "plan", "--config", config)
	require.Equal(t, exitDone, o.code, o.errors)
	_, last, ok := strings.Cut(o.out, "\n\nin no plan\n")
	require.True(t, ok, o.out)
	require.Equal(t, "  left out  validation  idle   on local  not_hooked\n"+
		"  left out  sink        noisy  on local  disabled: policy "+config+":5:5\n"+
		"  left out  sink        trail  on local  narrowed: policy "+config+":6:5\n", last)

	o = weir(t, "", "plan", "--config", config, "--json")
	var p struct {
		Plans   []json.RawMessage
		LeftOut []struct{ Interceptor, Reason string }
	}
	require.NoError(t, json.Unmarshal([]byte(o.out), &p))
	require.Len(t, p.Plans, 1)
	require.Equal(t, []struct{ Interceptor, Reason string }{{"idle", "not_hooked"}, {"noisy", "disabled"}, {"trail", "narrowed"}}, p.LeftOut)

	o = weir(t, "", "plan", "--config", planFolder(t, "  - {interceptor: \"*\", enabled: false}\n"))
	require.True(t, strings.HasPrefix(o.out, "nothing is governed: no interceptor has a part in the plan of any event\n\nin no plan\n"), o.out)
}

// Without a protocol version nothing is left out by its author's range, which is
// shown; with one it is, and the plan says why.
func TestPlanOfAProtocolVersion(t *testing.T) {
	dir := t.TempDir()
	module := wasmtest.NewReactor(
		abi.Descriptor{Name: "late", Type: abi.Validation, Hooks: abi.On(abi.Request, abi.ToolsCall), Compat: &abi.Compat{MinProtocol: "2026-07-28"}},
		abi.Descriptor{Name: "early", Type: abi.Validation, Hooks: abi.On(abi.Request, abi.ToolsCall), Compat: &abi.Compat{MinProtocol: "2025-03-26", MaxProtocol: "2025-11-25"}},
	)
	module.Invoke("", module.Answer(`{"result":{"valid":true}}`))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "two.wasm"), module.Bytes(), 0o600))
	o := weir(t, "", "plan", "--hosts", dir)
	require.Contains(t, o.out, "author   for protocol 2025-03-26 to 2025-11-25, hooks tools/call\n")
	require.Contains(t, o.out, "author   from protocol 2026-07-28 on, hooks tools/call\n")
	require.NotContains(t, o.out, "left out")

	o = weir(t, "", "plan", "--hosts", dir, "--protocol", "2025-11-25")
	require.Contains(t, o.out, "1.  validation  early  on host1\n")
	require.Contains(t, o.out, "left out  validation  late  on host1  compat: 2025-11-25 is negotiated, it is for 2026-07-28 and later\n")
	o = weir(t, "", "plan", "--hosts", dir, "--protocol", "2026-07-28", "--json")
	require.Contains(t, o.out, `"protocolVersion":"2026-07-28"`)
	require.Contains(t, o.out, `"reason":"compat"`)
	o = weir(t, "", "plan", "--hosts", dir, "--protocol", "latest")
	require.Equal(t, exitUsage, o.code)
	require.Contains(t, o.errors, "2025-11-25")
}

// An entry that narrows a guard to what is no event switches it off.
func TestPlanWarnsOfHooksThatMatchNoEvent(t *testing.T) {
	o := weir(t, "", "plan", "--config", planFolder(t, "  - {interceptor: guard, hooks: [{events: [initialize, \"tasks/*\"], phase: request}]}\n"))
	require.Equal(t, exitDone, o.code, o.errors)
	require.Contains(t, o.out, `:5:5: the entry for interceptor "guard" has hooks that match no event at all`)
}

// What looks like an event of MCP and is none is told of, whoever wrote it.
func TestPlanWarnsOfMisspelledEvents(t *testing.T) {
	config := planFolder(t, "  - {interceptor: guard, hooks: [{events: [tool/call], phase: request}]}\n")
	module := wasmtest.NewReactor(abi.Descriptor{Name: "late", Type: abi.Validation, Hooks: abi.On(abi.Request, "resource/read", "acme/deploy")})
	module.Invoke("", module.Answer(`{"result":{"valid":true}}`))
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(config), "late.wasm"), module.Bytes(), 0o600))
	o := weir(t, "", "plan", "--config", config)
	require.Equal(t, exitDone, o.code, o.errors)
	require.Contains(t, o.out, `:5:5: the entry for interceptor "guard" has hooks for what is no event of MCP, "tool/call" (did you mean "tools/call"?): `)
	require.Contains(t, o.out, `warning: interceptor "late" on host "local" has hooks for what is no event of MCP, "resource/read" (did you mean "resources/read"?): `)
	require.NotContains(t, o.out, `"acme/deploy"`, "a custom event of an author's is legal")
	require.Contains(t, o.out, "acme/deploy request (sending)\n", "and has a plan")
}

// What did not load is said first and once: which, where, why, and what to do.
// It is a part of the answer, so the command has not failed.
func TestPlanSaysWhatDidNotLoad(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "source.wasm"), []byte("(module)"), 0o600))
	o := weir(t, "", "plan", "--hosts", "mine="+dir, "--hosts", "team=http://127.0.0.1:1/mcp")
	require.Equal(t, exitDone, o.code, o.errors)
	lines := strings.Split(o.out, "\n")
	require.Contains(t, lines[0], "warning: source.wasm on mine is refused: not a WebAssembly module: ")
	require.Contains(t, lines[0], "compile it first")
	require.Contains(t, lines[1], `warning: host "team": does not answer as an MCP server: `)
	require.Contains(t, lines[1], "see that an interceptor server answers at its url")
	require.Contains(t, o.out, "tools/call request (sending)\n  blocked  not_listed  team\n")
	require.Equal(t, 1, strings.Count(o.out, "does not answer"))

	o = weir(t, "", "plan", "--json", "--hosts", "mine="+dir, "--hosts", "team=http://127.0.0.1:1/mcp", "--event", "tools/call", "--phase", "request")
	require.Equal(t, exitDone, o.code, o.errors)
	var p struct {
		Plans []struct {
			DiscoveryFailures []struct{ Host, Detail string }
		}
		Warnings []string
	}
	require.NoError(t, json.Unmarshal([]byte(o.out), &p))
	require.Len(t, p.Warnings, 2)
	require.Contains(t, p.Warnings[0], "source.wasm on mine is refused: ")
	require.Contains(t, p.Plans[0].DiscoveryFailures[0].Detail, "does not answer", "each plan by itself, for programs")
}

// A host elsewhere may list as many custom events as fit into a list: they are
// neither all planned at start nor all shown.
func TestEventsToPlanAreBounded(t *testing.T) {
	var many []string
	for i := range 200_000 {
		many = append(many, fmt.Sprintf("acme/%06d", i))
	}
	listings := []chain.Listing{{Interceptors: []abi.Descriptor{
		{Name: "a", Type: abi.Validation, Hooks: abi.OnBoth(many...)}, {Name: "b", Type: abi.Validation, Hooks: abi.OnBoth("tools/call", many[0])},
	}}}
	events, more := eventsToPlan(listings, "")
	require.Equal(t, append(slices.Clone(mcpEvents), many[:mostCustom]...), events)
	require.Equal(t, len(many)-mostCustom, more)
	events, more = eventsToPlan(listings, "acme/150000")
	require.Equal(t, []string{"acme/150000"}, events)
	require.Zero(t, more)
	events, more = eventsToPlan(listings[:0], "")
	require.Equal(t, mcpEvents, events)
	require.Zero(t, more)
}
