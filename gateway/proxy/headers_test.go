package proxy

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/relay"
	"github.com/weir-mcp/weir/internal/mirror"
	"github.com/weir-mcp/weir/internal/wire"
)

// Headers and status codes cross in both directions; what concerns one connection,
// or the gateway, does not.
func TestHeaders(t *testing.T) {
	var got http.Header
	s := stage(t, nil, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		got = r.Header.Clone()
		h := w.Header()
		h.Set("Www-Authenticate", `Bearer resource_metadata="https://x/.well-known/oauth-protected-resource"`)
		h.Set(mirror.SessionHeader, "s1")
		h.Add("Set-Cookie", "a=1")
		h.Add("Set-Cookie", "b=2")
		h.Set("Retry-After", "7")
		h.Set("X-Other", "ä")
		h.Set("Connection", "X-Hop")
		h.Set("X-Hop", "1")
		h.Set("Content-Type", "application/problem+json")
		w.WriteHeader(401)
		io.WriteString(w, `{"title":"who are you"}`)
	}, func(o *Options) { o.Headers = http.Header{"x-ours": {"ours"}, "X-Team": {"ours"}} })
	res := s.posts(call("1", "{}"), 401, `{"title":"who are you"}`, "Authorization: Bearer t", "Mcp-Protocol-Version: 2025-11-25",
		inSession, "X-Team: theirs", "X-Ours: theirs", "X-Custom: 1", "X-Custom: 2", "Accept-Encoding: gzip", "Te: trailers", "Connection: X-Private", "X-Private: 1",
		"Proxy-Authorization: Basic x", "Cookie: c=1", "User-Agent: ")
	require.Equal(t, `Bearer resource_metadata="https://x/.well-known/oauth-protected-resource"`, res.Header.Get("Www-Authenticate"))
	require.Equal(t, []string{"a=1", "b=2"}, res.Header["Set-Cookie"])
	require.Equal(t, "7", res.Header.Get("Retry-After"))
	require.Equal(t, "s1", res.Header.Get(mirror.SessionHeader))
	require.Equal(t, "ä", res.Header.Get("X-Other"))
	require.Equal(t, "application/problem+json", res.Header.Get("Content-Type"))
	require.NotContains(t, res.Header, "X-Hop")

	require.Equal(t, "Bearer t", got.Get("Authorization"))
	require.Equal(t, "2025-11-25", got.Get(mirror.VersionHeader))
	require.Equal(t, "s1", got.Get(mirror.SessionHeader))
	require.Equal(t, "c=1", got.Get("Cookie"))
	require.Equal(t, []string{"1", "2"}, got["X-Custom"])
	require.Equal(t, []string{"ours"}, got["X-Team"])
	require.Equal(t, []string{"ours"}, got["X-Ours"])
	require.Equal(t, "identity", got.Get("Accept-Encoding"), "what is compressed cannot be governed")
	for _, name := range []string{"Te", "X-Private", "Proxy-Authorization", "Connection", "User-Agent"} {
		require.NotContains(t, got, name)
	}
}

func TestAuthorizationThatWasForTheGatewayEndsThere(t *testing.T) {
	backend, got := answering(200, typeJSON, result("1", "{}"))
	s := stage(t, nil, backend)
	someone := &abi.Principal{Type: abi.PrincipalService, ID: "ci"}
	s.as(someone)
	s.posts(call("1", "{}"), 200, result("1", "{}"), "Authorization: Bearer gateway")
	require.Empty(t, take(t, got).Header.Get("Authorization"))
	s.as(nil)
	s.posts(call("1", "{}"), 200, result("1", "{}"), "Authorization: Bearer backend")
	require.Equal(t, "Bearer backend", take(t, got).Header.Get("Authorization"))
}

func TestStatusCodesCross(t *testing.T) {
	for _, status := range []int{400, 401, 402, 403, 404, 405, 406, 409, 415, 418, 429, 500, 501, 502, 503, 504} {
		backend, _ := answering(status, "text/plain", "no")
		s := stage(t, map[string]rule{"tools/call request": pass, "tools/call response": pass}, backend)
		s.posts(call("1", "{}"), status, "no")
		require.Zero(t, s.proxy.alone.Open(relay.Client))
		require.Equal(t, status, s.do("GET", "").StatusCode)
		require.Equal(t, status, s.do("DELETE", "", inSession).StatusCode)
	}
}

// What is not read as it stands is not governed, so it does not pass.
func TestMessagesThatTwoReadersMightReadDifferently(t *testing.T) {
	for name, c := range map[string]struct {
		status  int
		headers []string
	}{
		"compressed":          {415, []string{"Content-Encoding: gzip"}},
		"in another encoding": {415, []string{"Content-Type: application/json; charset=utf-16"}},
		"of two types":        {400, []string{"Content-Type: text/plain"}}, // beside application/json
		"of two sessions":     {400, []string{inSession, "Mcp-Session-Id: s2"}},
		"of another method":   {400, []string{"Mcp-Method: ping"}},
		"of another tool":     {400, []string{"Mcp-Name: safe"}},
		"of another argument": {400, []string{"Mcp-Param-Region: us"}},
		"of another version":  {400, []string{"Mcp-Protocol-Version: 2025-11-25"}},
		"two names":           {400, []string{"Mcp-Name: evil", "Mcp-Name: safe"}},
		"a name badly coded":  {400, []string{"Mcp-Name: =?base64?%?="}},
	} {
		t.Run(name, func(t *testing.T) {
			backend, got := answering(200, typeJSON, result("1", "{}"))
			s := stage(t, nil, backend)
			r := s.request(t.Context(), "POST", call("1", `{"name":"evil","arguments":{"region":"eu"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`), c.headers...)
			if name == "in another encoding" {
				r.Header["Content-Type"] = r.Header["Content-Type"][1:]
			}
			res, err := http.DefaultTransport.RoundTrip(r)
			require.NoError(t, err)
			body := s.read(res)
			res.Body.Close()
			require.Equal(t, c.status, res.StatusCode, body)
			m, err := wire.Read([]byte(body))
			require.NoError(t, err)
			require.Equal(t, wire.Failure, m.Kind)
			require.Empty(t, got)
		})
	}
}

// What a backend answers that cannot be read, or that leads elsewhere.
func TestAnswersThatCannotBePassedOn(t *testing.T) {
	withheld := failure("1", "-32603", "the answer to this request was malformed and has been withheld")
	for name, answer := range map[string]http.HandlerFunc{
		"compressed": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", typeJSON)
			w.Header().Set("Content-Encoding", "gzip")
			io.WriteString(w, result("1", "{}"))
		},
		"in another encoding": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json; charset=utf-16le")
			io.WriteString(w, result("1", "{}"))
		},
		"of another type": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			io.WriteString(w, result("1", "{}"))
		},
		"elsewhere": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://elsewhere.example/mcp")
			w.WriteHeader(307)
		},
		"too large": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", typeJSON)
			io.WriteString(w, result("1", `"`+string(make([]byte, 2000))+`"`))
		},
		"a request": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", typeJSON)
			io.WriteString(w, request("1", "sampling/createMessage", "{}"))
		},
		"a batch": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", typeJSON)
			io.WriteString(w, "["+result("1", "{}")+"]")
		},
		"an HTTP error with a result": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", typeJSON)
			w.WriteHeader(500)
			io.WriteString(w, `{"Result":{"secret":1},"jsonrpc":"2.0","id":1}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := stage(t, nil, answer, func(o *Options) { o.BackendLimit = 1000 })
			s.posts(call("1", "{}"), 200, withheld)
		})
	}
	t.Run("an event that is too large", func(t *testing.T) {
		backend, _ := answering(200, typeSSE, "data: "+result("1", `"`+string(make([]byte, 2000))+`"`)+"\n\n")
		s := stage(t, nil, backend, func(o *Options) { o.BackendLimit = 1000 })
		s.events(s.do("POST", call("1", "{}"))).gets("data: "+withheld, "")
	})
	t.Run("no stream for one who listens", func(t *testing.T) {
		backend, _ := answering(200, typeJSON, "{}")
		require.Equal(t, 502, stage(t, nil, backend).do("GET", "").StatusCode)
	})
}
