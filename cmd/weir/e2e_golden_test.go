package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/wasmtest"
)

var update = flag.Bool("update", false, "write testdata/golden anew")

var (
	durations   = regexp.MustCompile(`"durationMs":[0-9.e+-]+`)
	resetWays   = regexp.MustCompile(`"reset":"[^"]+"`)
	messageText = regexp.MustCompile(`"message":"[^"]*"`)
)

// goldenFolder is modules whose bytes, and so digests, are always the same.
func goldenFolder(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	minimum := int32(-1000)
	writeModule(t, dir, "redact", abi.Descriptor{
		Name: "redact", Version: "1.2.0", Description: "Takes <things> out & away.", Type: abi.Mutation,
		Hooks: abi.OnBoth(abi.ToolsCall, "prompts/*"), PriorityHint: abi.PhasePriority(&minimum, nil),
		ConfigSchema: json.RawMessage(`{"type":"object","properties":{"what":{"type":"string"}}}`),
	}, `{"result":{"modified":true,"payload":{"name":"t","arguments":{"to":"[<email>]"}},"info":{"n":9007199254740993}}}`)
	writeModule(t, dir, "judge", abi.Descriptor{
		Name: "judge", Type: abi.Validation, Hooks: abi.On(abi.Request, abi.ToolsCall), Mode: abi.Audit, FailOpen: true,
		Compat: &abi.Compat{MinProtocol: "2025-06-18"},
	}, `{"result":{"valid":false,"severity":"warn","messages":[{"path":"$.name","message":"<so> & so","severity":"warn"}],"suggestions":[{"path":"$.name","value":1.0}]}}`)
	writeModule(t, dir, "watch", abi.Descriptor{Name: "watch", Type: abi.Sink, Hooks: abi.OnBoth("*")},
		`{"result":{"recorded":true,"metrics":{"bytes":12}}}`)
	placeModule(t, dir, "broken", []byte("\x00asm\x01\x00\x00\x00\x09\x09"))
	r := wasmtest.NewReactorWith(func(m *wasmtest.Module) {
		m.Import("weir", "kv_get", "iiii:i")
		m.Import("weir", "http", "iiii:i")
		m.Import("wasi_snapshot_preview1", "random_get", "ii:i")
	}, wasmtest.Validator("needy"))
	allowing(r)
	placeModule(t, dir, "needy", r.Bytes())
	placeModule(t, dir, "quota", quotaModule(2))
	return dir
}

// TestGolden fixes the --json shapes (config.md), in files of testdata/golden.
// Written anew with: go test ./cmd/weir -run TestGolden -update
func TestGolden(t *testing.T) {
	t.Parallel()
	dir := goldenFolder(t)
	module := func(name string) string { return filepath.Join(dir, name+".wasm") }
	conf := write(t, dir, "weir.yaml", strings.ReplaceAll(`version: 1
timeout: 3s
hosts:
  - {name: local, modules: .}
interceptors:
  - {interceptor: "*", timeout: 200ms}
  - {interceptor: redact, mode: audit, priorityHint: {request: -5}, config: {what: all}}
  - {interceptor: judge, enabled: false}
  - {interceptor: watch, as: watch-calls, hooks: [{events: [tools/call], phase: request}]}
`, "\t", "  "))
	idle := write(t, dir, "idle.yaml", `version: 1
hosts:
  - {name: local, modules: .}
interceptors:
  - {interceptor: "*", enabled: false}
  - {interceptor: gone, mode: audit}
`)
	// A seed of zeros, so that the signature is always the same.
	key := write(t, dir, "zero.key", "weir-private-key-1 AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")
	require.Equal(t, exitDone, weir(t, "", "sign", "--key", key, module("redact")).code)
	write(t, dir, "zero.pub", "weir-public-key-1 O2onvM62pC1io6jQKm8Nc2UyFXcd4kOmOsBIoYtZ2ik=")
	signed := write(t, dir, "signed.yaml", "version: 1\ntrust: {keys: [zero.pub], requireSigned: true}\n")
	invoke := func(name, phase string) []string {
		return []string{"invoke", name, "--event", "tools/call", "--phase", phase, "--payload", "-", dir}
	}
	for _, c := range []struct {
		file string
		args []string
		code int
	}{
		{"list", []string{"list", "--json", dir}, 0},
		{"list-event", []string{"list", "--json", "--event", "prompts/get", dir}, 0},
		{"list-signed", []string{"list", "--json", "--config", signed, module("redact")}, 0},
		{"list-file", []string{"list", "--json", module("redact")}, 0},
		{"plan", []string{"plan", "--json", "--config", conf, "--event", "tools/call"}, 0},
		{"plan-server", []string{"plan", "--json", "--config", conf, "--event", "tools/call", "--phase", "response", "--boundary", "server"}, 0},
		{"plan-sampling", []string{"plan", "--json", "--hosts", "mine=" + dir, "--event", "sampling/createMessage"}, 0},
		{"plan-idle", []string{"plan", "--json", "--config", idle, "--protocol", "2025-11-25"}, 0},
		{"inspect", []string{"inspect", "--json", module("redact")}, 0},
		{"inspect-grant", []string{"inspect", "--json", module("quota")}, 0},
		{"inspect-refused", []string{"inspect", "--json", module("needy")}, 1},
		{"invoke-mutation", invoke("redact", "request"), 0},
		{"invoke-validation", invoke("judge", "request"), 0},
		{"invoke-sink", invoke("watch", "response"), 0},
		{"invoke-unknown", invoke("nobody", "request"), 1},
	} {
		t.Run(c.file, func(t *testing.T) {
			t.Parallel()
			o := runBinary(t, `{"name":"t","arguments":{"to":"ann@example.com","n":1e400}}`, c.args...)
			require.Equal(t, c.code, o.code, o.errors)
			require.Equal(t, 1, strings.Count(o.out, "\n"), "one line: %s", o.out)
			requireGolden(t, c.file+".json", o.out, dir)
		})
	}
}

// requireGolden compares JSON, indented for people, with a golden file. Only
// where the folder is, how long a call took and how the system has instances put
// back differ between runs.
func requireGolden(t *testing.T, file, got, dir string) {
	t.Helper()
	got = durations.ReplaceAllString(strings.ReplaceAll(got, dir, "DIR"), `"durationMs":0`)
	got = resetWays.ReplaceAllString(got, `"reset":"WAY"`)
	var b bytes.Buffer
	require.NoError(t, json.Indent(&b, []byte(got), "", "  "), got)
	path := filepath.Join("testdata", "golden", file)
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, b.Bytes(), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, strings.ReplaceAll(string(want), "\r\n", "\n"), b.String())
}
