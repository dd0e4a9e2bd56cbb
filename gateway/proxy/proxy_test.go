package proxy

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/mirror"
)

func TestNewSaysWhatIsWrongWithTheBackend(t *testing.T) {
	for url, want := range map[string]string{
		"":                        `the backend's URL must be http:// or https:// with a host, not ""`,
		"stdio:server":            "must be http:// or https://",
		"http:///mcp":             "with a host",
		"http://ann:secret@x/mcp": "must not hold a user or password",
		"http://x:y:secret/%zz":   "cannot be parsed",
		"ftp://ann:secret@x/mcp":  "must be http:// or https://",
	} {
		_, err := New(Options{Backend: url})
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "secret")
	}
}

func TestMethods(t *testing.T) {
	backend, got := answering(204, "", "")
	s := stage(t, nil, backend)
	for _, method := range []string{"PUT", "PATCH", "HEAD", "TRACE", "BREW"} {
		res := s.do(method, "")
		require.Equal(t, 405, res.StatusCode, method)
		require.Equal(t, "GET, POST, DELETE, OPTIONS", res.Header.Get("Allow"))
	}
	require.Empty(t, got)
	require.Equal(t, 204, s.do("OPTIONS", "", "Origin: http://x", "Mcp-Session-Id: somebody's", "Last-Event-Id: 7").StatusCode)
	asked := take(t, got).Header
	require.Equal(t, "http://x", asked.Get("Origin"))
	require.Empty(t, asked.Get("Mcp-Session-Id"), "nobody has looked whose it is")
	require.Empty(t, asked.Get("Last-Event-Id"))
}

func TestTheQueryGoesAlong(t *testing.T) {
	backend, got := answering(200, typeJSON, result("1", "{}"))
	s := stage(t, nil, backend, func(o *Options) { o.Backend += "?key=1" })
	s.url += "?a=b&c"
	s.posts(call("1", "{}"), 200, result("1", "{}"))
	require.Equal(t, "key=1&a=b&c", take(t, got).URL.RawQuery)
}

// Clients look for who authorises them beside the endpoint.
func TestMetadata(t *testing.T) {
	for name, c := range map[string]struct {
		method, ask, path string
		status            int
	}{
		"of the endpoint":    {"GET", "/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource/api/mcp", 200},
		"of the host":        {"GET", "/.well-known/oauth-protected-resource?x=y", "/.well-known/oauth-protected-resource", 200},
		"of something below": {"GET", "/.well-known/a/b/mcp", "/.well-known/a/b/mcp", 200},
		"elsewhere":          {"GET", "/.well-known/../admin", "", 404},
		"elsewhere, hidden":  {"GET", "/.well-known/%2e%2e/admin", "", 404},
		"not read":           {"POST", "/.well-known/x", "", 405},
	} {
		t.Run(name, func(t *testing.T) {
			backend, got := answering(200, typeJSON, `{"resource":"r"}`)
			s := stage(t, nil, backend, func(o *Options) {
				o.Backend = strings.Replace(o.Backend, "/mcp", "/api/mcp?key=secret", 1)
				o.Headers = http.Header{"Authorization": {"Bearer secret"}}
			})
			r := s.request(t.Context(), c.method, "")
			r.URL.Opaque = "//" + r.URL.Host + c.ask
			res, err := http.DefaultTransport.RoundTrip(r)
			require.NoError(t, err)
			defer res.Body.Close()
			require.Equal(t, c.status, res.StatusCode)
			if c.path == "" {
				require.Empty(t, got)
				return
			}
			require.Equal(t, `{"resource":"r"}`, s.read(res))
			seen := take(t, got)
			require.Equal(t, c.path, seen.URL.Path)
			require.NotContains(t, seen.URL.RawQuery, "secret")
			require.Empty(t, seen.Header.Get("Authorization"), "whoever asks gets it")
		})
	}
}

func TestShutdownLetsCallsFinishAndEndsStreams(t *testing.T) {
	working, finish := make(chan struct{}), make(chan struct{})
	b := newSessions()
	s := stage(t, nil, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Listen") != "" {
			w.Header().Set("Content-Type", typeSSE)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return
		}
		if r.Header.Get("X-Slow") != "" {
			close(working)
			<-finish
			w.Header().Set("Content-Type", typeJSON)
			io.WriteString(w, result("1", "{}"))
			return
		}
		b.ServeHTTP(w, r)
	})
	listening := s.events(s.do("GET", "", inSession))
	take(t, b.listening)
	subscribed := s.events(s.do("POST", request("5", "subscriptions/listen", "{}"), "X-Listen: 1"))
	answer := make(chan string, 1)
	go func() {
		res, err := http.DefaultTransport.RoundTrip(s.request(t.Context(), "POST", call("1", "{}"), "X-Slow: 1"))
		if err != nil {
			answer <- err.Error()
			return
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		answer <- string(body)
	}()
	take(t, working)
	done := make(chan error, 1)
	go func() { done <- s.proxy.Shutdown(t.Context()) }()
	listening.gets("")
	require.Contains(t, subscribed.next(), `"id":5,"error"`)
	res := s.do("POST", call("2", "{}"))
	require.Equal(t, 503, res.StatusCode)
	require.Equal(t, "1", res.Header.Get("Retry-After"))
	close(finish)
	require.Equal(t, result("1", "{}"), take(t, answer))
	require.NoError(t, take(t, done))
	require.NoError(t, s.proxy.Shutdown(t.Context()), "twice is once")
}

func TestShutdownCutsOffWhatTakesTooLong(t *testing.T) {
	working := make(chan struct{})
	s := stage(t, nil, func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		close(working)
		<-r.Context().Done()
	})
	answer := make(chan string, 1)
	go func() {
		res, err := http.DefaultTransport.RoundTrip(s.request(t.Context(), "POST", call("1", "{}")))
		if err != nil {
			answer <- err.Error()
			return
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		answer <- string(body)
	}()
	take(t, working)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.proxy.Shutdown(ctx), context.Canceled)
	require.Equal(t, failure("1", "-32603", "the backend is gone; the request may or may not have been carried out"), take(t, answer))
}

func TestSessionsAreBounded(t *testing.T) {
	b := newSessions()
	ok := result("1", `{"protocolVersion":"2025-11-25"}`)
	s := stage(t, nil, b.ServeHTTP, func(o *Options) { o.Sessions = 2 })
	stream := s.events(s.do("GET", "", "Mcp-Session-Id: a"))
	l := take(t, b.listening)
	s.posts(call("1", "{}"), 200, ok, "Mcp-Session-Id: b")
	require.Equal(t, 2, s.proxy.Sessions())
	// The one that is idle makes room.
	s.posts(call("1", "{}"), 200, ok, "Mcp-Session-Id: c")
	require.Equal(t, 2, s.proxy.Sessions())
	s.do("GET", "", "Mcp-Session-Id: c")
	take(t, b.listening)
	res := s.do("POST", call("1", "{}"), "Mcp-Session-Id: d")
	require.Equal(t, 503, res.StatusCode)
	require.Equal(t, "10", res.Header.Get("Retry-After"))
	require.Equal(t, 503, s.do("POST", request("1", "initialize", "{}")).StatusCode, "before the backend opens one")
	s.posts(call("1", "{}"), 200, ok) // without a session there is always room
	require.Equal(t, 404, s.do("POST", call("1", "{}"), "Mcp-Session-Id: "+strings.Repeat("x", longSessionID+1)).StatusCode)
	l.sends(t, "data: "+notification("notifications/x", "{}"))
	stream.gets("data: " + notification("notifications/x", "{}"))
	require.Equal(t, 2, s.proxy.Sessions())
}

func TestASessionEnds(t *testing.T) {
	b := newSessions()
	ok := result("1", `{"protocolVersion":"2025-11-25"}`)
	s := stage(t, nil, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			if r.Header.Get("X-No") != "" {
				w.WriteHeader(405)
			}
			return
		}
		b.ServeHTTP(w, r)
	})
	s.posts(request("1", "initialize", "{}"), 200, ok)
	require.Equal(t, 1, s.proxy.Sessions())
	require.Equal(t, 405, s.do("DELETE", "", inSession, "X-No: 1").StatusCode)
	require.Equal(t, 1, s.proxy.Sessions(), "the backend keeps it")
	require.Equal(t, 200, s.do("DELETE", "", inSession).StatusCode)
	require.Zero(t, s.proxy.Sessions())
}

func TestTooManyCancelledRequestsEndTheSession(t *testing.T) {
	release := make(chan struct{})
	b := newSessions()
	s := stage(t, nil, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Slow") == "" {
			b.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", typeSSE)
		w.(http.Flusher).Flush()
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}, func(o *Options) { o.Relay.Limits.Marks = 2 })
	defer close(release)
	for i, status := range []int{202, 202, 404} {
		id := string(rune('1' + i))
		s.events(s.do("POST", call(id, "{}"), inSession, "X-Slow: 1"))
		require.Equal(t, status, s.do("POST", notification("notifications/cancelled", `{"requestId":`+id+`}`), inSession).StatusCode)
	}
	require.Equal(t, 404, s.do("POST", call("9", "{}"), inSession).StatusCode)
}

// An idle session is forgotten; one in which an answer is owed is kept for longer.
func TestIdleSessionsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := New(Options{Backend: "http://backend/mcp", Idle: time.Minute, Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			body, kind := result("1", "{}"), typeJSON
			if r.Header.Get(mirror.SessionHeader) == "owing" {
				body, kind = "id: 1\ndata: \n\n", typeSSE
			}
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: -1}, nil
		})})
		require.NoError(t, err)
		for _, id := range []string{"idle", "owing"} {
			r, err := http.NewRequestWithContext(t.Context(), "POST", "/mcp", strings.NewReader(call("1", "{}")))
			require.NoError(t, err)
			r.Header.Set(mirror.SessionHeader, id)
			p.ServeHTTP(&discard{h: http.Header{}}, r)
		}
		require.Equal(t, 2, p.Sessions())
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		require.Equal(t, 1, p.Sessions())
		time.Sleep(owed * time.Minute)
		synctest.Wait()
		require.Zero(t, p.Sessions())
		p.Close()
	})
}

// A session that a caller makes up takes the place of none, and none of it stays.
func TestMadeUpSessionsTakeNoRoom(t *testing.T) {
	backend, _ := answering(404, "text/plain", "no such session")
	s := stage(t, nil, backend)
	for i := range 50 {
		s.posts(call("1", "{}"), 404, "no such session", "Mcp-Session-Id: "+strings.Repeat("x", i+1))
	}
	require.Zero(t, s.proxy.Sessions())
	s.as(&abi.Principal{Type: abi.PrincipalUser, ID: "ann"})
	require.Equal(t, "session not found\n", s.read(s.do("POST", call("1", "{}"), inSession)), "where callers are known, a session is somebody's")
}

func TestTroubleIsLoggedAndDoesNotFillTheLog(t *testing.T) {
	var log bytes.Buffer
	elsewhere := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTemporaryRedirect) }
	s := stage(t, nil, elsewhere, func(o *Options) { o.Relay.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	for range 300 {
		s.read(s.do("POST", call("1", "{}")))
	}
	require.Equal(t, 102, strings.Count(log.String(), "the backend redirects"))
}
