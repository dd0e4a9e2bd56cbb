package proxy

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/relay"
	"github.com/weir-mcp/weir/internal/mirror"
)

// What config.md's passthrough narrows, and what the gateway itself declares.

func TestPassthroughOfErrors(t *testing.T) {
	raw := `{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"no user ann@example.com","data":{"sql":"select"}}}`
	generic := failure("1", "-32001", "the backend answered with an error")
	nobodys := `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"/srv/app.py failed"}}`
	for _, c := range []struct {
		name                   string
		status                 int
		kind, body             string
		rawBody, genericBody   string
		rawStatus, asGenericly int
	}{
		{"as JSON", 200, typeJSON, raw, raw, generic, 200, 200},
		{"with an HTTP error", 400, typeJSON, raw, raw, generic, 400, 400},
		{"as an event", 200, typeSSE, "data: " + raw + "\n\n", "data: " + raw + "\n\n", "data: " + generic + "\n\n", 200, 200},
		{"for nobody's request", 400, typeJSON, nobodys, nobodys, "", 400, 400},
		{"in words", 500, "text/plain", "Traceback: /srv/app.py", "Traceback: /srv/app.py", "", 500, 500},
		{"of OAuth", 401, typeJSON, `{"error":"invalid_token"}`, `{"error":"invalid_token"}`, "", 401, 401},
	} {
		t.Run(c.name, func(t *testing.T) {
			backend, _ := answering(c.status, c.kind, c.body)
			stage(t, nil, backend).posts(call("1", "{}"), c.rawStatus, c.rawBody)
			narrow := stage(t, nil, backend, func(o *Options) { o.Relay.Passthrough.GenericErrors = true })
			narrow.posts(call("1", "{}"), c.asGenericly, c.genericBody)
		})
	}
}

func TestPassthroughOfNotifications(t *testing.T) {
	log, progress := notification("notifications/message", `{"data":"x"}`), notification("notifications/progress", `{"progressToken":1}`)
	only := func(o *Options) { o.Relay.Passthrough.Notifications = []string{"notifications/progress"} }
	t.Run("of a client", func(t *testing.T) {
		b := newSessions()
		s := stage(t, nil, b.ServeHTTP, only)
		cancelled, initialized := notification("notifications/cancelled", `{"requestId":3}`), notification("notifications/initialized", "{}")
		for _, m := range []string{log, progress, cancelled, initialized} {
			s.posts(m, 202, "", inSession)
		}
		for _, m := range []string{progress, cancelled, initialized} {
			require.Equal(t, m, take(t, b.posted).body)
		}
		require.Empty(t, b.posted)
		require.Equal(t, []relay.Cause{relay.NotLetThrough}, s.watcher.causes())
	})
	t.Run("of a backend", func(t *testing.T) {
		backend, _ := answering(200, typeSSE, "id: 1\ndata: "+log+"\n\ndata: "+progress+"\n\ndata: "+result("1", "{}")+"\n\n")
		s := stage(t, nil, backend, only)
		// The id crosses without its message: the client resumes behind it.
		s.events(s.do("POST", call("1", "{}"))).gets("id: 1", "data: "+progress, "data: "+result("1", "{}"), "")
	})
	t.Run("on a stream to listen on", func(t *testing.T) {
		b := newSessions()
		s := stage(t, nil, b.ServeHTTP, only)
		stream := s.events(s.do("GET", "", inSession))
		l := take(t, b.listening)
		l.sends(t, "data: "+log)
		l.sends(t, "data: "+progress)
		stream.gets("data: " + progress)
	})
}

func TestCapability(t *testing.T) {
	settings := `{"supportedEvents":["*"]}`
	answer := result("1", `{"capabilities":{"tools":{ },"n":1.0}}`)
	want := result("1", `{"capabilities":{"extensions":{"`+abi.ExtensionKey+`":`+settings+`},"tools":{ },"n":1.0}}`)
	for _, method := range []string{"initialize", "server/discover"} {
		for _, kind := range []string{typeJSON, typeSSE} {
			t.Run(method+" as "+kind, func(t *testing.T) {
				body, changed := answer, want
				if kind == typeSSE {
					body, changed = "data: "+answer+"\n\n", "data: "+want+"\n\n"
				}
				now := []byte(nil)
				backend, _ := answering(200, kind, body)
				s := stage(t, nil, backend, func(o *Options) { o.Relay.Capability = func() []byte { return now } })
				s.posts(request("1", method, "{}"), 200, body)
				now = []byte(settings)
				res := s.posts(request("1", method, "{}"), 200, changed)
				if kind == typeJSON {
					require.Equal(t, int64(len(changed)), res.ContentLength)
				}
				s.posts(request("1", "tools/list", "{}"), 200, body)
			})
		}
	}
}

func TestMessagesAreCounted(t *testing.T) {
	backend, _ := answering(200, typeSSE, "data: "+notification("notifications/progress", "{}")+"\n\n: comment\n\ndata: "+result("1", "{}")+"\n\n")
	s := stage(t, nil, backend)
	for range 2 {
		s.read(s.do("POST", call("1", "{}")))
	}
	s.do("POST", "[]") // no message
	one := []string{"client request", "backend notification", "backend response"}
	require.Equal(t, append(one, one...), s.watcher.messages())
}

// A client of 2026-07-28 asks first, and falls back to initialize when what it
// hears is what it would hear from the backend itself.
func TestDiscoverAtAnOldBackend(t *testing.T) {
	discover := request("1", "server/discover", `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`)
	for name, c := range map[string]struct {
		status     int
		kind, body string
	}{
		"no session, in words":       {400, "text/plain; charset=utf-8", "Missing session ID\n"},
		"no session, as an error":    {400, typeJSON, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: Server not initialized"},"id":null}`},
		"an error without an id":     {400, typeJSON, `{"jsonrpc":"2.0","error":{"code":-32600,"message":"Unsupported protocol version"}}`},
		"method not found":           {200, typeJSON, failure("1", "-32601", "Method not found")},
		"method not found, as event": {200, typeSSE, "data: " + failure("1", "-32601", "Method not found") + "\n\n"},
		"method not found, 404":      {404, typeJSON, failure("1", "-32601", "Method not found")},
		"not found":                  {404, "text/html", "<h1>404</h1>"},
		"not allowed":                {405, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			backend, got := answering(c.status, c.kind, c.body)
			s := stage(t, map[string]rule{"tools/call request": block, "tools/call response": block}, backend)
			res := s.posts(discover, c.status, c.body, "Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: server/discover")
			require.Equal(t, c.kind, res.Header.Get("Content-Type"))
			r := take(t, got)
			require.Equal(t, discover, r.body)
			require.Equal(t, "2026-07-28", r.Header.Get(mirror.VersionHeader))
		})
	}
}
