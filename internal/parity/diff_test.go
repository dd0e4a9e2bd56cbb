package parity

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/internal/need"
)

// TestDiff: a long session in raw frames with a server that nobody here wrote is
// the same, token by token, directly and over every pair of transports, with no
// chain and with one that allows everything. Only times, and the ids of tasks and
// sessions, are masked; they differ between two direct runs, too. A mutator in
// the chain makes lists private and stale (protocol.md §6), which this server's
// lists have no word for.
func TestDiff(t *testing.T) {
	t.Parallel()
	overStdio := append(need.NPM(t, "mcp-server-everything"), "stdio")
	overHTTP := func(t *testing.T) []string {
		command := append(need.NPM(t, "mcp-server-everything"), "streamableHttp")
		address := listening(t, func(_, port string) *exec.Cmd {
			cmd := exec.Command(command[0], command[1:]...)
			cmd.Env = append(os.Environ(), "PORT="+port)
			return cmd
		})
		_, port, err := net.SplitHostPort(address)
		require.NoError(t, err)
		return []string{"http://127.0.0.1:" + port + "/mcp"}
	}
	for name, backend := range map[string]func(t *testing.T) []string{
		"stdio": func(*testing.T) []string { return overStdio },
		"HTTP":  overHTTP,
	} {
		t.Run("to "+name, func(t *testing.T) {
			t.Parallel()
			direct := script(t, backend(t))
			require.GreaterOrEqual(t, direct.sent, 60)
			require.GreaterOrEqual(t, direct.asks, 5)
			notes, others := direct.masked()
			for chained, of := range map[string]func(testing.TB) chain{"no chain": noChain, "allowing chain": allowing} {
				for _, front := range []string{"stdio", "HTTP"} {
					t.Run(front+", "+chained, func(t *testing.T) {
						target := gateway(t, of(t), backend(t)...)
						if front == "HTTP" {
							url, _ := gatewayOverHTTP(t, of(t), backend(t)...)
							target = []string{url}
						}
						through := script(t, target)
						gotNotes, gotOthers := through.masked()
						require.Equal(t, others, gotOthers)
						require.Equal(t, notes, gotNotes)
					})
				}
			}
		})
	}
}

var task = regexp.MustCompile(`"taskId":"([^"]+)"`)

// script holds the session and gives it.
func script(t *testing.T, target []string) *session {
	t.Helper()
	s := talk(t, target, map[string]string{
		"ping":                   `{}`,
		"roots/list":             `{ "roots":[{"name":"a <b> & \u0063","uri":"file:///tmp/ro%20ots"}], "_meta":{"n":9007199254740993,"f":1.0} }`,
		"sampling/createMessage": `{"model":"m<1>","content":{"text":"caf\u00e9 \ud83d\ude00 9007199254740993","type":"text"},"role":"assistant","stopReason":"endTurn","unknown":[1.0,1E2,-0]}`,
		"elicitation/create":     `{"content":{"name":"Zo\u00eb","interpretation":"snake"},"action":"accept"}`,
	})
	s.call("0", "initialize", `{"protocolVersion":"2025-11-25","capabilities":{"roots":{"listChanged":true},"sampling":{},"elicitation":{"form":{},"url":{}}},"clientInfo":{"name":"raw","version":"0"}}`)
	s.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	s.has("roots/list") // the server asks from a timer
	require.Contains(t, s.has("notifications/message"), "Roots updated")

	ids := 0
	call := func(method, params string) string {
		t.Helper()
		ids++
		id := fmt.Sprint(ids)
		switch ids % 4 { // as a client may spell them
		case 1:
			id = fmt.Sprintf("%q", "id <"+id+">")
		case 2:
			id = fmt.Sprint(9007199254740000 + ids)
		case 3:
			id = "-" + id
		}
		return s.call(id, method, params)
	}
	tool := func(name, arguments string) string {
		t.Helper()
		return call("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, arguments))
	}
	call("ping", "")
	require.Contains(t, call("tools/list", ""), "trigger-sampling-request")
	call("tools/list", `{"cursor":"none"}`)
	for _, message := range []string{
		`"caf\u00e9 <b> & \ud83d\ude00 \\ \/ \u2028"`, `"` + strings.Repeat("weir ", 20_000) + `"`, `""`, `9007199254740993`, `null`, `["a"]`,
	} {
		tool("echo", `{"message":`+message+`}`)
	}
	tool("echo", `{}`)
	for _, params := range []string{
		`{"name":"echo","arguments":{"z":9007199254740993,"message":"m","a":1.0,"m":-0,"e":1E+2},"_meta":{"x.example/n":9007199254740993}}`,
		`{ "_meta" : { "x.example/k" : [ 1.0 , 10e-1 ] } , "name" : "echo" , "arguments" : { } , "unknown" : null }`,
		`{"name":"echo","arguments":{"\u006dessage":"\u003cb\u003e","name":"ünï","":"empty"}}`,
		`{"name":"echo"}`, `{"name":7}`, `{}`,
	} {
		call("tools/call", params)
	}
	tool("get-sum", `{"b":1.0,"a":9007199254740993}`)
	tool("get-sum", `{"a":1}`)
	for _, kind := range []string{"error", "success", "debug", "<other>"} {
		tool("get-annotated-message", `{"includeImage":true,"messageType":"`+kind+`"}`)
	}
	tool("get-structured-content", `{"location":"New York"}`)
	tool("get-structured-content", `{"location":"Nowhere"}`)
	tool("get-tiny-image", `{}`)
	tool("get-resource-links", `{"count":3}`)
	tool("get-resource-reference", `{"resourceType":"Text","resourceId":1}`)
	tool("get-roots-list", `{}`)
	tool("no-such-tool", `{}`)
	call("tools/call", `{"name":"trigger-long-running-operation","arguments":{"duration":0.2,"steps":4},"_meta":{"progressToken":"p\u0031"}}`)
	call("tools/call", `{"name":"trigger-long-running-operation","arguments":{"duration":0.2,"steps":2},"_meta":{"progressToken":42}}`)
	require.Contains(t, tool("trigger-sampling-request", `{"prompt":"say <it>","maxTokens":10}`), "9007199254740993")
	tool("trigger-sampling-request", `{"prompt":"again"}`)
	tool("trigger-elicitation-request", `{}`)
	tool("trigger-url-elicitation", `{"url":"https://example.com/?a=1&b=2","elicitationId":"e1"}`)

	// A task, whose result asks the user on the way.
	begun := task.FindStringSubmatch(call("tools/call", `{"name":"simulate-research-query","arguments":{"topic":"python","ambiguous":true},"task":{"ttl":60000}}`))
	require.NotNil(t, begun)
	id := `{"taskId":"` + begun[1] + `"}`
	call("tasks/get", `{"taskId":"no such task"}`)
	require.Contains(t, call("tasks/result", id), "snake")
	call("tasks/get", id)
	call("tasks/list", "")
	call("tasks/cancel", id)

	call("prompts/list", "")
	call("prompts/get", `{"name":"simple-prompt"}`)
	call("prompts/get", `{"name":"args-prompt","arguments":{"state":"\u003c","city":"Z\u00fcrich"}}`)
	call("prompts/get", `{"name":"completable-prompt","arguments":{"department":"Sales","name":"Eve"}}`)
	call("prompts/get", `{"name":"args-prompt"}`)
	call("prompts/get", `{"name":"none"}`)
	call("completion/complete", `{"ref":{"type":"ref/prompt","name":"completable-prompt"},"argument":{"name":"department","value":"S"}}`)
	call("resources/list", "")
	call("resources/templates/list", "{}")
	for _, uri := range []string{"demo://resource/dynamic/text/1", "demo://resource/static/document/features.md", "demo://none", "no uri"} {
		call("resources/read", `{"uri":"`+uri+`"}`)
	}
	call("resources/subscribe", `{"uri":"demo://resource/dynamic/text/1"}`)
	call("resources/unsubscribe", `{"uri":"demo://resource/dynamic/text/1"}`)
	s.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99999,"reason":"<none>"}}`)
	s.send(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
	s.has("roots/list")
	s.has("notifications/message")
	call("logging/setLevel", `{"level":"error"}`)
	call("logging/setLevel", `{"level":"loud"}`)
	call("no/such/method", `{"a":[1.0]}`)
	call("ping", "{}")
	return s
}
