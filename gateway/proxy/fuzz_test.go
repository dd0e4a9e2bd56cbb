package proxy

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/gateway/relay"
	"github.com/weir-mcp/weir/internal/mirror"
	"github.com/weir-mcp/weir/internal/sse"
	"github.com/weir-mcp/weir/internal/wire"
)

// What headers say of a message after a mutation is what the message says: whoever
// routes by them is not told something else.
func FuzzFollow(f *testing.F) {
	f.Add(`{"name":"a","arguments":{"region":"eu","n":1}}`, `{"name":"b","arguments":{"region":"us","n":1}}`, "a", "Region", "eu")
	f.Add(`{"name":"a","arguments":{"o":{"region":"eu"}}}`, `{"name":"a","arguments":{}}`, "a", "Region", "eu")
	f.Add(`{"name":"ä","arguments":{"n":1.0}}`, `{"name":"=?base64?","arguments":{"n":1e0}}`, "=?base64?w6Q=?=", "N", "1")
	f.Add(`{"name":"a"}`, `{"name":null}`, "a", "X", "")
	f.Fuzz(func(t *testing.T, before, after, name, header, value string) {
		m, err := wire.Read([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + before + `}`))
		if err != nil || m.Params == nil {
			return
		}
		now, err := wire.Read([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + after + `}`))
		if err != nil || now.Params == nil {
			return
		}
		h := http.Header{mirror.NameHeader: {name}, mirror.ParamPrefix + header: {value}}
		if contradiction(h, &m) != "" {
			return
		}
		if text := follow(h, &m, now.Params); text != "" {
			require.NotContains(t, text, value+"\x00", "generic")
			return
		}
		require.Empty(t, contradiction(h, &now), "%v", h)
		for _, values := range h {
			require.Len(t, values, 1)
			require.False(t, strings.ContainsAny(values[0], "\r\n\x00"), "%q splits the header", values[0])
		}
	})
}

// Whatever a client and a backend send: the backend gets one message that is read as
// the proxy has read it, or none; a call that is blocked is not among them; a result
// that a plan empties reaches the client empty, whichever way it comes.
func FuzzExchange(f *testing.F) {
	evil := call("666", `{"name":"evil"}`)
	for _, message := range []string{
		call("1", `{"name":"t"}`), request("1", "resources/read", `{"uri":"a"}`), request("1.0", "ping", "{}"),
		notification("notifications/cancelled", `{"requestId":1}`), result("1", "{}"), failure("1", "-1", "x"),
		"[" + evil + "]", `{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call"}`,
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{\"x\":\n" + evil + "\n}}", evil + "\n" + evil, "", "{", "\xff",
	} {
		for _, answer := range []string{
			result("1", `{"secret":1}`), "data: " + result("1", `{"secret":1}`) + "\n\n",
			"id: 1\nretry: 5\ndata: {\"jsonrpc\":\"2.0\",\ndata: \"id\":1,\"result\":{\"secret\":1}}\n\n: c\n\n",
			"event: other\ndata: " + result("1", `{"secret":1}`) + "\r\n\r\n", request("1", "sampling/createMessage", "{}"),
			failure("1", "-1", "x"), `{"Result":{"secret":1},"id":1}`, "", "data: ", "\x00",
		} {
			f.Add(message, answer, 200, strings.HasPrefix(answer, "data:"), "")
			f.Add(message, answer, 400, strings.Contains(answer, "data:"), "s1")
		}
	}
	f.Fuzz(func(t *testing.T, message, answer string, status int, stream bool, session string) {
		if status < 200 || status > 599 {
			return
		}
		var posted [][]byte
		backend := roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.Body != nil {
				body, _ := io.ReadAll(r.Body)
				posted = append(posted, body)
			}
			kind := typeJSON
			if stream {
				kind = typeSSE
			}
			return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(strings.NewReader(answer)), ContentLength: -1}, nil
		})
		p, err := New(Options{Backend: "http://backend/mcp", Transport: backend, Relay: relay.Options{Governor: &script{rules: map[string]rule{
			"tools/call request": block, "resources/read request": pass, "resources/read response": replace(`{}`),
			"sampling/createMessage request": block,
		}}}})
		require.NoError(t, err)
		defer p.Close()
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(message))
		r.Header.Set(mirror.SessionHeader, session)
		p.ServeHTTP(w, r)

		sent, sentErr := wire.Read([]byte(message))
		for _, body := range posted {
			m, err := wire.Read(body)
			require.NoError(t, err, "%q", body)
			require.NotEqual(t, "tools/call", m.Method)
			if m.Kind != wire.Failure {
				require.NoError(t, sentErr)
				require.Equal(t, sent.Raw, m.Raw)
			}
		}
		if sentErr != nil || sent.Kind != wire.Request || sent.Method != "resources/read" {
			return
		}
		for _, m := range messagesIn(t, w) {
			if m.Kind == wire.Response {
				require.Equal(t, "{}", string(m.Result))
			}
			require.NotEqual(t, "sampling/createMessage", m.Method)
		}
	})
}

// messagesIn are the messages that a client finds in an answer: one as JSON, or those
// of its events, line by line too.
func messagesIn(t *testing.T, w *httptest.ResponseRecorder) (all []wire.Message) {
	if w.Header().Get("Content-Type") != typeSSE {
		if m, err := wire.Read(w.Body.Bytes()); err == nil {
			all = append(all, m)
		}
		return all
	}
	in := sse.NewReader(bytes.NewReader(w.Body.Bytes()), sse.Limits{})
	for {
		event, err := in.Next()
		if err != nil {
			require.Equal(t, io.EOF, err)
			return all
		}
		for part := range bytes.SplitSeq(append(event.Data, '\n'), []byte("\n")) {
			if m, err := wire.Read(part); err == nil {
				all = append(all, m)
			}
		}
	}
}
