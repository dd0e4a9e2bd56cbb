package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/internal/wasmtest"
)

// seesEnvironment is a validator that allows when it sees a variable.
func seesEnvironment(name string) []byte {
	r := wasmtest.NewReactorWith(func(m *wasmtest.Module) {
		m.Import("wasi_snapshot_preview1", "environ_sizes_get", "ii:i")
	}, wasmtest.Validator(name))
	const sizes = wasmtest.Func(3) // the fourth import
	r.Invoke("", wasmtest.I32(512), wasmtest.I32(516), wasmtest.Call(sizes), wasmtest.Drop,
		wasmtest.I32(512), wasmtest.Load(0), wasmtest.If(r.Answer(`{"result":{"valid":true}}`), wasmtest.Return),
		r.Answer(`{"result":{"valid":false}}`))
	return r.Bytes()
}

// TestServeTakesFromItsConfiguration is config.md: limits, grants and pins of
// the host whose modules the folder is, and as, config and enabled; the rest is
// an invoker's and ignored with a warning.
func TestServeTakesFromItsConfiguration(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	guard := wasmtest.Allowing("guard")
	placeModule(t, dir, "guard", guard)
	placeModule(t, dir, "changed", wasmtest.Allowing("changed"))
	placeModule(t, dir, "off", wasmtest.Allowing("off"))
	placeModule(t, dir, "granted", seesEnvironment("granted"))
	placeModule(t, dir, "bare", seesEnvironment("bare"))
	large := wasmtest.NewReactor(wasmtest.Validator("large"))
	large.Memory(32)
	large.Invoke("", large.Answer(`{"result":{"valid":true}}`))
	placeModule(t, dir, "large", large.Bytes())

	sum := sha256.Sum256(guard)
	conf := write(t, t.TempDir(), "weir.yaml", fmt.Sprintf(`version: 1
hosts:
  - name: elsewhere
    modules: ./elsewhere
    files: {granted.wasm: {limits: {memory: 64KiB}}}
  - name: here
    modules: %q
    limits: {memory: 1MiB}
    files:
      guard.wasm: {sha256: %s}
      changed.wasm: {sha256: %s}
      granted.wasm: {grants: {env: [PATH]}}
interceptors:
  - {interceptor: guard, host: here, as: copy}
  - {interceptor: "off", enabled: false}
  - {interceptor: bare, mode: audit, timeout: 1s}
  - {interceptor: bare, host: elsewhere, enabled: false}
`, dir, hex.EncodeToString(sum[:]), hex.EncodeToString(sum[:])))

	s := serveOverStdio(t, dir, "--config", conf)
	require.Equal(t, []string{"bare", "granted", "copy"}, s.names(), "by file name")
	require.Contains(t, s.invoke("granted", "{}"), `"valid":true`, "what is granted is there")
	require.Contains(t, s.invoke("bare", "{}"), `"valid":false`, "nothing else is")
	require.Contains(t, s.invoke("copy", "{}"), `"interceptor":"copy"`, "a copy answers by its own name")
	log := s.log()
	require.Contains(t, log, `"file":"changed.wasm","cause":"its SHA-256 is `)
	require.Contains(t, log, "put the pinned file back or change the pin")
	require.Contains(t, log, "large.wasm: the module declares 2097152 bytes of memory, its limit (memory) is 1048576")
	require.Contains(t, log, "ignored by weir serve")
	require.Contains(t, log, `"keys":"mode, timeout"`)
}
