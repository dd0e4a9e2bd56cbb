package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/need"
	"github.com/weir-mcp/weir/internal/wire"
)

// A conversation is what a raw client says to a server, and what it answers
// when the server asks.
type conversation struct {
	replies map[string]string
	talk    func(s *rawSession)
}

// TestTransparency holds the gateway to protocol.md §6 "What crosses
// unchanged" in front of servers that nobody here wrote, with nothing to govern
// and with a chain that governs everything and changes nothing: sandboxed
// modules and native interceptors, a validator, mutators and a sink on every
// event in both phases.
//
// Two comparisons are made, each of which catches what the other cannot:
//
//   - In one run, the bytes that the client wrote with those that reached the
//     backend, and the bytes that the backend wrote with those that reached the
//     client. Nothing is masked. The order is compared, too; behind a chain, a
//     governed message waits for its plan beside the stream (package relay), so
//     that notifications may pass it: there the order is that of the
//     notifications, and that of all else.
//   - A run through the gateway with one without, times and ids of tasks masked:
//     the backend behaves as if there were no gateway. Servers that send
//     notifications from timers order them differently against responses from
//     one direct run to the next, so that here notifications are compared among
//     themselves, and all else in its order.
//
// Two differences are allowed, and only behind a chain with active mutators:
// the cacheScope and ttlMs of a list, which protocol.md §6 asks for, and, where
// a mutator replaces a payload by its like, white space outside strings.
func TestTransparency(t *testing.T) {
	t.Parallel()
	sdk := func(t *testing.T) []string { return []string{everythingServer(t)} }
	npm := func(t *testing.T) []string { return append(need.NPM(t, "mcp-server-everything"), "stdio") }
	for _, c := range []struct {
		name     string
		backend  func(t *testing.T) []string
		exchange conversation
	}{
		{"go-sdk conformance server", sdk, sdkConversation},
		{"go-sdk, 2026-07-28 without a handshake", sdk, statelessConversation},
		{"go-sdk, initialize of 2024-11-05", sdk, greeting("2024-11-05")},
		{"go-sdk, initialize of 2025-03-26", sdk, greeting("2025-03-26")},
		{"go-sdk, initialize of 2025-11-25", sdk, greeting("2025-11-25")},
		{"go-sdk, initialize of a version that never was", sdk, greeting("1999-01-01")},
		{"npm server-everything", npm, npmConversation},
		{"npm server-everything, initialize of 2024-11-05", npm, npmGreeting("2024-11-05")},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			backend := c.backend(t)
			direct := c.exchange.hold(t, backend)
			direct.kill() // servers that keep timers would stay for minutes
			require.NotEmpty(t, direct.seen)
			for _, way := range []struct {
				name    string
				conf    func(t *testing.T) string
				compare func(t *testing.T, want, got []string)
				allowed func(t *testing.T, s *rawSession, received []string) []string
			}{
				{"without hosts", func(*testing.T) string { return "" }, requireSameOrder, nil},
				{"allowing chain", allowingHosts, requireSame, withoutListCaches},
				{"replacing chain", replacingHosts, requireSameTokens, withoutListCaches},
			} {
				t.Run(way.name, func(t *testing.T) {
					t.Parallel()
					conf := way.conf(t)
					dir := t.TempDir()
					toBackend, fromBackend := filepath.Join(dir, "in"), filepath.Join(dir, "out")
					tapped := role(t, "tap", append([]string{toBackend, fromBackend}, backend...)...)
					s := c.exchange.hold(t, gatewayCommand(t, conf, tapped))
					s.end()

					way.compare(t, s.sent, fileLines(t, toBackend))
					said, before := fileLines(t, fromBackend), direct.masked()
					if way.allowed != nil {
						said, before = way.allowed(t, s, said), way.allowed(t, direct, before)
					}
					way.compare(t, said, s.seen)
					if conf == "" {
						requireSame(t, before, s.masked())
					} else {
						way.compare(t, before, s.masked())
					}
				})
			}
		})
	}
}

// hold holds the conversation with a command, which runs on.
func (c conversation) hold(t *testing.T, command []string) *rawSession {
	t.Helper()
	s := startRaw(t, command, c.replies)
	c.talk(s)
	return s
}

// allowingHosts are the hosts of the chain that lets everything pass as it is.
func allowingHosts(t *testing.T) string {
	native := interceptorHost{Name: "native", Interceptors: []testInterceptor{
		{Name: "allow", Type: abi.Validation, Events: []string{"*"}},
		{Name: "same", Type: abi.Mutation, Events: []string{"*"}, Do: "same"},
		{Name: "watch", Type: abi.Sink, Events: []string{"*"}},
	}}
	return "hosts:\n" + modulesEntry("modules", onlyAllowing(t)) + hostEntry("native", native.command(t), "")
}

// replacingHosts are those of one that replaces every payload by its like.
func replacingHosts(t *testing.T) string {
	native := interceptorHost{Name: "native", Interceptors: []testInterceptor{
		{Name: "replace", Type: abi.Mutation, Events: []string{"*"}, Do: "replace"},
	}}
	return "hosts:\n" + hostEntry("native", native.command(t), "")
}

// withoutListCaches is the lines of a session with what the gateway tells
// clients about lists that a mutator may have changed: that they are theirs
// alone, and stale at once.
func withoutListCaches(t *testing.T, s *rawSession, received []string) []string {
	t.Helper()
	lists := map[string]bool{}
	for _, line := range s.sent {
		m, err := wire.Read([]byte(line))
		require.NoError(t, err)
		switch m.Method {
		case abi.ToolsList, abi.PromptsList, abi.ResourcesList:
			lists[m.ID.Key()] = true
		}
	}
	out := make([]string, len(received))
	for i, line := range received {
		m, err := wire.Read([]byte(line))
		require.NoError(t, err, line)
		if m.Kind == wire.Response && lists[m.ID.Key()] {
			line = strings.Replace(line, `"cacheScope":"public"`, `"cacheScope":"private"`, 1)
			line = ttl.ReplaceAllString(line, `"ttlMs":0`)
		}
		out[i] = line
	}
	return out
}

var ttl = regexp.MustCompile(`"ttlMs":\d+`)

// requireSameOrder compares messages byte by byte.
func requireSameOrder(t *testing.T, want, got []string) {
	t.Helper()
	for i := range min(len(want), len(got)) {
		require.Equal(t, shown(want[i]), shown(got[i]), "message %d", i)
		require.True(t, want[i] == got[i], "message %d differs beyond what is shown", i)
	}
	require.Len(t, got, len(want), "after them: %q", append(want, got...)[min(len(want), len(got)):])
}

// requireSame compares the notifications, and all else, byte by byte.
func requireSame(t *testing.T, want, got []string) {
	t.Helper()
	wantNotes, want := notificationsApart(t, want)
	gotNotes, got := notificationsApart(t, got)
	requireSameOrder(t, want, got)
	requireSameOrder(t, wantNotes, gotNotes)
}

// requireSameTokens is requireSame without white space outside strings.
func requireSameTokens(t *testing.T, want, got []string) {
	t.Helper()
	requireSame(t, compacted(t, want), compacted(t, got))
}

func compacted(t *testing.T, lines []string) []string {
	t.Helper()
	out := make([]string, len(lines))
	for i, line := range lines {
		var b bytes.Buffer
		require.NoError(t, json.Compact(&b, []byte(line)), line)
		out[i] = b.String()
	}
	return out
}

func notificationsApart(t *testing.T, lines []string) (notes, others []string) {
	t.Helper()
	for _, line := range lines {
		m, err := wire.Read([]byte(line))
		require.NoError(t, err, line)
		if m.Kind == wire.Notification {
			notes = append(notes, line)
		} else {
			others = append(others, line)
		}
	}
	return notes, others
}

func shown(line string) string {
	if len(line) > 2000 {
		return fmt.Sprintf("%s… (%d bytes)", line[:2000], len(line))
	}
	return line
}

// clientReplies is what the raw client answers, in spellings that a decoder
// would not give back.
var clientReplies = map[string]string{
	"ping":                   `{}`,
	"roots/list":             `{ "roots":[{"name":"a <b> & \u0063","uri":"file:///tmp/ro%20ots"}], "_meta":{"n":9007199254740993,"f":1.0,"e":1e400} }`,
	"sampling/createMessage": `{"model":"m<1>","content":{"text":"caf\u00e9 \ud83d\ude00 \u2028 9007199254740993","type":"text"},"role":"assistant","stopReason":"endTurn","unknown":[1.0,1E2,-0,1e400]}`,
	"elicitation/create":     `{"content":{"username":"Zo\u00eb","name":"Zoë","interpretation":"snake"},"action":"accept"}`,
}

// hello opens a session.
func hello(s *rawSession, version string) {
	s.t.Helper()
	s.call(initialize(version))
	s.send(initializedNote)
}

// npmHello opens a session with the npm server, which registers tools that
// depend on what the client can do and then, from a timer, asks for the roots.
func npmHello(s *rawSession, version string) {
	s.t.Helper()
	hello(s, version)
	s.asked("roots/list")
	require.Contains(s.t, s.notified("notifications/message"), "Roots updated")
}

// greeting is a short conversation in a version of the protocol.
func greeting(version string) conversation {
	return greetingAfter(hello, version)
}

func npmGreeting(version string) conversation {
	return greetingAfter(npmHello, version)
}

func greetingAfter(hello func(*rawSession, string), version string) conversation {
	return conversation{clientReplies, func(s *rawSession) {
		hello(s, version)
		s.call(rpc(1, "ping", ""))
		s.call(rpc(`"two"`, "prompts/list", "{}"))
		s.call(rpc(3, "resources/templates/list", ""))
		s.call(rpc(-4, "no/such", `{"a":[1.0,{"b":"\u003c"}]}`))
	}}
}

// oddities are params of any tool call that a decoder or encoder would spell
// differently: numbers, escapes, key order, white space, unknown members.
var oddities = []string{
	`{"name":%q,"arguments":{"z":9007199254740993,"a":1.0,"m":-0,"e":1E+2},"_meta":{"x.example/n":9007199254740993}}`,
	`{"arguments":{"huge":1e400},"name":%q}`,
	`{ "_meta" : { "x.example/k" : [ 1.0 , 10e-1 ] } , "name" : %q , "arguments" : { } , "unknown" : null }`,
	`{"name":%q,"arguments":{"\u0061":"\u003cb\u003e & <b> \/ \ud83d\ude00 😀 \u2028 \u0000","name":"ünï","":"empty key"}}`,
	`{"name":%q}`,
	`{"name":%q,"arguments":{}}`,
}

// calls gives what makes a call with the next id, and one of a tool.
func calls(s *rawSession) (call, tool func(name, params string) string) {
	id := 0
	call = func(method, params string) string {
		s.t.Helper()
		id++
		return s.call(rpc(id, method, params))
	}
	return call, func(name, arguments string) string {
		s.t.Helper()
		return call("tools/call", toolParams(name, arguments))
	}
}

var sdkConversation = conversation{clientReplies, func(s *rawSession) {
	s.t.Helper()
	hello(s, "2025-06-18")
	call, tool := calls(s)

	call("ping", "")
	call("tools/list", "")
	call("tools/list", `{"cursor":"not a cursor"}`)
	for _, name := range []string{
		"test_simple_text", "test_image_content", "test_audio_content", "test_embedded_resource", "test_multiple_content_types",
		"test_error_handling", "test_missing_capability", "test_logging_tool", "test_streaming_elicitation",
		"no_such_tool",
	} {
		tool(name, `{}`)
	}
	require.Contains(s.t, tool("test_sampling", `{"prompt":"<say> \"\u00e9\" & 😀"}`), "LLM response: café 😀")
	require.Contains(s.t, tool("test_elicitation", `{"message":"who?"}`), "username:Zo")
	tool("test_elicitation_sep1034_defaults", `{}`)
	tool("test_elicitation_sep1330_enums", `{}`)
	tool("test_sampling", `{"prompt":7}`)

	const echo = "json_schema_2020_12_tool"
	require.Contains(s.t, tool(echo, `{"email":"a\u0040b <c> & ü 😀","contactMethod":"email","name":"9007199254740993"}`), "called with")
	require.Contains(s.t, tool(echo, `{"email":"`+long(70<<10)+`"}`), "weir weir")
	for _, odd := range oddities {
		call("tools/call", fmt.Sprintf(odd, echo))
		call("tools/call", fmt.Sprintf(odd, "test_simple_text"))
	}
	tool("test_x_mcp_header", `{"region":"eu","level":1.0}`)
	tool("test_x_mcp_header", `{"level":9007199254740993}`)

	for _, token := range []string{`"tok\u0065n"`, `42`, `9007199254740993`} {
		call("tools/call", `{"_meta":{"progressToken":`+token+`},"name":"test_tool_with_progress","arguments":{}}`)
	}
	call("logging/setLevel", `{"level":"debug"}`)
	call("logging/setLevel", `{"level":"loud"}`)
	tool("test_tool_with_logging", `{}`)

	call("prompts/list", `{}`)
	call("prompts/get", `{"name":"test_simple_prompt"}`)
	call("prompts/get", `{"arguments":{"arg2":"<2>","arg1":"\u0031"},"name":"test_prompt_with_arguments"}`)
	call("prompts/get", `{"name":"test_prompt_with_embedded_resource","arguments":{"resourceUri":"test://x"}}`)
	call("prompts/get", `{"name":"test_prompt_with_image"}`)
	call("prompts/get", `{"name":"none"}`)

	call("resources/list", "")
	call("resources/templates/list", `{}`)
	for _, uri := range []string{"test://static-text", "test://static-binary", "test://template/1%202/data", "test://watched-resource", "test://none"} {
		call("resources/read", `{"uri":"`+uri+`"}`)
	}
	call("resources/subscribe", `{"uri":"test://static-text"}`)
	call("resources/unsubscribe", `{"uri":"test://static-text"}`)
	call("completion/complete", `{"ref":{"type":"ref/prompt","name":"test_prompt_with_arguments"},"argument":{"name":"arg1","value":"te"}}`)
	call("no/such/method", `{"deep":{"er":[[],{}]}}`)
	call("tasks/list", "")
	s.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"nobody's","progress":0.10}}`)
	s.send(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
	s.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99999,"reason":"<none>"}}`)
	s.send(`{"jsonrpc":"2.0","method":"notifications/no_such"}`)

	// The answer and the notification come in either order.
	s.send(rpc(`"last"`, "tools/call", toolParams("test_trigger_tool_change", `{}`)))
	s.until(`"id":"last"`, "notifications/tools/list_changed")
	s.send(rpc(`"really last"`, "tools/call", toolParams("test_trigger_prompt_change", `{}`)))
	s.until(`"id":"really last"`, "notifications/prompts/list_changed")
}}

// statelessConversation is in the protocol of 2026-07-28, in which each request
// says who asks, and a result may ask for input.
var statelessConversation = conversation{clientReplies, func(s *rawSession) {
	s.t.Helper()
	id := 0
	call := func(method, more string) string {
		s.t.Helper()
		id++
		return s.call(rpc(id, method, `{`+more+`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
			`"io.modelcontextprotocol/clientInfo":{"name":"raw","version":"0"},`+
			`"io.modelcontextprotocol/clientCapabilities":{"sampling":{},"elicitation":{},"roots":{}}}}`))
	}
	require.Contains(s.t, call("server/discover", ""), "2026-07-28")
	call("tools/list", "")
	call("tools/call", `"name":"test_simple_text","arguments":{},`)
	require.Contains(s.t, call("tools/call", `"name":"test_input_required_result_elicitation","arguments":{},`), "inputRequests")
	require.Contains(s.t, call("tools/call", `"name":"test_input_required_result_elicitation","inputResponses":{"user_name":{"action":"accept","content":{"name":"Zo\u00eb"}}},"arguments":{},`), "Hello, Zoë!")
	call("tools/call", `"name":"test_input_required_result_sampling","arguments":{},`)
	call("tools/call", `"name":"test_input_required_result_sampling","inputResponses":{"capital_question":{"role":"assistant","content":{"type":"text","text":"P\u0061ris"},"model":"m"}},"arguments":{},`)
	call("tools/call", `"name":"test_input_required_result_list_roots","arguments":{},`)
	call("tools/call", `"name":"test_input_required_result_list_roots","inputResponses":{"client_roots":{"roots":[{"uri":"file:///tmp"}]}},"arguments":{},`)
	call("tools/call", `"name":"test_input_required_result_request_state","arguments":{},`)
	call("tools/call", `"name":"test_input_required_result_multi_round","arguments":{},`)
	call("tools/call", `"name":"test_input_required_result_capabilities","arguments":{},`)
	call("tools/call", `"name":"test_missing_capability","arguments":{},`)
	call("prompts/get", `"name":"test_input_required_result_prompt",`)
	call("resources/list", "")
	call("resources/read", `"uri":"test://static-text",`)
	call("prompts/list", "")
	call("ping", "")
	call("no/such", "")
}}

var npmConversation = conversation{clientReplies, func(s *rawSession) {
	s.t.Helper()
	npmHello(s, "2025-11-25")
	call, tool := calls(s)

	call("ping", "")
	require.Contains(s.t, call("tools/list", ""), "trigger-sampling-request")
	require.Contains(s.t, tool("echo", `{"message":"caf\u00e9 <b> & \ud83d\ude00 \\ \/ \u2028"}`), "Echo: café")
	require.Contains(s.t, tool("echo", `{"message":"`+long(70<<10)+`"}`), "weir weir")
	tool("echo", `{}`)
	tool("echo", `{"message":9007199254740993}`)
	for _, odd := range oddities {
		call("tools/call", fmt.Sprintf(odd, "echo"))
	}
	tool("get-sum", `{"b":1.0,"a":9007199254740993}`)
	tool("get-sum", `{"a":1e400,"b":1}`)
	for _, kind := range []string{"error", "success", "debug", "<other>"} {
		tool("get-annotated-message", `{"includeImage":true,"messageType":"`+kind+`"}`)
	}
	tool("get-structured-content", `{"location":"New York"}`)
	tool("get-structured-content", `{"location":"Nowhere"}`)
	tool("get-tiny-image", `{}`)
	tool("get-resource-links", `{"count":3}`)
	tool("get-resource-reference", `{"resourceType":"Text","resourceId":1}`)
	tool("get-roots-list", `{}`)
	tool("gzip-file-as-resource", `{"name":"x.gz","data":"data:text/plain,hello%20there","outputType":"resource"}`)
	tool("no-such-tool", `{}`)
	call("tools/call", `{"name":"trigger-long-running-operation","arguments":{"duration":0.2,"steps":4},"_meta":{"progressToken":"p\u0031"}}`)
	require.Contains(s.t, tool("trigger-sampling-request", `{"prompt":"say <it>","maxTokens":10}`), "9007199254740993")
	tool("trigger-elicitation-request", `{}`)
	tool("trigger-url-elicitation", `{"url":"https://example.com/?a=1&b=2","elicitationId":"e1"}`)

	// A task, whose result asks the user on the way.
	answer := call("tools/call", `{"name":"simulate-research-query","arguments":{"topic":"python","ambiguous":true},"task":{"ttl":60000}}`)
	task := taskID.FindStringSubmatch(answer)
	require.NotNil(s.t, task, answer)
	call("tasks/get", `{"taskId":"no such task"}`)
	require.Contains(s.t, call("tasks/result", `{"taskId":"`+task[1]+`"}`), "snake")
	call("tasks/get", `{"taskId":"`+task[1]+`"}`)
	call("tasks/list", "")
	call("tasks/cancel", `{"taskId":"`+task[1]+`"}`)

	call("prompts/list", "")
	call("prompts/get", `{"name":"simple-prompt"}`)
	call("prompts/get", `{"name":"args-prompt","arguments":{"state":"\u003c","city":"Z\u00fcrich"}}`)
	call("prompts/get", `{"name":"completable-prompt","arguments":{"department":"Sales","name":"Eve"}}`)
	call("prompts/get", `{"name":"args-prompt"}`)
	call("completion/complete", `{"ref":{"type":"ref/prompt","name":"completable-prompt"},"argument":{"name":"department","value":"S"}}`)

	call("resources/list", "")
	call("resources/templates/list", "")
	call("resources/read", `{"uri":"demo://resource/dynamic/text/1"}`)
	call("resources/read", `{"uri":"demo://resource/static/document/features.md"}`)
	call("resources/read", `{"uri":"demo://none"}`)
	call("resources/subscribe", `{"uri":"demo://resource/dynamic/text/1"}`)
	tool("toggle-subscriber-updates", `{}`)
	tool("toggle-subscriber-updates", `{}`)
	call("resources/unsubscribe", `{"uri":"demo://resource/dynamic/text/1"}`)
	s.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99999}}`)
	s.send(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
	s.asked("roots/list")
	s.notified("notifications/message")
	call("logging/setLevel", `{"level":"error"}`)
	call("no/such/method", `{"a":[1.0]}`)
	call("ping", "")
}}

// until takes lines until each of the texts has been in one.
func (s *rawSession) until(texts ...string) {
	s.t.Helper()
	missing := map[string]bool{}
	for _, text := range texts {
		missing[text] = true
	}
	for len(missing) > 0 {
		line := s.next()
		for text := range missing {
			if strings.Contains(line, text) {
				delete(missing, text)
			}
		}
	}
}
