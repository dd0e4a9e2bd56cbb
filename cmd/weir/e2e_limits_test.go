package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	wt "github.com/weir-mcp/weir/internal/wasmtest"
)

// limitCase is a module that passes one limit for the tool "x", with a last word
// before, and nothing else for others.
type limitCase struct {
	limits string // of weir.yaml
	passes func(r *wt.Reactor) []byte
	// reason is that of the failure; "" where the call succeeds.
	reason abi.Reason
	// logged is what the operator reads besides.
	logged string
	// payload replaces the one that has the module pass its limit.
	payload string
}

var limitCases = map[string]limitCase{
	"timeout": {
		limits: "timeout: 200ms", reason: abi.ReasonTimeout, logged: "the limit of 200ms passed",
		passes: func(*wt.Reactor) []byte { return wt.Loop(wt.Br(0)) },
	},
	"fuel": {
		limits: "fuel: 1000000, timeout: 60s", reason: abi.ReasonFuel, logged: "the budget of 1000000 units of fuel is spent",
		passes: func(*wt.Reactor) []byte { return wt.Loop(wt.Br(0)) },
	},
	"memory": {
		limits: "memory: 1MiB", reason: abi.ReasonMemory, logged: "after it was refused more memory",
		passes: func(*wt.Reactor) []byte {
			return wt.Seq(wt.I32(100), wt.MemoryGrow, wt.I32(-1), wt.I32Eq, wt.If(wt.Unreachable))
		},
	},
	"table": {
		limits: "table: 10", reason: abi.ReasonMemory, logged: "after it was refused more memory",
		passes: func(r *wt.Reactor) []byte {
			r.Table(1)
			return wt.Seq(wt.RefNullFunc, wt.I32(100), wt.TableGrow0, wt.I32(-1), wt.I32Eq, wt.If(wt.Unreachable))
		},
	},
	"stack": {
		limits: "timeout: 60s", reason: abi.ReasonStack, logged: "stack overflow",
		passes: func(r *wt.Reactor) []byte {
			self := r.NextFunc()
			r.Func("I:I", "", wt.Get(0), wt.Get(0), wt.I64(1), wt.I64Add, wt.Call(self), wt.I64Add)
			return wt.Seq(wt.I64(0), wt.Call(self), wt.Drop)
		},
	},
	"input": {
		limits: "input: 1KiB", reason: abi.ReasonPayloadTooLarge, logged: "the limit (input) is 1024",
		passes:  func(*wt.Reactor) []byte { return wt.Unreachable }, // it is not called
		payload: `{"name":"x","arguments":{"text":"` + strings.Repeat("a", 1024) + `"}}`,
	},
	"output": {
		limits: "output: 1KiB", reason: abi.ReasonOutputTooLarge, logged: "the limit is 66560", // 64 KiB around a payload
		passes: func(r *wt.Reactor) []byte { return wt.Seq(wt.I32(0), wt.I32(66_561), wt.Call(r.Output)) },
	},
	"logs": {
		limits: "logLines: 2, logLine: 64", logged: `"dropped":98`,
		passes: func(r *wt.Reactor) []byte {
			line := wt.Seq(wt.I32(1), r.Text("flood "+strings.Repeat("a", 100)), wt.Call(r.Log))
			return slices.Repeat(line, 99) // and the last word
		},
	},
}

// module assembles the case under an interceptor's name.
func (c limitCase) module(name string) []byte {
	r := wt.NewReactor(wt.Validator(name))
	last := wt.Seq(wt.I32(2), r.Text("last word of "+name), wt.Call(r.Log))
	at := wt.InputAt + len(`{"interceptor":"`+name+`","event":"tools/call","phase":"request","payload":{"name":"`)
	pass := c.passes(r)
	r.Invoke("", wt.I32(wt.InputAt), wt.Call(r.Input),
		wt.I32(0), wt.Load8(uint32(at)), wt.I32('x'), wt.I32Eq, wt.If(last, pass), r.Answer(`{"result":{"valid":true}}`))
	return r.Bytes()
}

func (c limitCase) passing() string {
	if c.payload != "" {
		return c.payload
	}
	return `{"name":"x"}`
}

// says checks what the caller is told.
func (c limitCase) says(t *testing.T, answer string) {
	t.Helper()
	if c.reason == "" {
		require.Contains(t, answer, `"valid":true`)
		return
	}
	require.Contains(t, answer, `"reason":"`+string(c.reason)+`"`)
	require.NotContains(t, answer, "last word")
	require.NotContains(t, answer, c.logged)
}

// told reports whether the operator is told, on one line: whose failure it is, its
// cause and, where the guest was called, its last words.
func (c limitCase) told(name, log string) bool {
	for line := range strings.Lines(log) {
		words := c.reason == "" || name == "input" ||
			strings.Contains(strings.ReplaceAll(line, `\`, ""), `the guest's last words: "last word of `+name+`"`)
		if words && strings.Contains(line, name) && strings.Contains(line, c.logged) {
			return true
		}
	}
	return false
}

// limitFolder is a folder with a module for each limit, one file that is too
// large, one that does not come to serve in time and one that is as it should be,
// and the weir.yaml that limits them.
func limitFolder(t testing.TB) (dir, conf string) {
	t.Helper()
	top := t.TempDir()
	dir = filepath.Join(top, "modules")
	require.NoError(t, os.Mkdir(dir, 0o700))
	files := []string{"large.wasm: {limits: {module: 100}}", "late.wasm: {limits: {load: 100ms}}"}
	for _, name := range slices.Sorted(maps.Keys(limitCases)) {
		c := limitCases[name]
		placeModule(t, dir, name, c.module(name))
		files = append(files, fmt.Sprintf("%s.wasm: {limits: {%s}}", name, c.limits))
	}
	placeModule(t, dir, "good", wt.Allowing("good"))
	placeModule(t, dir, "large", wt.Allowing("large"))
	late := wt.NewReactor(wt.Validator("late"))
	late.Export(abi.ExportInitialize, late.Func("", "", wt.Loop(wt.Br(0))))
	late.Invoke("", late.Answer(`{"result":{"valid":true}}`))
	placeModule(t, dir, "late", late.Bytes())
	return dir, write(t, top, "weir.yaml", fmt.Sprintf(
		"version: 1\nhosts:\n  - {name: local, modules: ./modules, files: {%s}}\n", strings.Join(files, ", ")))
}

// Every limit of abi.md, passed from outside of weir serve: the caller is told
// the reason and nothing else, the operator all of it, and the next call works.
func TestLimitsOverServe(t *testing.T) {
	t.Parallel()
	dir, conf := limitFolder(t)
	eras(t, func(t *testing.T, serve func(args ...string) *interceptorServer) {
		s := serve(dir, "--config", conf)
		names := append(slices.Sorted(maps.Keys(limitCases)), "good")
		slices.Sort(names)
		s.await(names...)
		require.Contains(t, s.log(), "the limit (module file) is 100")
		require.Contains(t, s.log(), "_initialize did not end within 100ms, the limit for loading")
		for _, name := range names {
			c, ok := limitCases[name]
			for range 2 {
				if ok {
					answer := s.invoke(name, c.passing())
					c.says(t, answer)
					eventually(t, "the operator is told", func() bool { return c.told(name, s.log()) })
				}
				require.Contains(t, s.invoke(name, `{"name":"fine"}`), `"valid":true`, name)
			}
		}
	})
}

// The same by weir invoke, whose caller is the operator.
func TestLimitsOfInvoke(t *testing.T) {
	t.Parallel()
	dir, conf := limitFolder(t)
	for name, c := range limitCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := runBinary(t, c.passing(), "invoke", name, "--event", abi.ToolsCall, "--phase", "request", "--payload", "-",
				"--settings", conf, filepath.Join(dir, name+".wasm"))
			c.says(t, out.out)
			require.True(t, c.told(name, out.errors), out.errors)
			require.Equal(t, c.reason != "", out.code != 0)
			fine := runBinary(t, `{"name":"fine"}`, "invoke", name, "--event", abi.ToolsCall, "--phase", "request", "--payload", "-",
				"--settings", conf, filepath.Join(dir, name+".wasm"))
			require.Equal(t, 0, fine.code, fine.errors)
			require.Contains(t, fine.out, `"valid":true`)
		})
	}
}

// Of more calls at once than run and wait, the rest is busy.
func TestBusyOverServe(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	dir := filepath.Join(top, "modules")
	require.NoError(t, os.Mkdir(dir, 0o700))
	placeModule(t, dir, "timeout", limitCases["timeout"].module("timeout"))
	conf := write(t, top, "weir.yaml",
		"version: 1\nhosts:\n  - {name: local, modules: ./modules, limits: {calls: 1, queue: 1, timeout: 2s}}\n")
	s := startRaw(t, []string{weirBinary(t), "serve", dir, "--config", conf}, nil)
	hello(s, "2025-06-18")
	invoke := func(id int) string {
		return rpc(id, abi.MethodInvoke, `{"name":"timeout","event":"tools/call","phase":"request","payload":{"name":"x"}}`)
	}
	s.send(invoke(1))
	eventually(t, "the first one runs", func() bool { return strings.Contains(s.errs.String(), "last word of timeout") })
	for id := range 3 {
		s.send(invoke(2 + id))
	}
	reasons := map[string]int{}
	for range 4 {
		answer := s.next()
		for _, reason := range []string{"timeout", "busy"} {
			if strings.Contains(answer, `"reason":"`+reason+`"`) {
				reasons[reason]++
			}
		}
	}
	require.Equal(t, map[string]int{"timeout": 2, "busy": 2}, reasons, "one runs, one waits")
	require.Contains(t, s.errs.String(), "1 calls run and 1 wait, which are the limits")
}

// What a guest says last before it dies is in the record of the gateway, too,
// though its limit of lines has swallowed it.
func TestLastWordsThroughTheGateway(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := wt.NewReactor(wt.Validator("guard"))
	flood := slices.Repeat(wt.Seq(wt.I32(1), r.Text("flood"), wt.Call(r.Log)), 150)
	r.Invoke("", flood, wt.I32(3), r.Text("last word of guard"), wt.Call(r.Log), wt.Unreachable)
	placeModule(t, dir, "guard", r.Bytes())
	s := startRaw(t, gatewayCommand(t, fmt.Sprintf("hosts:\n  - {name: local, modules: %q}\n", dir), role(t, "backend", filepath.Join(t.TempDir(), "notes"))), clientReplies)
	hello(s, "2025-06-18")
	answer := s.call(rpc(1, abi.ToolsCall, toolParams("echo", `{"text":"hello"}`)))
	require.Contains(t, answer, `"error"`)
	require.NotContains(t, answer, "last word")
	eventually(t, "the operator is told", func() bool {
		for line := range strings.Lines(s.errs.String()) {
			if strings.Contains(line, `"blocked"`) && strings.Contains(line, "unreachable") && strings.Contains(line, "last word of guard") {
				return true
			}
		}
		return false
	})
}
