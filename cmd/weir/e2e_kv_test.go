package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/internal/guestbuild"
	"github.com/weir-mcp/weir/internal/wasmtest"
)

// quotaModule assembles a validator "quota" that counts calls in the store, lets
// pass as many as it is told, and fails where it cannot count.
func quotaModule(calls int32) []byte {
	const sum = 512
	var add wasmtest.Func
	r := wasmtest.NewReactorWith(func(m *wasmtest.Module) { add = m.Import("weir", "kv_add", "iiIIi:i") }, wasmtest.Validator("quota"))
	allow, deny := r.Answer(`{"result":{"valid":true}}`), r.Answer(`{"result":{"valid":false}}`)
	r.Invoke("", r.Text("calls"), wasmtest.I64(1), wasmtest.I64(600_000), wasmtest.I32(sum), wasmtest.Call(add),
		wasmtest.If(wasmtest.I32(1), wasmtest.Return),
		wasmtest.I32(sum), wasmtest.Load64(0), wasmtest.I64(int64(calls)+1), wasmtest.I64LtU,
		wasmtest.If(allow, wasmtest.Return), deny)
	return r.Bytes()
}

// quotaFolder is a folder with the module, and a weir.yaml beside it that grants
// the store to it.
func quotaFolder(t testing.TB, scope, more string) (dir, conf string) {
	t.Helper()
	top := t.TempDir()
	dir = filepath.Join(top, "modules")
	require.NoError(t, os.Mkdir(dir, 0o700))
	placeModule(t, dir, "quota", quotaModule(2))
	return dir, write(t, top, "weir.yaml", fmt.Sprintf(
		"version: 1\nhosts:\n  - {name: local, modules: ./modules, files: {quota.wasm: {grants: {kv: {scope: %s}}}}}\n%s", scope, more))
}

// as invokes an interceptor with a context, none when it is empty, and says what
// came of it.
func (s *interceptorServer) as(context, name string) string {
	s.t.Helper()
	if context != "" {
		context = `,"context":` + context
	}
	answer := s.ask("interceptor/invoke", `{"name":"`+name+`","event":"tools/call","phase":"request","payload":{"name":"t"}`+context+`}`)
	switch {
	case strings.Contains(answer, `"valid":true`):
		return "allowed"
	case strings.Contains(answer, `"valid":false`):
		return "refused"
	case strings.Contains(answer, `"reason":"guest"`):
		return "failed"
	}
	return answer
}

const (
	ann        = `{"principal":{"type":"user","id":"ann"}}`
	annInS     = `{"principal":{"type":"user","id":"ann"},"sessionId":"s"}`
	bobInS     = `{"principal":{"type":"user","id":"bob"},"sessionId":"s"}`
	nobodyInS  = `{"principal":{"type":"anonymous"},"sessionId":"s"}`
	nobodyInS2 = `{"principal":{"type":"anonymous"},"sessionId":"s2"}`
)

// Who shares a counter, by scope, over stdio, where the context is believed.
func TestKVScopesOverStdio(t *testing.T) {
	t.Parallel()
	type step struct{ context, want string }
	for scope, steps := range map[string][]step{
		"principal": {
			{ann, "allowed"}, {annInS, "allowed"}, {ann, "refused"}, {bobInS, "allowed"},
			{nobodyInS, "allowed"}, {nobodyInS, "allowed"}, {nobodyInS, "refused"}, {nobodyInS2, "allowed"},
			{"", "allowed"}, {`{}`, "allowed"}, {"", "refused"}, {bobInS, "allowed"}, {bobInS, "refused"},
		},
		"session": {{annInS, "allowed"}, {bobInS, "allowed"}, {nobodyInS, "refused"}, {ann, "allowed"}, {"", "allowed"}, {ann, "refused"}},
		"module":  {{ann, "allowed"}, {nobodyInS, "allowed"}, {"", "refused"}, {bobInS, "refused"}},
	} {
		t.Run(scope, func(t *testing.T) {
			t.Parallel()
			dir, conf := quotaFolder(t, scope, "")
			s := serveOverStdio(t, dir, "--config", conf)
			for i, step := range steps {
				require.Equal(t, step.want, s.as(step.context, "quota"), "call %d, %s", i+1, step.context)
			}
		})
	}
}

// Over HTTP nobody is authenticated in this version, and there are no sessions:
// a caller cannot take a name to get a new quota. The scope module works.
func TestKVOverHTTP(t *testing.T) {
	t.Parallel()
	dir, conf := quotaFolder(t, "principal", "")
	s := serveOverHTTP(t, true, dir, "--config", conf)
	require.Equal(t, "failed", s.as(ann, "quota"))
	require.Equal(t, "failed", s.as("", "quota"))
	dir, conf = quotaFolder(t, "module", "")
	s = serveOverHTTP(t, false, dir, "--config", conf)
	require.Equal(t, []string{"allowed", "allowed", "refused"}, []string{s.as(ann, "quota"), s.as("", "quota"), s.as(bobInS, "quota")})
}

// Copies made by "as" count in one place, and a new version of the file counts on.
func TestKVCopiesAndReloads(t *testing.T) {
	t.Parallel()
	dir, conf := quotaFolder(t, "principal", "interceptors:\n  - {interceptor: quota}\n  - {interceptor: quota, as: copy}\n")
	s := serveOverStdio(t, dir, "--config", conf)
	require.Equal(t, "allowed", s.as(ann, "quota"))
	require.Equal(t, "allowed", s.as(ann, "copy"))
	require.Equal(t, "refused", s.as(ann, "quota"))
	require.Equal(t, "allowed", s.as(bobInS, "copy"))
	placeModule(t, dir, "quota", quotaModule(3))
	eventually(t, "the new version serves", func() bool { return strings.Count(s.log(), "a module serves") == 2 })
	require.Equal(t, "allowed", s.as(bobInS, "quota"))
	require.Equal(t, "allowed", s.as(bobInS, "quota"), "three are allowed now, and one was counted before")
	require.Equal(t, "refused", s.as(bobInS, "quota"))
}

// The client of a gateway is a session: its calls are counted together, and those
// of the next client apart.
func TestKVThroughTheGateway(t *testing.T) {
	t.Parallel()
	dir, conf := quotaFolder(t, "principal", "")
	record := filepath.Join(t.TempDir(), "record")
	for range 2 {
		s := startRaw(t, append([]string{weirBinary(t), "gateway", "--config", conf, "--"}, role(t, "backend", record)...), nil)
		s.call(initialize("2025-06-18"))
		s.send(initializedNote)
		for i := range 4 {
			answer := s.call(rpc(i+1, "tools/call", toolParams("echo", `{"text":"hello"}`)))
			if i < 2 {
				require.Contains(t, answer, `"hello"`)
			} else {
				require.Contains(t, answer, `"reason":"validation_failed"`)
			}
		}
		s.end()
	}
	require.Len(t, fileLines(t, record), 4, "the backend saw what was allowed")
	require.FileExists(t, filepath.Join(dir, "quota.wasm"))
}

// A module that was not granted what it imports does not load, and every command
// says which line grants it.
func TestKVWithoutTheGrant(t *testing.T) {
	t.Parallel()
	dir, _ := quotaFolder(t, "principal", "")
	const line = "files: {quota.wasm: {grants: {kv: {scope: principal}}}}"
	path := filepath.Join(dir, "quota.wasm")
	o := weir(t, "", "list", path)
	require.Equal(t, exitFailed, o.code)
	require.Contains(t, o.errors, "quota.wasm: ")
	require.Contains(t, o.errors, "weir.kv_add needs the grant kv, which the line "+line+" of its host in weir.yaml gives it")
	s := serveOverStdio(t, dir)
	require.Empty(t, s.names())
	require.Contains(t, s.log(), line)

	// It can be looked at all the same.
	o = weir(t, "", "inspect", path)
	require.Equal(t, exitDone, o.code, o.errors)
	require.Contains(t, o.out, "weir.kv_add (i32, i32, i64, i64, i32) -> i32 (grant kv)")
	require.Contains(t, o.out, line)
	require.Contains(t, o.out, "quota (validation)")
}

func TestSettingsOfListAndInvoke(t *testing.T) {
	t.Parallel()
	dir, conf := quotaFolder(t, "principal", "")
	call := []string{"invoke", "quota", "--event", "tools/call", "--phase", "request", "--settings", conf}
	for _, target := range []string{dir, filepath.Join(dir, "quota.wasm")} {
		o := weir(t, "", append(call, target)...)
		require.Equal(t, exitDone, o.code, o.errors)
		require.Contains(t, o.out, `"valid":true`)
		o = weir(t, "", "list", "--config", conf, target)
		require.Equal(t, exitDone, o.code, o.errors)
		require.Contains(t, o.out, "quota: validation")
	}
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"list", "--config", conf, "http://127.0.0.1:1/mcp"}, "leave it out"},
		{append(call, "--", "true"), "leave it out"},
		{[]string{"list", "--config", conf + ".none", dir}, "weir.yaml.none"},
	} {
		o := weir(t, "", c.args...)
		require.Equal(t, exitUsage, o.code, "%v", c.args)
		require.Contains(t, o.errors, c.says)
	}
	other := t.TempDir()
	placeModule(t, other, "fine", wasmtest.Allowing("fine"))
	o := weir(t, "", "list", "--config", conf, other)
	require.Equal(t, exitDone, o.code)
	require.Contains(t, o.errors, "no host of the configuration has this folder")
}

// examples/quota as its manual page has it.
func TestQuotaExample(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	settings, err := os.ReadFile("../../examples/quota/weir.yaml")
	require.NoError(t, err)
	conf := write(t, dir, "weir.yaml", string(settings))
	modules := filepath.Join(dir, "interceptors")
	require.NoError(t, os.Mkdir(modules, 0o700))
	wasm, err := guestbuild.Bytes(t.Context(), guestbuild.Module+"/examples/quota")
	require.NoError(t, err)
	path := placeModule(t, modules, "quota", wasm)
	require.Equal(t, exitDone, weir(t, "", "inspect", path).code, "into the compile cache")

	s := serveOverStdio(t, modules, "--config", conf)
	s.await("quota 1.0.0")
	for i := range 3 {
		answer := s.ask("interceptor/invoke", `{"name":"quota","event":"tools/call","phase":"request","payload":{"name":"t"},"config":{"calls":2},"context":`+ann+`}`)
		var a struct{ Result struct{ Valid bool } }
		require.NoError(t, json.Unmarshal([]byte(answer), &a), answer)
		require.Equal(t, i < 2, a.Result.Valid, answer)
	}
	require.Equal(t, "allowed", s.as(bobInS, "quota"))
}
