package main

import (
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
)

// runHost runs an interceptor host over HTTP and returns its URL and what ends
// it at once.
func runHost(t testing.TB, h interceptorHost) (url string, kill func()) {
	t.Helper()
	if h.HTTP == "" {
		h.HTTP = freeAddress(t)
	}
	command := h.command(t)
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr = &buffer{}
	require.NoError(t, cmd.Start())
	ended := false
	kill = func() {
		if !ended {
			ended = true
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}
	t.Cleanup(kill)
	eventually(t, "the host listens at "+h.HTTP, func() bool {
		conn, err := net.Dial("tcp", h.HTTP)
		if err != nil {
			return false
		}
		conn.Close()
		return true
	})
	return "http://" + h.HTTP + "/mcp", kill
}

// TestMergedOrder is protocol.md §5 over two hosts, one over stdio and one over
// HTTP: mutations in one global order, validators of both see all mutations,
// equal names run once on each host.
func TestMergedOrder(t *testing.T) {
	t.Parallel()
	record := filepath.Join(t.TempDir(), "calls")
	const call = abi.ToolsCall
	first := interceptorHost{Name: "first", Record: record, Interceptors: []testInterceptor{
		{Name: "late", Type: abi.Mutation, Events: []string{call}, Priority: 1000, Do: "trace"},
		{Name: "same-name", Type: abi.Mutation, Events: []string{call}, Do: "trace"},
		{Name: "a", Type: abi.Mutation, Events: []string{call}, Do: "trace"},
		{Name: "judge", Type: abi.Validation, Events: []string{call}},
		{Name: "watch", Type: abi.Sink, Events: []string{call}},
	}}
	second := interceptorHost{Name: "second", Record: record, Interceptors: []testInterceptor{
		{Name: "B", Type: abi.Mutation, Events: []string{call}, Do: "trace"}, // before "a": by scalar values
		{Name: "same-name", Type: abi.Mutation, Events: []string{call}, Do: "trace"},
		{Name: "early", Type: abi.Mutation, Events: []string{call}, Priority: -1000, Do: "trace"},
		{Name: "judge", Type: abi.Validation, Events: []string{call}},
		{Name: "elsewhere", Type: abi.Validation, Events: []string{abi.PromptsGet}},
	}}
	url, _ := runHost(t, second)
	dir := t.TempDir()
	toBackend, fromBackend := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	conf := "hosts:\n" + hostEntry("first", first.command(t), "") + "  - {name: second, url: " + url + "}\n"
	s := startRaw(t, gatewayCommand(t, conf, role(t, "tap", append([]string{toBackend, fromBackend}, role(t, "backend", filepath.Join(dir, "notes"))...)...)), clientReplies)
	hello(s, "2025-06-18")
	answer := s.call(rpc(1, call, toolParams("echo", `{"text":"n 9007199254740993"}`)))
	s.end()

	const sent = " early@second B@second a@first same-name@first same-name@second late@first"
	require.Contains(t, fileLines(t, toBackend)[2], `"_meta":{"trace":"`+sent+`"}`, "what the backend saw")
	require.Contains(t, fileLines(t, toBackend)[2], `"arguments":{"text":"n 9007199254740993"}`)
	require.Contains(t, answer, sent, "the response is mutated in the same order")

	byStep := map[string]recordedCall{}
	var mutations []string
	for _, c := range recorded(t, record) {
		at := c.Phase + " " + c.Interceptor + "@" + c.Host
		require.NotContains(t, byStep, at, "invoked once a phase")
		byStep[at] = c
		if c.Phase == string(abi.Request) && !slices.Contains([]string{"judge", "watch"}, c.Interceptor) {
			mutations = append(mutations, c.Interceptor+"@"+c.Host)
		}
	}
	require.Equal(t, []string{"early@second", "B@second", "a@first", "same-name@first", "same-name@second", "late@first"}, mutations)
	require.Len(t, byStep, 2*(6+2+1), "six mutations, two validations and a sink in each phase")
	for _, judge := range []string{"judge@first", "judge@second", "watch@first"} {
		require.Equal(t, sent, byStep["request "+judge].Trace, "sending: after all mutations")
		require.Empty(t, byStep["response "+judge].Trace, "receiving: before all mutations")
	}
}

// TestBlockedBeforeBackend shows a validator's no on one host: the backend sees
// nothing, validators of both hosts were asked, and no mutator of the response
// ran.
func TestBlockedBeforeBackend(t *testing.T) {
	t.Parallel()
	record := filepath.Join(t.TempDir(), "calls")
	first := interceptorHost{Name: "first", Record: record, Interceptors: []testInterceptor{
		{Name: "no", Type: abi.Validation, Events: []string{abi.ToolsCall}, Do: "deny"},
		{Name: "watch", Type: abi.Sink, Events: []string{abi.ToolsCall}},
	}}
	second := interceptorHost{Name: "second", Record: record, Interceptors: []testInterceptor{
		{Name: "yes", Type: abi.Validation, Events: []string{abi.ToolsCall}},
		{Name: "trace", Type: abi.Mutation, Events: []string{abi.ToolsCall}, Do: "trace"},
	}}
	url, _ := runHost(t, second)
	notes := filepath.Join(t.TempDir(), "notes")
	conf := "hosts:\n" + hostEntry("first", first.command(t), "") + "  - {name: second, url: " + url + "}\n"
	s := startRaw(t, gatewayCommand(t, conf, role(t, "backend", notes)), clientReplies)
	hello(s, "2025-06-18")
	answer := s.call(rpc(`"x"`, abi.ToolsCall, toolParams("echo", `{"text":"secret"}`)))
	require.Contains(t, answer, `"code":-32602`)
	require.Contains(t, answer, `"reason":"validation_failed"`)
	require.Contains(t, answer, `"interceptor":"no"`)
	require.Contains(t, answer, "not today", "the client is on the guarded side")
	require.Contains(t, s.call(rpc(2, "tools/list", "")), "echo", "the session goes on")
	s.end()
	require.NoFileExists(t, notes, "the backend ran nothing")
	var asked []string
	for _, c := range recorded(t, record) {
		asked = append(asked, c.Phase+" "+c.Interceptor)
	}
	slices.Sort(asked)
	require.Equal(t, []string{"request no", "request trace", "request yes"}, asked)
}
