package hosts

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
)

// front stands before an interceptor server, as a proxy does. What spoil returns
// true for, it has answered itself; id is the call's.
func front(t *testing.T, inner http.Handler, spoil func(w http.ResponseWriter, r *http.Request, body, id string) bool) *httptest.Server {
	t.Helper()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		var m struct{ ID json.RawMessage }
		_ = json.Unmarshal(raw, &m)
		if spoil(w, r, string(raw), string(m.ID)) {
			return
		}
		r.Body = io.NopCloser(strings.NewReader(string(raw)))
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	return web
}

// One client's payload that a proxy refuses, or that breaks the connection under
// it, costs no other client a call, and leaves the host in service.
func TestHTTP_oneCallThatGoesWrongIsAlone(t *testing.T) {
	events := func(w http.ResponseWriter) { w.Header().Set("Content-Type", "text/event-stream") }
	answers := func(w http.ResponseWriter) { w.Header().Set("Content-Type", "application/json") }
	broken := []abi.Reason{abi.ReasonUnavailable}
	for name, c := range map[string]struct {
		spoil func(w http.ResponseWriter, id string)
		want  []abi.Reason
	}{
		"forbidden, with a web page": {func(w http.ResponseWriter, _ string) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, "<h1>Request blocked</h1>")
		}, broken},
		"too large":             {func(w http.ResponseWriter, _ string) { w.WriteHeader(http.StatusRequestEntityTooLarge) }, broken},
		"a bad gateway":         {func(w http.ResponseWriter, _ string) { w.WriteHeader(http.StatusBadGateway) }, broken},
		"unauthorised":          {func(w http.ResponseWriter, _ string) { w.WriteHeader(http.StatusUnauthorized) }, broken},
		"nothing at all":        {func(http.ResponseWriter, string) {}, []abi.Reason{abi.ReasonBadOutput}},
		"accepted":              {func(w http.ResponseWriter, _ string) { w.WriteHeader(http.StatusAccepted) }, []abi.Reason{abi.ReasonBadOutput}},
		"the connection breaks": {func(http.ResponseWriter, string) { panic(http.ErrAbortHandler) }, broken},
		"the answer breaks off": {func(w http.ResponseWriter, id string) {
			answers(w)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"type":`, id)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, broken},
		"the answer to somebody else": {func(w http.ResponseWriter, id string) {
			answers(w)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s77,"result":%s}`, id, plainPass)
		}, []abi.Reason{abi.ReasonBadOutput}},
		"a request for an answer": {func(w http.ResponseWriter, id string) {
			answers(w)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"method":"ping"}`, id)
		}, []abi.Reason{abi.ReasonBadOutput}},
		"an error under another status": {func(w http.ResponseWriter, id string) {
			answers(w)
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"no","data":{"reason":"busy"}}}`, id)
		}, []abi.Reason{abi.ReasonBusy}},
		"members twice, in an event": {func(w http.ResponseWriter, id string) {
			events(w)
			fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{},\"result\":%s}\n\n", id, plainPass)
		}, []abi.Reason{abi.ReasonBadOutput}},
		"an event that is no JSON": {func(w http.ResponseWriter, id string) {
			events(w)
			fmt.Fprint(w, "data: hello\n\n")
		}, broken},
		"a stream that ends": {func(w http.ResponseWriter, id string) {
			events(w)
			fmt.Fprint(w, "id: 1\ndata:\n\n: nothing more\n\n")
		}, broken},
		"an event that is too large": {func(w http.ResponseWriter, id string) {
			events(w)
			fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"info\":\"%s\"}}\n\n", id, strings.Repeat("x", MaxAnswer+2*envelopeBytes))
		}, []abi.Reason{abi.ReasonOutputTooLarge}},
		"a stream without an end": {func(w http.ResponseWriter, id string) {
			events(w)
			line := ": " + strings.Repeat("x", 1<<15) + "\n\n"
			for {
				if _, err := io.WriteString(w, line); err != nil {
					return
				}
			}
		}, []abi.Reason{abi.ReasonOutputTooLarge}},
		"a line without an end": {func(w http.ResponseWriter, id string) {
			events(w)
			for {
				if _, err := io.WriteString(w, "event"+strings.Repeat("x", 1<<15)); err != nil {
					return
				}
			}
		}, []abi.Reason{abi.ReasonBadOutput}},
	} {
		t.Run(name, func(t *testing.T) {
			for era, stateless := range map[string]bool{"sessions": false, "stateless": true} {
				t.Run(era, func(t *testing.T) {
					running, release := make(chan struct{}), make(chan struct{})
					inner := serveHTTP(t, script{lists(oneValidator), func(_ context.Context, params json.RawMessage) (string, error) {
						if strings.Contains(string(params), "slow") {
							close(running)
							<-release
						}
						return plainPass, nil
					}}, stateless)
					web := front(t, inner.Config.Handler, func(w http.ResponseWriter, _ *http.Request, body, id string) bool {
						if !strings.Contains(body, "poison") {
							return false
						}
						c.spoil(w, id)
						return true
					})
					h := HTTP("remote", Endpoint{URL: web.URL}, Options{})
					s := NewSet([]*Host{h}, SetOptions{})
					closing(t, s)
					s.Listings(t.Context())
					before := h.source.(*remote).current()
					other := make(chan error, 1)
					go func() {
						_, err := h.Invoke(t.Context(), invocation(`"slow"`))
						other <- err
					}()
					<-running
					for range 3 {
						_, err := h.Invoke(t.Context(), invocation(`"poison"`))
						require.Contains(t, c.want, failed(t, err).Reason, "%v", err)
					}
					close(release)
					require.NoError(t, <-other)
					_, err := h.Invoke(t.Context(), invocation(`{}`))
					require.NoError(t, err)
					require.Same(t, before, h.source.(*remote).current())
					l, _ := s.Listings(t.Context())
					require.NoError(t, l[0].Err)
					require.Equal(t, BreakerClosed, s.Status()[0].Breaker)
				})
			}
		})
	}
}

// What an event stream says before and behind the answer does no harm, and its
// connection is used again.
func TestHTTP_answerInAStream(t *testing.T) {
	peers := make(chan string, 100)
	inner := serveHTTP(t, scripts["plain"], true)
	web := front(t, inner.Config.Handler, func(w http.ResponseWriter, r *http.Request, body, id string) bool {
		if !strings.Contains(body, abi.MethodInvoke) {
			return false
		}
		peers <- r.RemoteAddr
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, ": hello\n\nid: 7\nretry: 1\ndata:\n\nevent: other\ndata: {}\n\n"+
			"data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\n"+
			"data: {\"jsonrpc\":\"2.0\",\"id\":"+id+",\"method\":\"sampling/createMessage\",\"params\":{}}\n\n"+
			"data: {\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":{}}\n\n"+
			"data: {\"jsonrpc\":\"2.0\",\ndata: \"id\":"+id+",\"result\":"+plainPass+"}\n\n: bye\n\n")
		return true
	})
	h := HTTP("remote", Endpoint{URL: web.URL}, Options{})
	defer h.close(t.Context())
	for range 10 {
		r, err := h.Invoke(t.Context(), invocation(`{}`))
		require.NoError(t, err)
		require.True(t, r.Valid)
	}
	close(peers)
	seen := map[string]bool{}
	for peer := range peers {
		seen[peer] = true
	}
	require.Less(t, len(seen), 10)
}

// A session that a restarted server does not know is made anew within the
// attempt that finds out: there is no moment without a list.
func TestHTTP_restartsLeaveNoGap(t *testing.T) {
	for name, stateless := range map[string]bool{"sessions": false, "stateless": true} {
		t.Run(name, func(t *testing.T) {
			restart := make(chan http.Handler, 1)
			current := serveHTTP(t, scripts["plain"], stateless).Config.Handler
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				next := <-restart
				restart <- next
				next.ServeHTTP(w, r)
			}))
			defer web.Close()
			restart <- current
			s := NewSet([]*Host{HTTP("remote", Endpoint{URL: web.URL}, Options{})}, SetOptions{Fresh: time.Millisecond})
			closing(t, s)
			for range 10 {
				<-restart
				restart <- serveHTTP(t, scripts["plain"], stateless).Config.Handler
				for before := s.Status()[0].Attempts; s.Status()[0].Attempts < before+2; {
					l, _ := s.Listings(t.Context())
					require.NoError(t, l[0].Err)
					require.Equal(t, []string{"guard"}, names(l[0]))
				}
			}
			require.Zero(t, s.Status()[0].Failures)
		})
	}
}

// A host that does not know an interceptor any more is asked for its list at
// once, not when the list is a minute old.
func TestSet_aListThatTurnsOutToBeWrongIsFetchedAgain(t *testing.T) {
	over(t, "forgets", Options{}, func(t *testing.T, h *Host) {
		s := NewSet([]*Host{h}, SetOptions{})
		l, _ := s.Listings(t.Context())
		require.Equal(t, []string{"guard"}, names(l[0]))
		_, err := h.Invoke(t.Context(), invocation(`{}`))
		require.Equal(t, abi.ReasonParams, failed(t, err).Reason)
		require.Eventually(t, func() bool {
			l, _ := s.Listings(t.Context())
			return l[0].Err == nil && names(l[0])[0] == "successor"
		}, soon, 5*time.Millisecond)
	})
}

func TestRemote_meta(t *testing.T) {
	const (
		trace  = "4bf92f3577b34da6a3ce929d0e0e4736"
		span   = "00f067aa0ba902b7"
		parent = `"traceparent":"00-` + trace + `-` + span + `-01"`
	)
	traced := &abi.Context{TraceID: trace, SpanID: span}
	request := json.RawMessage("{\"name\":\"t\",\r\n\"n\":1.0,\"h\":\"<&>\\u2028\"}")
	const along = `"io.github.weir-mcp/request":{"name":"t","n":1.0,"h":"<&>\u2028"}`
	for name, c := range map[string]struct {
		o       Options
		phase   abi.Phase
		context *abi.Context
		request json.RawMessage
		want    []string
		not     []string
	}{
		"the trace goes to every host":        {Options{}, abi.Request, traced, nil, []string{parent}, []string{"weir-mcp/request"}},
		"a trace that is none stays":          {Options{}, abi.Request, &abi.Context{TraceID: "t1", SpanID: "s1"}, nil, []string{`"traceId":"t1"`}, []string{"traceparent"}},
		"the request only where it is asked":  {Options{}, abi.Response, nil, request, nil, []string{"weir-mcp/request", "1.0"}},
		"the request along with the response": {Options{Request: true}, abi.Response, traced, request, []string{parent, along}, nil},
		"the request along, bare as it is":    {Options{Request: true, Envelope: true}, abi.Response, nil, request, []string{along}, nil},
		"none along with the request itself":  {Options{Request: true}, abi.Request, nil, request, nil, []string{"weir-mcp/request"}},
		"none where there is none":            {Options{Request: true}, abi.Response, nil, nil, nil, []string{"weir-mcp/request"}},
		"none where both are much":            {Options{Request: true}, abi.Response, nil, json.RawMessage(`"` + strings.Repeat("x", maxWithRequest) + `"`), nil, []string{"weir-mcp/request"}},
	} {
		t.Run(name, func(t *testing.T) {
			over(t, "echo", c.o, func(t *testing.T, h *Host) {
				inv := invocation(`{"content":[]}`)
				inv.Phase, inv.Context, inv.Request = c.phase, c.context, c.request
				r, err := h.Invoke(t.Context(), inv)
				require.NoError(t, err)
				for _, want := range c.want {
					require.Contains(t, string(r.Info), want)
				}
				for _, not := range c.not {
					require.NotContains(t, string(r.Info), not)
				}
			})
		})
	}
}
