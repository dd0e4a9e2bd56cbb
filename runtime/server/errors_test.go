package server_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/internal/logbook"
	"github.com/weir-mcp/weir/runtime/server"
)

// The table of protocol.md §3, row by row, as it stands on the wire.
func TestErrorTable(t *testing.T) {
	invoke := func(params string) string {
		return `{"jsonrpc":"2.0","id":7,"method":"interceptor/invoke","params":` + params + `}`
	}
	at := `"event":"tools/call","phase":"request","payload":{}`
	rows := []struct{ name, message, failure string }{
		{"unknown name", invoke(`{"name":"nobody",` + at + `}`),
			`{"code":-32602,"message":"no interceptor has this name","data":{"name":"nobody"}}`},
		{"event not hooked", invoke(`{"name":"no-rm","event":"prompts/get","phase":"request","payload":{}}`),
			`{"code":-32602,"message":"the interceptor does not hook this event and phase","data":{"name":"no-rm","event":"prompts/get","phase":"request","advertisedHooks":[{"events":["tools/call"],"phase":"request"}]}}`},
		{"phase not hooked", invoke(`{"name":"no-rm","event":"tools/call","phase":"response","payload":{}}`),
			`{"code":-32602,"message":"the interceptor does not hook this event and phase","data":{"name":"no-rm","event":"tools/call","phase":"response","advertisedHooks":[{"events":["tools/call"],"phase":"request"}]}}`},
		{"not an event, although *", invoke(`{"name":"echo","event":"initialize","phase":"request","payload":{}}`),
			`{"code":-32602,"message":"the interceptor does not hook this event and phase","data":{"name":"echo","event":"initialize","phase":"request","advertisedHooks":[{"events":["*"],"phase":"request"},{"events":["*"],"phase":"response"}]}}`},
		{"no name", invoke(`{` + at + `}`),
			`{"code":-32602,"message":"malformed params","data":{"reason":"params","path":"name"}}`},
		{"name of a wrong type", invoke(`{"name":5,` + at + `}`),
			`{"code":-32602,"message":"malformed params","data":{"reason":"params","path":"name"}}`},
		{"no event", invoke(`{"name":"no-rm","phase":"request","payload":{}}`),
			`{"code":-32602,"message":"malformed params","data":{"name":"no-rm","reason":"params","path":"event"}}`},
		{"a pattern as event", invoke(`{"name":"no-rm","event":"tools/*","phase":"request","payload":{}}`),
			`{"code":-32602,"message":"malformed params","data":{"name":"no-rm","reason":"params","path":"event"}}`},
		{"no phase", invoke(`{"name":"no-rm","event":"tools/call","payload":{}}`),
			`{"code":-32602,"message":"malformed params","data":{"name":"no-rm","reason":"params","path":"phase"}}`},
		{"no payload", invoke(`{"name":"no-rm","event":"tools/call","phase":"request"}`),
			`{"code":-32602,"message":"malformed params","data":{"name":"no-rm","reason":"params","path":"payload"}}`},
		{"timeoutMs 0", invoke(`{"name":"no-rm","timeoutMs":0,` + at + `}`),
			`{"code":-32602,"message":"malformed params","data":{"name":"no-rm","reason":"params","path":"timeoutMs"}}`},
		{"a principal of no type", invoke(`{"name":"no-rm","context":{"principal":{"type":"root"}},` + at + `}`),
			`{"code":-32602,"message":"malformed params","data":{"name":"no-rm","reason":"params","path":"context"}}`},
		{"config that is no object", invoke(`{"name":"no-rm","config":[],` + at + `}`),
			`{"code":-32602,"message":"malformed params","data":{"name":"no-rm","reason":"params","path":"config"}}`},
		{"config against configSchema", invoke(`{"name":"strict-config","config":{"deny":[1]},` + at + `}`),
			`{"code":-32602,"message":"config does not match the interceptor's configSchema","data":{"name":"strict-config","reason":"config","path":"config.deny[]"}}`},
		{"config with a member too many", invoke(`{"name":"strict-config","config":{"x":1},` + at + `}`),
			`{"code":-32602,"message":"config does not match the interceptor's configSchema","data":{"name":"strict-config","reason":"config","path":"config"}}`},
		{"timeout", invoke(`{"name":"sleeper","timeoutMs":1,` + at + `}`),
			`{"code":-32000,"message":"the interceptor did not answer in time","data":{"interceptor":"sleeper","reason":"timeout","timeoutMs":1,"phase":"request"}}`},
		{"a panic", invoke(`{"name":"crasher",` + at + `}`),
			`{"code":-32603,"message":"the interceptor failed: trap","data":{"interceptor":"crasher","reason":"trap","phase":"request"}}`},
	}
	for _, reason := range []string{
		"trap", "exit", "memory", "stack", "fuel", "busy", "payload_too_large", "output_too_large", "bad_output",
		"guest", "unavailable", "cancelled",
	} {
		rows = append(rows, struct{ name, message, failure string }{
			"reason " + reason, invoke(`{"name":"fails-` + reason + `",` + at + `}`),
			`{"code":-32603,"message":"the interceptor failed: ` + reason + `","data":{"interceptor":"fails-` + reason + `","reason":"` + reason + `","phase":"request"}}`,
		})
	}
	book := &logbook.Book{}
	everywhere(t, desk(t), server.Options{Logger: book.Text()}, func(t *testing.T, c wireClient) {
		for _, row := range rows {
			t.Run(row.name, func(t *testing.T) {
				require.Equal(t, `{"jsonrpc":"2.0","id":7,"error":`+row.failure+`}`, c.call(t, row.message))
			})
		}
	})
	require.Contains(t, book.String(), "secret words of the guest", "the log has what the caller does not get")
	require.Contains(t, book.String(), "reason=output_too_large")
}

func TestParamsThatAreMissing(t *testing.T) {
	const message = `{"jsonrpc":"2.0","id":7,"method":"interceptor/invoke"}`
	const answer = `{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"malformed params","data":{"reason":"params"}}}`
	s := server.New(desk(t), server.Options{})
	l := dialLines(t, s)
	l.handshake(t)
	require.Equal(t, answer, l.call(t, message))
	require.Equal(t, answer, dialHTTP(t, s).call(t, message))
}

// What the strict reader refuses never reaches the SDK (protocol.md §6).
func TestRefusedMessages(t *testing.T) {
	rows := []struct {
		name, message, answer string
	}{
		{"not JSON", `{"jsonrpc":"2.0","id":1,`, `-32700`},
		{"not UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"p\xff\"}", `-32700`},
		{"a batch", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, `-32600`},
		{"two ids", `{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, `-32600`},
		{"two methods in different case", `{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call"}`, `-32600`},
		{"two names in the params", `{"jsonrpc":"2.0","id":1,"method":"interceptor/invoke","params":{"name":"a","NAME":"b"}}`, `-32600`},
		{"a duplicate deep in the payload", `{"jsonrpc":"2.0","id":1,"method":"interceptor/invoke","params":{"name":"echo","event":"tools/call","phase":"request","payload":{"a":[{"b":1,"b":2}]}}}`, `-32600`},
		{"params that are an array", `{"jsonrpc":"2.0","id":1,"method":"interceptor/invoke","params":["echo"]}`, `-32600`},
		{"no version", `{"id":1,"method":"ping"}`, `-32600`},
		{"id null", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, `-32600`},
	}
	t.Run("stdio", func(t *testing.T) {
		l := dialLines(t, server.New(desk(t), server.Options{}))
		l.handshake(t)
		for _, row := range rows {
			t.Run(row.name, func(t *testing.T) {
				require.Contains(t, l.call(t, row.message), `"error":{"code":`+row.answer+`,`)
			})
		}
		require.Equal(t, `{"jsonrpc":"2.0","id":2,"result":{}}`, l.call(t, `{"jsonrpc":"2.0","id":2,"method":"ping"}`),
			"and the connection goes on")
	})
	t.Run("http", func(t *testing.T) {
		p := dialHTTP(t, server.New(desk(t), server.Options{}))
		for _, row := range rows {
			t.Run(row.name, func(t *testing.T) {
				response, body, err := p.post(t.Context(), row.message, nil)
				require.NoError(t, err)
				require.Equal(t, 400, response.StatusCode)
				require.Contains(t, body, `"error":{"code":`+row.answer+`,`)
			})
		}
	})
}

// Methods of capabilities that the server does not have do not exist.
func TestOtherMethodsDoNotExist(t *testing.T) {
	everywhere(t, desk(t), server.Options{}, func(t *testing.T, c wireClient) {
		for _, method := range []string{
			"tools/list", "tools/call", "prompts/list", "resources/list", "logging/setLevel", "completion/complete",
			"subscriptions/listen", "notifications/cancelled", "no/such", "",
		} {
			require.Equal(t, `{"jsonrpc":"2.0","id":"x","error":{"code":-32601,"message":"method not found"}}`,
				c.call(t, `{"jsonrpc":"2.0","id":"x","method":"`+method+`","params":{}}`), method)
		}
	})
}

// The SDK's own errors quote the input and Go types, and some have no code.
func TestErrorsOfTheHandshakeAreGeneric(t *testing.T) {
	bad := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":{"secret":"words"},"capabilities":{}}}`
	t.Run("stdio", func(t *testing.T) {
		l := dialLines(t, server.New(desk(t), server.Options{}))
		require.Equal(t, `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"invalid request"}}`, l.call(t, bad))
		require.Equal(t, `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"invalid request"}}`,
			l.call(t, `{"jsonrpc":"2.0","id":1,"method":"interceptors/list"}`), "before the handshake")
		l.handshake(t)
		require.Equal(t, `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"invalid request"}}`,
			l.call(t, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}`),
			"a second handshake")
	})
	t.Run("http", func(t *testing.T) {
		p := dialHTTP(t, server.New(desk(t), server.Options{}))
		require.Equal(t, `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"invalid request"}}`, p.call(t, bad))
	})
}
