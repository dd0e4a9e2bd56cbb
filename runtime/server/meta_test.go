package server_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/runtime/server"
)

func TestWhatComesAlongInMeta(t *testing.T) {
	const (
		trace  = "4bf92f3577b34da6a3ce929d0e0e4736"
		span   = "00f067aa0ba902b7"
		parent = `"traceparent":"00-` + trace + `-` + span + `-01"`
	)
	for name, c := range map[string]struct {
		phase, rest string
		request     string
		context     *abi.Context
	}{
		"nothing":                      {"response", ``, "", nil},
		"no object":                    {"response", `,"_meta":7`, "", nil},
		"a request, as spelled":        {"response", `,"_meta":{"progressToken":1,"io.github.weir-mcp/request":{"name":"t","n":1.0,"h":"<&>"}}`, `{"name":"t","n":1.0,"h":"<&>"}`, nil},
		"a request that is no object":  {"response", `,"_meta":{"io.github.weir-mcp/request":null}`, `null`, nil},
		"a request needs a response":   {"request", `,"_meta":{"io.github.weir-mcp/request":{}}`, "", nil},
		"a member is not the request":  {"response", `,"request":{"name":"t"}`, "", nil},
		"a trace":                      {"request", `,"_meta":{` + parent + `}`, "", &abi.Context{TraceID: trace, SpanID: span}},
		"a trace beside a session":     {"request", `,"context":{"sessionId":"s"},"_meta":{` + parent + `}`, "", &abi.Context{SessionID: "s", TraceID: trace, SpanID: span}},
		"the context's own trace wins": {"request", `,"context":{"traceId":"mine"},"_meta":{` + parent + `}`, "", &abi.Context{TraceID: "mine"}},
		"what is no trace":             {"request", `,"_meta":{"traceparent":"00-1-2-3"}`, "", nil},
		"a trace that is no text":      {"request", `,"_meta":{"traceparent":{"a":1}}`, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := make(chan abi.Invocation, 1)
			s := server.New(&fixedList{invoke: func(_ context.Context, inv abi.Invocation) (abi.Result, error) {
				got <- inv
				return abi.Result{Type: abi.Validation, Interceptor: inv.Name, Phase: inv.Phase, Valid: true}, nil
			}}, server.Options{})
			l := dialLines(t, s)
			l.handshake(t)
			answer := l.call(t, `{"jsonrpc":"2.0","id":1,"method":"interceptor/invoke","params":{"name":"guard","event":"tools/call","phase":"`+c.phase+`","payload":{}`+c.rest+`}}`)
			require.Contains(t, answer, `"valid":true`)
			inv := <-got
			require.Equal(t, c.request, string(inv.Request))
			require.Equal(t, c.context, inv.Context)
			require.Equal(t, json.RawMessage(`{}`), inv.Payload)
		})
	}
}
