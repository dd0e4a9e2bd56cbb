package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/need"
	"github.com/weir-mcp/weir/internal/wasmtest"
)

// reactorWith is a module that is a validator but for what edit makes of it.
func reactorWith(edit func(r *wasmtest.Reactor)) []byte {
	r := wasmtest.NewReactor(wasmtest.Validator("v"))
	edit(r)
	return r.Bytes()
}

// allowing is a complete reactor's weir_invoke.
func allowing(r *wasmtest.Reactor) { r.Invoke("", r.Answer(`{"result":{"valid":true}}`)) }

// bareModule has nothing of the ABI but what it is given.
func bareModule(edit func(m *wasmtest.Module)) []byte {
	var m wasmtest.Module
	edit(&m)
	return m.Bytes()
}

// badModules are files that must not serve, and what must be said of each.
func badModules(t testing.TB) map[string]struct {
	wasm []byte
	says []string
} {
	t.Helper()
	good := wasmtest.Allowing("v")
	type bad = struct {
		wasm []byte
		says []string
	}
	return map[string]bad{
		"empty":     {nil, []string{"empty"}},
		"not-wasm":  {[]byte("#!/bin/sh\necho hello\n"), []string{"WebAssembly"}},
		"truncated": {good[:len(good)-7], nil},
		"component": {[]byte("\x00asm\x0d\x00\x01\x00"), []string{"component", "core module"}},
		"no-exports": {bareModule(func(m *wasmtest.Module) {
			m.Func(":", "")
		}), []string{"weir_abi_v1"}},
		"no-invoke": {bareModule(func(m *wasmtest.Module) {
			m.Memory(1)
			m.Export("weir_abi_v1", m.Func(":", ""))
			m.Export("weir_describe", m.Func(":i", "", wasmtest.I32(0)))
		}), []string{"weir_invoke"}},
		"mistyped-invoke": {bareModule(func(m *wasmtest.Module) {
			m.Memory(1)
			m.Export("weir_abi_v1", m.Func(":", ""))
			m.Export("weir_describe", m.Func(":i", "", wasmtest.I32(0)))
			m.Export("weir_invoke", m.Func("I:i", "", wasmtest.I32(0)))
		}), []string{"weir_invoke", "i32"}},
		"no-memory": {bareModule(func(m *wasmtest.Module) {
			m.Export("weir_abi_v1", m.Func(":", ""))
			m.Export("weir_describe", m.Func(":i", "", wasmtest.I32(0)))
			m.Export("weir_invoke", m.Func("i:i", "", wasmtest.I32(0)))
		}), []string{"memory"}},
		"other-abi": {bareModule(func(m *wasmtest.Module) {
			m.Memory(1)
			m.Export("weir_abi_v2", m.Func(":", ""))
			m.Export("weir_describe", m.Func(":i", "", wasmtest.I32(0)))
			m.Export("weir_invoke", m.Func("i:i", "", wasmtest.I32(0)))
		}), []string{"ABI version 2", "speaks 1", "rebuild"}},
		"import-unknown": {func() []byte {
			r := wasmtest.NewReactorWith(func(m *wasmtest.Module) { m.Import("env", "abort", "ii:") }, wasmtest.Validator("v"))
			allowing(r)
			return r.Bytes()
		}(), []string{"env", "abort"}},
		"import-http": {func() []byte {
			r := wasmtest.NewReactorWith(func(m *wasmtest.Module) { m.Import("weir", "http", "iiii:i") }, wasmtest.Validator("v"))
			allowing(r)
			return r.Bytes()
		}(), []string{"weir.http", "grants", "http"}},
		"describes-nothing": {reactorWith(func(r *wasmtest.Reactor) {
			r.Describe(`{"interceptors":[]}`)
			allowing(r)
		}), []string{"no interceptor"}},
		"describes-nonsense": {reactorWith(func(r *wasmtest.Reactor) {
			r.Describe(`{"interceptors":`)
			allowing(r)
		}), nil},
		"describes-duplicate-keys": {reactorWith(func(r *wasmtest.Reactor) {
			r.Describe(`{"interceptors":[{"name":"v","name":"w","type":"validation","hooks":[]}]}`)
			allowing(r)
		}), []string{"name"}},
		"wrong-type": {reactorWith(func(r *wasmtest.Reactor) {
			r.Describe(`{"interceptors":[{"name":"v","type":"oracle","hooks":[]}]}`)
			allowing(r)
		}), []string{"oracle"}},
		"sink-in-audit": {reactorWith(func(r *wasmtest.Reactor) {
			r.Describe(`{"interceptors":[{"name":"v","type":"sink","mode":"audit","hooks":[]}]}`)
			allowing(r)
		}), []string{"audit"}},
		"too-much-memory": {reactorWith(func(r *wasmtest.Reactor) {
			r.Memory(1025)
			allowing(r)
		}), []string{"memory"}},
		"traps-at-start": {reactorWith(func(r *wasmtest.Reactor) {
			r.Export("_initialize", r.Func(":", "", wasmtest.Unreachable))
			allowing(r)
		}), []string{"trap"}},
	}
}

// TestBadModules holds inspect, list and serve to "each a clear error naming
// the file and what to do; nothing half-loaded", alone and beside good ones.
func TestBadModules(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	placeModule(t, dir, "good", wasmtest.Allowing("good"))
	bad := badModules(t)
	for name, b := range bad {
		placeModule(t, dir, name, b.wasm)
	}
	for name, b := range bad {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(dir, name+".wasm")
			for _, args := range [][]string{{"inspect", path}, {"list", path}, {"invoke", "v", "--event", "tools/call", "--phase", "request", path}} {
				o := weir(t, "", args...)
				require.Equal(t, exitFailed, o.code, "%v\n%s", args, o.errors)
				require.Contains(t, o.errors, name+".wasm", "%v names the file", args)
				require.NotContains(t, o.errors, "goroutine ")
				for _, word := range b.says {
					require.Contains(t, o.errors, word, "%v", args)
				}
				if args[0] != "inspect" {
					require.Empty(t, o.out, "%v: nothing half-loaded", args)
				}
			}
		})
	}
	t.Run("beside a good one", func(t *testing.T) {
		t.Parallel()
		o := runBinary(t, "", "list", "--json", dir)
		require.Equal(t, exitDone, o.code, o.errors)
		var listed listing
		require.NoError(t, json.Unmarshal([]byte(o.out), &listed))
		require.Len(t, listed.Interceptors, 1)
		require.Equal(t, "good", listed.Interceptors[0].Name)
		require.Len(t, listed.Files, 1+len(bad))
		for _, f := range listed.Files {
			name := strings.TrimSuffix(f.File, ".wasm")
			if name == "good" {
				require.Empty(t, f.Error)
				continue
			}
			require.NotEmpty(t, f.Error, name)
			require.Empty(t, f.Interceptors, name)
			for _, word := range bad[name].says {
				require.Contains(t, f.Error, word, name)
			}
		}
	})
}

// TestDuplicateNames is config.md: the first by file name serves, the other is
// refused whole, loudly.
func TestDuplicateNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	placeModule(t, dir, "a", wasmtest.Allowing("one", "two"))
	placeModule(t, dir, "b", wasmtest.Allowing("three", "two"))
	placeModule(t, dir, "c", wasmtest.Allowing("one", "two")) // the same bytes as a.wasm
	s := serveOverStdio(t, dir)
	require.Equal(t, []string{"one", "two"}, s.names())
	for _, file := range []string{"b.wasm", "c.wasm"} {
		require.Contains(t, s.log(), file)
	}
	o := weir(t, "", "list", "--json", dir)
	require.Equal(t, exitDone, o.code, o.errors)
	var listed listing
	require.NoError(t, json.Unmarshal([]byte(o.out), &listed))
	require.Contains(t, listed.Files[1].Error, "two")
	require.Contains(t, listed.Files[1].Error, "a.wasm")
	require.Contains(t, listed.Files[2].Error, "a.wasm")
}

// TestWrongUsage is the command line's table of exit codes and messages. What a
// message must contain is what is wrong, where, and the way out.
func TestWrongUsage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	placeModule(t, dir, "good", wasmtest.Allowing("good"))
	conf := func(name, content string) string { return write(t, dir, name, content) }
	badYAML := conf("bad.yaml", "version: 1\nhosts:\n  - name: [\n")
	unknown := conf("unknown.yaml", "version: 1\nbakend:\n  command: [x]\n")
	nested := conf("nested.yaml", "version: 1\nhosts:\n  - {name: a, modules: .}\ninterceptors:\n  - {interceptor: x, mod: audit}\n")
	conflict := conf("conflict.yaml", "version: 1\nhosts:\n  - {name: a, modules: .}\ninterceptors:\n  - {interceptor: x, mode: audit}\n  - {interceptor: x, mode: active}\n")
	unset := conf("unset.yaml", "version: 1\nhosts:\n  - {name: a, url: \"https://${WEIR_E2E_NEVER_SET}/mcp\"}\n")
	twice := conf("twice.yaml", "version: 1\nversion: 1\n")
	payload := conf("payload.json", `{"a":`)
	doubled := conf("doubled.json", `{"name":"safe","name":"evil"}`)
	invoke := []string{"invoke", "good", "--event", "tools/call", "--phase", "request"}
	missing := filepath.Join(dir, "nowhere")
	for _, c := range []struct {
		name string
		args []string
		code int
		says []string
	}{
		{"unknown command", []string{"serv"}, 2, []string{"serv"}},
		{"unknown flag", []string{"list", "--jason", dir}, 2, []string{"--jason", "weir list --help"}},
		{"flag without its value", []string{"serve", dir, "--http"}, 2, []string{"--http"}},
		{"serve without DIR", []string{"serve"}, 2, []string{"one folder", "weir serve --help"}},
		{"serve of two", []string{"serve", dir, dir}, 2, []string{"one folder"}},
		{"serve of a missing folder", []string{"serve", missing}, 2, []string{missing}},
		{"serve of a file", []string{"serve", filepath.Join(dir, "good.wasm")}, 2, []string{"good.wasm"}},
		{"serve to the world", []string{"serve", dir, "--http", "0.0.0.0:0"}, 2, []string{"0.0.0.0:0", "127.0.0.1"}},
		{"serve without a port", []string{"serve", dir, "--http", "localhost"}, 2, []string{"localhost", "127.0.0.1:8414"}},
		{"list without TARGET", []string{"list"}, 2, []string{"TARGET", "weir list --help"}},
		{"list of nothing", []string{"list", missing}, 2, []string{missing}},
		{"list of no event", []string{"list", "--event", "tools/*", dir}, 2, []string{"tools/*", "tools/call"}},
		{"list of an empty command", []string{"list", "--"}, 2, []string{`"--"`}},
		{"list of a command that is not there", []string{"list", "--", "weir-e2e-no-such-program"}, 1, []string{"weir-e2e-no-such-program"}},
		{"list of a URL where nobody is", []string{"list", "http://" + freeAddress(t) + "/mcp"}, 1, []string{"127.0.0.1"}},
		{"plan without hosts", []string{"plan"}, 2, []string{"--hosts"}},
		{"plan of a missing folder", []string{"plan", "--hosts", missing}, 2, []string{missing, "host1"}},
		{"plan of no phase", []string{"plan", "--hosts", dir, "--phase", "both"}, 2, []string{"both", "request", "response"}},
		{"inspect of nothing", []string{"inspect", missing}, 2, []string{missing}},
		{"inspect of a folder", []string{"inspect", dir}, 2, []string{dir, ".wasm"}},
		{"invoke without TARGET", append(invoke[:2:2], "--event", "tools/call", "--phase", "request"), 2, []string{"TARGET"}},
		{"invoke without an event", []string{"invoke", "good", "--phase", "request", dir}, 2, []string{"--event is missing", "tools/call"}},
		{"invoke without a phase", []string{"invoke", "good", "--event", "tools/call", dir}, 2, []string{"--phase is missing", "request or response"}},
		{"invoke of no phase", []string{"invoke", "good", "--event", "tools/call", "--phase", "both", dir}, 2, []string{"--phase", "request"}},
		{"payload that is not there", append(invoke[:6:6], "--payload", missing, dir), 2, []string{missing}},
		{"payload that is no JSON", append(invoke[:6:6], "--payload", payload, dir), 2, []string{"payload.json"}},
		{"payload with a name twice", append(invoke[:6:6], "--payload", doubled, dir), 2, []string{"doubled.json", "name"}},
		{"config that is no JSON", append(invoke[:6:6], "--config", "{", dir), 2, []string{"--config"}},
		{"negative timeout", append(invoke[:6:6], "--timeout", "-1s", dir), 2, []string{"-1s"}},
		{"gateway without a backend", []string{"gateway", "--hosts", dir}, 2, []string{"backend", "--"}},
		{"gateway, command without --", []string{"gateway", "npx", "x"}, 2, []string{"npx", "-- npx"}},
		{"gateway with a missing config", []string{"gateway", "--config", missing + ".yaml"}, 2, []string{missing + ".yaml"}},
		{"gateway with a missing folder", []string{"gateway", "--hosts", missing, "--", "true"}, 2, []string{missing}},
		{"gateway with no boundary", []string{"gateway", "--boundary", "both", "--", "true"}, 2, []string{"both", "client", "server"}},
		{"gateway in front of no web URL", []string{"gateway", "--backend", "ftp://example.com/mcp"}, 2, []string{"--backend", "https://"}},
		{"gateway in front of a URL with a password", []string{"gateway", "--backend", "https://u:hunter2@example.com/mcp"}, 2, []string{"--backend", "headers"}},
		{"gateway in front of an empty URL", []string{"gateway", "--backend", "", "--", "true"}, 2, []string{"two backends"}},
		{"gateway over HTTP at no address", []string{"gateway", "--http", "nowhere", "--", "true"}, 2, []string{"--http", "nowhere", "127.0.0.1"}},
		{"gateway for other machines, and nobody is asked who he is", []string{"gateway", "--http", "0.0.0.0:0", "--", "true"}, 2, []string{"0.0.0.0:0", "listen.auth", "listen.insecure"}},
		{"gateway over HTTP, no such command", []string{"gateway", "--http", "127.0.0.1:0", "--", missing}, 1, []string{missing, "PATH"}},
		{"config that is no YAML", []string{"plan", "--config", badYAML}, 2, []string{"bad.yaml:"}},
		{"config with an unknown key", []string{"plan", "--config", unknown}, 2, []string{"unknown.yaml:2:1", "bakend", "backend"}},
		{"config with an unknown key inside", []string{"plan", "--config", nested}, 2, []string{"nested.yaml:5:", "mod", "mode"}},
		{"config at odds with itself", []string{"plan", "--config", conflict}, 2, []string{"conflict.yaml:5:", "conflict.yaml:6:", "mode"}},
		{"config with a variable that is not set", []string{"plan", "--config", unset}, 2, []string{"unset.yaml:3:", "WEIR_E2E_NEVER_SET"}},
		{"config with a key twice", []string{"plan", "--config", twice}, 2, []string{"twice.yaml:2:1", "version"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			run := weir
			if c.args[0] == "gateway" {
				run = runBinary // it takes over stdin and stdout
			}
			o := run(t, "", c.args...)
			require.Equal(t, c.code, o.code, o.errors)
			for _, word := range c.says {
				require.Contains(t, o.errors, word)
			}
			require.Regexp(t, `(?m)^weir: `, o.errors)
			require.Empty(t, o.out, "stdout carries results only")
		})
	}
}

// TestBackendFails is config.md: a backend that does not start, or ends at once,
// is exit 1.
func TestBackendFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		backend []string
		says    []string
	}{
		"not there":     {[]string{"weir-e2e-no-such-program"}, []string{"weir-e2e-no-such-program", "does not start"}},
		"no program":    {[]string{t.TempDir()}, []string{"does not start"}},
		"ends at once":  {role(t, "exit"), []string{"e2e:exit", "exit status 3", "no licence for this server"}},
		"says nonsense": {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.backend == nil {
				echo := need.Command(t, "echo", "install coreutils")
				c.backend, c.says = []string{echo, "hello, I am no MCP server"}, []string{"echo"}
			}
			s := startRaw(t, append([]string{weirBinary(t), "gateway", "--"}, c.backend...), nil)
			s.wait()
			require.Equal(t, exitFailed, s.code, "%s", s.errs)
			for _, word := range c.says {
				require.Contains(t, s.errs.String(), word)
			}
			require.Empty(t, s.seen, "stdout carries the protocol only")
		})
	}
}

// TestInvokeExits: 0 whatever the verdict, 1 and {"error":…} when there is none.
func TestInvokeExits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, answer := range map[string]string{
		"no":     `{"result":{"valid":false,"messages":[{"message":"<no> & never","severity":"error"}]}}`,
		"fails":  `{"error":{"message":"the guest's own words"}}`,
		"wrong":  `{"result":{"modified":true}}`,
		"broken": `{`,
	} {
		writeModule(t, dir, name, wasmtest.Validator(name), answer)
	}
	for _, c := range []struct {
		name, event string
		code        int
		out         string
	}{
		{"no", "tools/call", 0, `{"type":"validation","interceptor":"no","phase":"request","durationMs":0,"valid":false,"messages":[{"message":"<no> & never","severity":"error"}]}`},
		{"nobody", "tools/call", 1, `{"error":{"code":-32602,"message":"unknown interceptor","data":{"name":"nobody"}}}`},
		{"no", "prompts/get", 1, `{"error":{"code":-32602,"message":"event and phase not hooked","data":{"name":"no","event":"prompts/get","phase":"request","advertisedHooks":[{"events":["tools/call"],"phase":"request"}]}}}`},
		{"fails", "tools/call", 1, `{"error":{"code":-32603,"message":"execution failed","data":{"interceptor":"fails","reason":"guest","phase":"request"}}}`},
		{"wrong", "tools/call", 1, `{"error":{"code":-32603,"message":"execution failed","data":{"interceptor":"wrong","reason":"bad_output","phase":"request"}}}`},
		{"broken", "tools/call", 1, `{"error":{"code":-32603,"message":"execution failed","data":{"interceptor":"broken","reason":"bad_output","phase":"request"}}}`},
	} {
		t.Run(c.name+" "+c.event, func(t *testing.T) {
			t.Parallel()
			o := weir(t, `{"name":"t"}`, "invoke", c.name, "--event", c.event, "--phase", "request", "--payload", "-", dir)
			require.Equal(t, c.code, o.code, o.errors)
			require.True(t, strings.HasSuffix(o.out, "}\n") && strings.Count(o.out, "\n") == 1, o.out)
			out := durations.ReplaceAllString(strings.TrimSpace(o.out), `"durationMs":0`)
			if c.code == 0 {
				require.Equal(t, c.out, out)
				return
			}
			// The code and data are protocol.md's; the text may be worded anew.
			require.JSONEq(t, c.out, messageText.ReplaceAllString(out, messageText.FindString(c.out)))
			require.NotContains(t, out, "own words")
		})
	}
}

// TestFolderOddities: an empty folder is served with one warning; hidden files,
// folders and other names are not modules.
func TestFolderOddities(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "sub.wasm"), 0o700))
	placeModule(t, dir, ".hidden", wasmtest.Allowing("hidden"))
	write(t, dir, "README", "nothing")
	o := runBinary(t, "", "list", dir)
	require.Equal(t, exitDone, o.code)
	require.Contains(t, o.out, "no interceptors")
	require.Equal(t, 1, strings.Count(o.errors, `"WARN"`), o.errors)
	require.Contains(t, o.errors, dir)
}

// TestMalformedResultsBlock: what a guest says wrong is its failure, and blocks.
func TestMalformedResultsBlock(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		typ    abi.Type
		answer string
	}{
		"another's name":           {abi.Validation, `{"result":{"interceptor":"else","valid":true}}`},
		"another phase":            {abi.Validation, `{"result":{"phase":"sideways","valid":true}}`},
		"a mutation's result":      {abi.Validation, `{"result":{"type":"mutation","modified":false}}`},
		"names twice":              {abi.Validation, `{"result":{"valid":true,"valid":false}}`},
		"not modified, yet other":  {abi.Mutation, `{"result":{"modified":false,"payload":{"name":"evil"}}}`},
		"modified without payload": {abi.Mutation, `{"result":{"modified":true}}`},
		"modified to no params":    {abi.Mutation, `{"result":{"modified":true,"payload":[]}}`},
		"null":                     {abi.Mutation, `{"result":null}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, notes := t.TempDir(), filepath.Join(t.TempDir(), "notes")
			writeModule(t, dir, "m", abi.Descriptor{Name: "m", Type: c.typ, Hooks: abi.OnBoth(abi.ToolsCall)}, c.answer)
			s := startRaw(t, append([]string{weirBinary(t), "gateway", "--hosts", dir, "--"}, role(t, "backend", notes)...), nil)
			hello(s, "2025-06-18")
			answer := s.call(rpc(1, abi.ToolsCall, toolParams("echo", `{"text":"hello"}`)))
			require.Contains(t, answer, `"code":-32603`)
			require.NoFileExists(t, notes, "the backend saw nothing")
		})
	}
}
