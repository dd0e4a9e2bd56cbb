package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
)

// TestHostKilled is field case host_recovers: while a host is gone what it
// guards fails closed; once it is back, calls work without a restart. A failOpen
// host lets calls pass meanwhile.
func TestHostKilled(t *testing.T) {
	t.Parallel()
	for name, failOpen := range map[string]bool{"fails closed": false, "failOpen": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			record := filepath.Join(t.TempDir(), "calls")
			host := interceptorHost{Name: "guard", Record: record, HTTP: freeAddress(t), Interceptors: []testInterceptor{
				{Name: "judge", Type: abi.Validation, Events: []string{abi.ToolsCall}},
			}}
			url, kill := runHost(t, host)
			conf := "hosts:\n  - {name: guard, url: " + url + "}\n"
			if failOpen {
				// The host may be gone in the middle of a call, too: that is a failure
				// of the interceptor, which has a failOpen of its own.
				conf = "hosts:\n  - {name: guard, url: " + url + ", failOpen: true}\ninterceptors:\n  - {interceptor: judge, failOpen: true}\n"
			}
			s := startRaw(t, gatewayCommand(t, conf, role(t, "backend", filepath.Join(t.TempDir(), "notes"))), clientReplies)
			hello(s, "2025-06-18")
			id := 0
			call := func() string {
				id++
				return s.call(rpc(id, abi.ToolsCall, toolParams("echo", `{"text":"hello"}`)))
			}
			require.Contains(t, call(), `"text":"hello"`)

			kill()
			for range 3 {
				if answer := call(); failOpen {
					require.Contains(t, answer, `"text":"hello"`)
				} else {
					require.Contains(t, answer, `"error"`)
					require.NotContains(t, answer, url, "where hosts are stays inside")
				}
			}
			require.Contains(t, s.call(rpc(`"list"`, "tools/list", "")), `"id":"list"`)

			before := len(recorded(t, record))
			_, _ = runHost(t, host)
			eventually(t, "the host is asked again, and calls work", func() bool {
				return strings.Contains(call(), `"text":"hello"`) && len(recorded(t, record)) > before
			})
		})
	}
}

// TestStdioHostDies does the same with a command host, which the gateway starts
// anew by itself.
func TestStdioHostDies(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	record, pidFile := filepath.Join(dir, "calls"), filepath.Join(dir, "pid")
	host := interceptorHost{Name: "guard", Record: record, PIDFile: pidFile, Interceptors: []testInterceptor{
		{Name: "judge", Type: abi.Validation, Events: []string{abi.ToolsCall}},
	}}
	s := startRaw(t, gatewayCommand(t, "hosts:\n"+hostEntry("guard", host.command(t), ""), role(t, "backend", filepath.Join(dir, "notes"))), clientReplies)
	hello(s, "2025-06-18")
	call := func(id int) string {
		return s.call(rpc(id, abi.ToolsCall, toolParams("echo", `{"text":"hello"}`)))
	}
	require.Contains(t, call(1), `"text":"hello"`)
	killProcess(t, readPID(t, pidFile))
	id := 1
	eventually(t, "calls work again", func() bool {
		id++
		answer := call(id)
		if !strings.Contains(answer, `"text":"hello"`) {
			require.Contains(t, answer, `"error"`)
			return false
		}
		return true
	})
	require.GreaterOrEqual(t, len(recorded(t, record)), 4, "both phases, before and after: nothing passed unseen")
}

// TestHostDownAtStart is config.md: a loud warning, its events blocked until it
// answers, everything else of the session works.
func TestHostDownAtStart(t *testing.T) {
	t.Parallel()
	host := interceptorHost{Name: "guard", HTTP: freeAddress(t), Interceptors: []testInterceptor{
		{Name: "judge", Type: abi.Validation, Events: []string{abi.ToolsCall}},
	}}
	conf := "hosts:\n  - {name: guard, url: \"http://" + host.HTTP + "/mcp\"}\n"
	s := startRaw(t, gatewayCommand(t, conf, role(t, "backend", filepath.Join(t.TempDir(), "notes"))), clientReplies)
	hello(s, "2025-06-18")
	answer := s.call(rpc(1, abi.ToolsCall, toolParams("echo", `{"text":"hello"}`)))
	require.Contains(t, answer, `"reason":"discovery_failed"`)
	require.Contains(t, s.call(rpc(2, "ping", "")), `"result"`, "what is no event passes")
	warned := s.errs.String()
	require.Contains(t, warned, "WARN")
	require.Contains(t, warned, "guard")
	require.Contains(t, warned, "blocked until it answers")

	runHost(t, host)
	id := 2
	eventually(t, "calls work once the host is there", func() bool {
		id++
		return strings.Contains(s.call(rpc(id, abi.ToolsCall, toolParams("echo", `{"text":"hello"}`))), `"text":"hello"`)
	})
}

// TestHostGetsTheRequest is the key request of a host: a response goes to it with
// the request that it answers, over either transport, and only if that is set.
func TestHostGetsTheRequest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var conf strings.Builder
	conf.WriteString("hosts:\n")
	for _, name := range []string{"told", "untold", "web"} {
		host := interceptorHost{Name: name, Record: filepath.Join(dir, name), Interceptors: []testInterceptor{
			{Name: "judge", Type: abi.Validation, Events: []string{abi.ToolsCall}},
		}}
		switch name {
		case "told":
			conf.WriteString(hostEntry(name, host.command(t), ", request: true, payload: envelope"))
		case "untold":
			conf.WriteString(hostEntry(name, host.command(t), ""))
		default:
			host.HTTP = freeAddress(t)
			url, _ := runHost(t, host)
			conf.WriteString("  - {name: web, url: " + url + ", request: true}\n")
		}
	}
	s := startRaw(t, gatewayCommand(t, conf.String(), role(t, "backend", filepath.Join(dir, "notes"))), clientReplies)
	hello(s, "2025-06-18")
	params := toolParams("echo", `{"text":"hello"}`)
	require.Contains(t, s.call(rpc(1, abi.ToolsCall, params)), `"text":"hello"`)
	for name, want := range map[string]string{"told": params, "web": params, "untold": ""} {
		calls := recorded(t, filepath.Join(dir, name))
		require.Len(t, calls, 2)
		require.Empty(t, calls[0].Request, "the request itself")
		require.Equal(t, want, string(calls[1].Request), name)
	}
}

func readPID(t *testing.T, file string) int {
	t.Helper()
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	return atoi(t, strings.TrimSpace(string(b)))
}
