package proxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/relay"
	"github.com/weir-mcp/weir/internal/leak"
	"github.com/weir-mcp/weir/internal/mirror"
	"github.com/weir-mcp/weir/internal/wire"
)

// The cases of the field for gateways, under their names.

func TestEveryCaseHasATest(t *testing.T) {
	source, err := os.ReadFile("cases_test.go")
	require.NoError(t, err)
	for _, name := range []string{
		"deleted_field_stays_deleted", "untouched_means_untouched", "duplicate_keys", "subscribe_mutation", "two_sessions_notified",
		"cancelled_call", "progress_and_sampling", "dead_backend", "stale_length", "long_stream", "list_is_governed", "smuggled_lines",
		"reused_id", "unknown_response", "task_result", "embedded_request", "big_body", "orphans",
	} {
		require.Contains(t, string(source), "func Test_"+name+"(")
	}
}

const odd = `{ "name":"x" , "_meta":{"progressToken":9007199254740993,"é":"\ud83d\ude00"},"n":[1.0,1e400,-0],"s":"<>&\u003c\/ \"","z":null,"a":{}}`

func Test_untouched_means_untouched(t *testing.T) {
	answer := `{"id":9007199254740993, "jsonrpc":"2.0","x-more":[1.0] ,"result":` + odd + `}`
	message := "{\"params\":" + odd + ",\n \"x-more\":1.0,\"method\":\"tools/call\",\"id\":9007199254740993,\"jsonrpc\":\"2.0\"}"
	both := map[string]rule{"tools/call request": pass, "tools/call response": pass}
	for name, rules := range map[string]map[string]rule{"nothing governs": nil, "a plan that changes nothing": both} {
		t.Run(name, func(t *testing.T) {
			backend, got := answering(200, "application/json; charset=utf-8", answer)
			s := stage(t, rules, backend)
			s.posts(message, 200, answer)
			require.Equal(t, message, take(t, got).body)
		})
	}
	t.Run("mutated", func(t *testing.T) {
		backend, got := answering(200, typeJSON, answer)
		s := stage(t, map[string]rule{"tools/call request": replace(`{"p":1.0}`), "tools/call response": replace(`{"r":"<"}`)}, backend)
		s.posts(message, 200, strings.Replace(answer, odd, `{"r":"<"}`, 1))
		require.Equal(t, strings.Replace(message, odd, `{"p":1.0}`, 1), take(t, got).body)
	})
	t.Run("as an event", func(t *testing.T) {
		backend, _ := answering(200, typeSSE, "event: message\nid: 1\ndata: "+answer+"\n\n")
		s := stage(t, both, backend)
		s.events(s.do("POST", message)).gets("event: message\nid: 1\ndata: "+answer, "")
	})
}

func Test_duplicate_keys(t *testing.T) {
	for name, c := range map[string]struct{ message, want string }{
		"in params":         {call("1", `{"name":"safe","name":"evil"}`), failure("1", "-32600", "duplicate member name in params")},
		"a batch":           {"[" + call("1", `{}`) + "]", failure("null", "-32600", "batches are not accepted")},
		"Method and method": {`{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call"}`, ""},
		"deep":              {call("1", `{"a":[{"b":1,"b":2}]}`), failure("1", "-32600", "a governed message must not have duplicate member names")},
	} {
		t.Run(name, func(t *testing.T) {
			backend, got := answering(200, typeJSON, result("1", "{}"))
			s := stage(t, map[string]rule{"tools/call request": pass}, backend)
			res := s.do("POST", c.message)
			body := s.read(res)
			require.Equal(t, 400, res.StatusCode)
			m, err := wire.Read([]byte(body))
			require.NoError(t, err)
			require.Equal(t, wire.Failure, m.Kind)
			if strings.Contains(name, "deep") {
				require.Equal(t, c.want, body)
			}
			require.Empty(t, got)
			require.Empty(t, s.governor.operations())
			require.Equal(t, []relay.Cause{relay.BadMessage}, s.watcher.causes())
		})
	}
}

// sessions is a backend of the session era: one stream to listen on for each
// session, whose resources can be subscribed to.
type sessions struct {
	listening chan *listener
	posted    chan seen
}

type listener struct {
	session string
	send    chan string
	gone    <-chan struct{}
}

func newSessions() *sessions {
	return &sessions{listening: make(chan *listener, 10), posted: make(chan seen, 100)}
}

func (b *sessions) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		l := &listener{session: r.Header.Get(mirror.SessionHeader), send: make(chan string), gone: r.Context().Done()}
		w.Header().Set("Content-Type", typeSSE)
		w.(http.Flusher).Flush()
		b.listening <- l
		for {
			select {
			case event, ok := <-l.send:
				if !ok {
					return
				}
				io.WriteString(w, event+"\n\n")
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				return
			}
		}
	}
	body, _ := io.ReadAll(r.Body)
	b.posted <- seen{r, string(body)}
	m, err := wire.Read(body)
	switch {
	case err != nil:
		w.WriteHeader(400)
	case m.Kind != wire.Request:
		w.WriteHeader(202)
	default:
		if m.Method == "initialize" {
			w.Header().Set(mirror.SessionHeader, "s1")
		}
		w.Header().Set("Content-Type", typeJSON)
		io.WriteString(w, result(m.ID.String(), `{"protocolVersion":"2025-11-25"}`))
	}
}

func (l *listener) sends(t *testing.T, event string) {
	t.Helper()
	select {
	case l.send <- event:
	case <-time.After(patience):
		require.FailNow(t, "the backend's stream has ended")
	}
}

func Test_subscribe_mutation(t *testing.T) {
	b := newSessions()
	s := stage(t, map[string]rule{"resources/subscribe request": edit("file:///a", "file:///jail/a")}, b.ServeHTTP)
	stream := s.events(s.do("GET", "", inSession))
	l := take(t, b.listening)
	s.posts(request("1", "resources/subscribe", `{"uri":"file:///a"}`), 200, result("1", `{"protocolVersion":"2025-11-25"}`), inSession)
	require.Equal(t, request("1", "resources/subscribe", `{"uri":"file:///jail/a"}`), take(t, b.posted).body)
	updated := "id: 7\ndata: " + notification("notifications/resources/updated", `{"uri":"file:///jail/a"}`)
	l.sends(t, updated)
	stream.gets(updated)
}

func Test_two_sessions_notified(t *testing.T) {
	b := newSessions()
	s := stage(t, nil, b.ServeHTTP)
	first := s.events(s.do("GET", "", inSession))
	one := take(t, b.listening)
	ctx, leave := context.WithCancel(t.Context())
	second := s.events(s.with(ctx, "GET", "", "Mcp-Session-Id: s2"))
	two := take(t, b.listening)
	changed := "data: " + notification("notifications/tools/list_changed", "{}")
	one.sends(t, changed)
	two.sends(t, changed)
	first.gets(changed)
	second.gets(changed)
	leave()
	select { // the backend sees it go, so none can be sent to it
	case <-two.gone:
	case <-time.After(patience):
		require.FailNow(t, "the backend's stream stays open")
	}
	last := "data: " + notification("notifications/last", "{}")
	one.sends(t, last)
	first.gets(last)
}

func Test_cancelled_call(t *testing.T) {
	cancelled := notification("notifications/cancelled", `{"requestId":7.0}`)
	t.Run("while the backend works", func(t *testing.T) {
		working, done := make(chan struct{}), make(chan struct{})
		b := newSessions()
		s := stage(t, map[string]rule{"tools/call response": pass}, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Slow") == "" {
				b.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Type", typeSSE)
			w.(http.Flusher).Flush()
			close(working)
			<-done
			io.WriteString(w, "data: "+result("7", "{}")+"\n\n")
		})
		stream := s.events(s.do("POST", call("7", "{}"), inSession, "X-Slow: 1"))
		take(t, working)
		s.posts(cancelled, 202, "", inSession)
		require.Equal(t, cancelled, take(t, b.posted).body)
		close(done)
		stream.gets("") // it ends without any answer
		require.Equal(t, []relay.Cause{relay.CancelledResponse}, s.watcher.causes())
		s.posts(call("7", "{}"), 400, failure("7", "-32600", "a request with this id is in flight"), inSession)
	})
	t.Run("while its plan runs", func(t *testing.T) {
		running := make(chan struct{})
		b := newSessions()
		s := stage(t, map[string]rule{"tools/call request": func(ctx context.Context, _ relay.Operation) relay.Decision {
			close(running)
			<-ctx.Done()
			return relay.Decision{Block: &relay.Block{Reason: abi.StatusCancelled}}
		}}, b.ServeHTTP)
		answer := make(chan *http.Response, 1)
		go func() {
			res, err := http.DefaultTransport.RoundTrip(s.request(t.Context(), "POST", call("7", "{}"), inSession))
			if err == nil {
				res.Body.Close()
			}
			answer <- res
		}()
		take(t, running)
		s.posts(cancelled, 202, "", inSession)
		require.Equal(t, 202, take(t, answer).StatusCode)
		require.Empty(t, b.posted, "the backend has heard of neither")
	})
	t.Run("because the client is gone", func(t *testing.T) {
		gone := make(chan struct{})
		s := stage(t, nil, func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", typeSSE)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			close(gone)
		})
		ctx, leave := context.WithCancel(t.Context())
		s.with(ctx, "POST", call("7", "{}"))
		leave()
		take(t, gone)
	})
}

func Test_progress_and_sampling(t *testing.T) {
	progress := func(n int) string {
		return "id: p" + fmt.Sprint(n) + "\ndata: " + notification("notifications/progress", fmt.Sprintf(`{"progressToken":1,"progress":%d}`, n))
	}
	sampling := request(`"s"`, "sampling/createMessage", `{"secret":"x"}`)
	b := newSessions()
	answered := make(chan struct{})
	s := stage(t, map[string]rule{
		"sampling/createMessage request":  edit(`"secret":"x"`, `"secret":"***"`),
		"sampling/createMessage response": edit("bad", "good"),
	}, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Tool") == "" {
			b.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", typeSSE)
		io.WriteString(w, progress(1)+"\n\n"+"id: s\ndata: "+sampling+"\n\n"+progress(2)+"\n\n")
		w.(http.Flusher).Flush()
		<-answered
		io.WriteString(w, "id: r\ndata: "+result("1", "{}")+"\n\n")
	})
	stream := s.events(s.do("POST", call("1", "{}"), inSession, "X-Tool: 1"))
	stream.gets(progress(1), "id: s\ndata: "+request(`"s"`, "sampling/createMessage", `{"secret":"***"}`), progress(2))
	s.posts(result(`"s"`, `{"text":"bad"}`), 202, "", inSession)
	require.Equal(t, result(`"s"`, `{"text":"good"}`), take(t, b.posted).body)
	close(answered)
	stream.gets("id: r\ndata: "+result("1", "{}"), "")
	ops := s.governor.operations()
	require.Len(t, ops, 2)
	require.Equal(t, abi.Receiving, ops[0].Direction)
	require.Equal(t, abi.Sending, ops[1].Direction)
	require.Equal(t, relay.Backend, ops[1].Initiator)
	require.Equal(t, relay.SessionName("s1"), ops[0].Session)
	require.JSONEq(t, `{"secret":"***"}`, string(ops[1].Request))
}

// A request of the backend that is blocked is answered to the backend; the client
// sees nothing of it, but its place in the stream.
func Test_progress_and_sampling_blocked(t *testing.T) {
	b := newSessions()
	s := stage(t, map[string]rule{"sampling/createMessage request": block}, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if !bytes.Contains(body, []byte("tools/call")) {
			r.Body = io.NopCloser(bytes.NewReader(body))
			b.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", typeSSE)
		io.WriteString(w, "id: s\ndata: "+request(`"s"`, "sampling/createMessage", `{}`)+"\n\n"+"data: "+result("1", "{}")+"\n\n")
	})
	s.events(s.do("POST", call("1", "{}"), inSession, "Mcp-Method: tools/call")).gets("id: s", "data: "+result("1", "{}"), "")
	got := take(t, b.posted)
	m, err := wire.Read([]byte(got.body))
	require.NoError(t, err)
	require.Equal(t, `"s"`, m.ID.String())
	require.Equal(t, wire.Failure, m.Kind)
	require.Equal(t, "s1", got.Header.Get(mirror.SessionHeader))
	require.Empty(t, got.Header.Get(mirror.MethodHeader))
}

// die breaks the connection.
func die(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		conn.Close()
	}
}

const gone = "the backend is gone; the request may or may not have been carried out"

func Test_dead_backend(t *testing.T) {
	t.Run("before it answers", func(t *testing.T) {
		s := stage(t, nil, func(w http.ResponseWriter, r *http.Request) { die(w) })
		s.posts(call("7.0", "{}"), 200, failure("7.0", "-32603", gone))
		s.posts(notification("notifications/x", "{}"), 502, failure("null", "-32603", gone))
	})
	t.Run("in the middle of JSON", func(t *testing.T) {
		s := stage(t, nil, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", typeJSON)
			w.Header().Set("Content-Length", "1000")
			io.WriteString(w, `{"jsonrpc":"2.0","id":1,`)
		})
		s.posts(call("1", "{}"), 200, failure("1", "-32603", gone))
	})
	for name, end := range map[string]func(http.ResponseWriter){
		"in the middle of a stream": func(w http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"at the end of a stream":    func(http.ResponseWriter) {},
	} {
		t.Run(name, func(t *testing.T) {
			s := stage(t, nil, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", typeSSE)
				io.WriteString(w, ": hello\n\n")
				w.(http.Flusher).Flush()
				end(w)
			})
			s.events(s.do("POST", call("1", "{}"))).gets(": hello", "event: message\ndata: "+failure("1", "-32603", gone), "")
		})
	}
	t.Run("with an empty success", func(t *testing.T) {
		for _, status := range []int{200, 202, 204} {
			backend, _ := answering(status, "", "")
			s := stage(t, nil, backend)
			s.posts(call("1", "{}"), 200, failure("1", "-32603", "the answer to this request was malformed and has been withheld"))
		}
	})
	t.Run("not at all there", func(t *testing.T) {
		s := stage(t, nil, nil, func(o *Options) { o.Backend = "http://127.0.0.1:1/mcp" })
		s.posts(call("1", "{}"), 200, failure("1", "-32603", gone))
		require.Equal(t, 502, s.do("GET", "").StatusCode)
		require.Equal(t, 502, s.do("DELETE", "", inSession).StatusCode)
	})
	t.Run("its session is gone", func(t *testing.T) {
		lost := false
		b := newSessions()
		s := stage(t, nil, func(w http.ResponseWriter, r *http.Request) {
			if lost && r.Header.Get(mirror.SessionHeader) == "s1" {
				http.Error(w, "no such session", 404)
				return
			}
			b.ServeHTTP(w, r)
		})
		ok := result("1", `{"protocolVersion":"2025-11-25"}`)
		s.posts(request("1", "initialize", "{}"), 200, ok)
		require.Equal(t, 1, s.proxy.scopes.size())
		lost = true
		res := s.do("POST", call("1", "{}"), inSession)
		require.Equal(t, 404, res.StatusCode)
		require.Equal(t, "no such session\n", s.read(res))
		require.Zero(t, s.proxy.scopes.size())
		s.posts(request("1", "initialize", "{}"), 200, ok)
		s.posts(call("1", "{}"), 200, ok, "Mcp-Session-Id: s2")
	})
}

func Test_stale_length(t *testing.T) {
	for name, to := range map[string]string{"longer": strings.Repeat("x", 5000), "shorter": "x", "no header text": "ü "} {
		t.Run(name, func(t *testing.T) {
			backend, got := answering(200, typeJSON, result("1", `{"text":"some"}`))
			s := stage(t, map[string]rule{"tools/call request": edit("some", to), "tools/call response": edit("some", to)}, backend)
			res := s.posts(call("1", `{"name":"some","arguments":{"region":"some","n":3}}`), 200, result("1", `{"text":"`+to+`"}`),
				"Mcp-Method: tools/call", "Mcp-Name: some", "Mcp-Param-Region: some", "Mcp-Param-Count: 3", "Digest: x")
			require.Equal(t, int64(len(result("1", `{"text":"`+to+`"}`))), res.ContentLength)
			r := take(t, got)
			require.Equal(t, call("1", `{"name":"`+to+`","arguments":{"region":"`+to+`","n":3}}`), r.body)
			require.Equal(t, int64(len(r.body)), r.ContentLength)
			require.Equal(t, "tools/call", r.Header.Get(mirror.MethodHeader))
			require.Equal(t, mirror.Encode(to), r.Header.Get(mirror.NameHeader))
			require.Equal(t, mirror.Encode(to), r.Header.Get("Mcp-Param-Region"))
			require.Equal(t, "3", r.Header.Get("Mcp-Param-Count"))
			require.Empty(t, r.Header.Get("Digest"))
		})
	}
}

// Ten minutes of silence but for comments, and an empty event first.
func Test_long_stream(t *testing.T) {
	const minutes = 10
	first := "id: 0\nretry: 500\ndata: "
	synctest.Test(t, func(t *testing.T) {
		read, write := io.Pipe()
		p, err := New(Options{Backend: "http://backend/mcp", Transport: backendStream(read)})
		require.NoError(t, err)
		seen, out := io.Pipe()
		w := &pipeWriter{PipeWriter: out, h: http.Header{}}
		r, err := http.NewRequestWithContext(t.Context(), "POST", "/mcp", strings.NewReader(call("1", "{}")))
		require.NoError(t, err)
		r.Header.Set("Content-Type", typeJSON)
		go func() {
			p.ServeHTTP(w, r)
			out.Close()
		}()
		e := &events{t, newReader(seen)}
		go io.WriteString(write, first+"\n\n")
		e.gets(first)
		for range minutes * 60 / 15 {
			time.Sleep(15 * time.Second)
			go io.WriteString(write, ": keep-alive\n\n")
			e.gets(": keep-alive")
		}
		go func() {
			io.WriteString(write, "data: "+result("1", "{}")+"\n\n")
			write.Close()
		}()
		e.gets("data: "+result("1", "{}"), "")
		p.Close()
	})
}

func Test_list_is_governed(t *testing.T) {
	backend, _ := answering(200, typeJSON, `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a"},{"name":"evil"}],"nextCursor":"2","cacheScope":"public","ttlMs":60000}}`)
	s := stage(t, map[string]rule{
		"tools/list response": func(_ context.Context, op relay.Operation) relay.Decision {
			return relay.Decision{Payload: []byte(strings.Replace(string(op.Payload), `,{"name":"evil"}`, "", 1)), Uncacheable: true}
		},
		"tools/call request": block,
	}, backend)
	want := result("1", `{"tools":[{"name":"a"}],"nextCursor":"2","cacheScope":"private","ttlMs":0}`)
	s.posts(request("1", "tools/list", "{}"), 200, want)
	s.posts(request("1", "tools/list", `{"cursor":"2"}`), 200, want)
	res := s.do("POST", call("1", `{"name":"evil"}`))
	require.Equal(t, 200, res.StatusCode)
	require.Contains(t, s.read(res), `"code":-32602,"message":"blocked by an interceptor"`)
}

func Test_smuggled_lines(t *testing.T) {
	evil := "\n" + call("666", `{"name":"evil"}`) + "\r\n"
	pretty := "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{\"x\":" + evil + "}}"
	answer := "{\"jsonrpc\":\"2.0\",\r\n\"id\":1,\"result\":{\"x\":" + evil + "}}"
	t.Run("from a client", func(t *testing.T) {
		backend, got := answering(200, typeJSON, result("1", "{}"))
		s := stage(t, nil, backend)
		s.posts(pretty, 200, result("1", "{}"))
		require.Equal(t, pretty, take(t, got).body)
		require.Empty(t, got)
	})
	oneLine := "data: " + strings.NewReplacer("\r", "", "\n", "").Replace(answer)
	t.Run("from a backend", func(t *testing.T) {
		split := "data: " + strings.ReplaceAll(strings.ReplaceAll(answer, "\r\n", "\n"), "\n", "\ndata: ")
		backend, _ := answering(200, typeSSE, split+"\n\n")
		s := stage(t, nil, backend)
		s.events(s.do("POST", pretty)).gets(oneLine, "")
	})
	t.Run("from a mutator", func(t *testing.T) {
		backend, _ := answering(200, typeSSE, "data: "+result("1", "{}")+"\n\n")
		s := stage(t, map[string]rule{"x/y response": replace("{\"x\":" + evil + "}")}, backend)
		s.events(s.do("POST", request("1", "x/y", "{}"))).gets("data: "+strings.NewReplacer("\r", "", "\n", "").Replace(result("1", "{\"x\":"+evil+"}")), "")
	})
}

func Test_reused_id(t *testing.T) {
	working, done := make(chan seen, 10), make(chan struct{})
	s := stage(t, nil, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		working <- seen{r, string(b)}
		m, _ := wire.Read(b)
		<-done
		w.Header().Set("Content-Type", typeJSON)
		io.WriteString(w, result(m.ID.String(), "{}"))
	})
	answers := make(chan string, 3)
	post := func(id string, headers ...string) {
		res, err := http.DefaultTransport.RoundTrip(s.request(t.Context(), "POST", call(id, "{}"), headers...))
		if err != nil {
			answers <- err.Error()
			return
		}
		b, _ := io.ReadAll(res.Body)
		res.Body.Close()
		answers <- string(b)
	}
	go post("7", inSession)
	take(t, working)
	for _, id := range []string{"7", "7.0", "0.7e1"} {
		s.posts(request(id, "ping", "{}"), 400, failure(id, "-32600", "a request with this id is in flight"), inSession)
	}
	go post("9007199254740993", inSession)
	take(t, working)
	// Another session, and no session at all, are scopes of their own.
	go post("7", "Mcp-Session-Id: s2")
	take(t, working)
	close(done)
	got := []string{take(t, answers), take(t, answers), take(t, answers)}
	require.ElementsMatch(t, []string{result("7", "{}"), result("7", "{}"), result("9007199254740993", "{}")}, got)
	// Answered, it is free again.
	s.posts(call("7", "{}"), 200, result("7", "{}"), inSession)
}

func Test_reused_id_without_a_session(t *testing.T) {
	working, done := make(chan struct{}, 2), make(chan struct{})
	s := stage(t, nil, func(w http.ResponseWriter, r *http.Request) {
		working <- struct{}{}
		<-done
		w.Header().Set("Content-Type", typeJSON)
		io.WriteString(w, result("7", "{}"))
	})
	answers := make(chan int, 2)
	for range 2 {
		go func() {
			res, err := http.DefaultTransport.RoundTrip(s.request(t.Context(), "POST", call("7", "{}")))
			if err != nil {
				answers <- 0
				return
			}
			res.Body.Close()
			answers <- res.StatusCode
		}()
		take(t, working)
	}
	close(done)
	require.Equal(t, []int{200, 200}, []int{take(t, answers), take(t, answers)})
}

func Test_unknown_response(t *testing.T) {
	t.Run("of a client", func(t *testing.T) {
		b := newSessions()
		s := stage(t, nil, b.ServeHTTP)
		s.posts(result("5", "{}"), 202, "", inSession)
		s.posts(result("5", "{}"), 202, "")
		require.Empty(t, b.posted)
		require.Equal(t, []relay.Cause{relay.UnknownResponse, relay.UnknownResponse}, s.watcher.causes())
		require.Zero(t, s.proxy.scopes.size(), "a session that the backend has not confirmed is not kept")
	})
	t.Run("on a stream to listen on", func(t *testing.T) {
		b := newSessions()
		s := stage(t, nil, b.ServeHTTP)
		stream := s.events(s.do("GET", "", inSession))
		l := take(t, b.listening)
		l.sends(t, "id: 1\ndata: "+result("5", "{}"))
		l.sends(t, ": end")
		stream.gets("id: 1", ": end")
		require.Equal(t, []relay.Cause{relay.UnknownResponse}, s.watcher.causes())
	})
	t.Run("of another request", func(t *testing.T) {
		backend, _ := answering(200, typeJSON, result("2", "{}"))
		s := stage(t, nil, backend)
		s.posts(call("1", "{}"), 200, failure("1", "-32603", "the answer to this request was malformed and has been withheld"))
	})
	t.Run("a stream resumed at another replica", func(t *testing.T) {
		b := newSessions()
		s := stage(t, nil, b.ServeHTTP)
		for _, headers := range [][]string{
			{inSession, "Last-Event-ID: 1"}, {"Last-Event-ID: 1"},
		} {
			res := s.do("GET", "", headers...)
			require.Equal(t, 404, res.StatusCode)
		}
		// It knows the session, but relayed no stream with that event.
		s.posts(call("1", "{}"), 200, result("1", `{"protocolVersion":"2025-11-25"}`), inSession)
		require.Equal(t, 404, s.do("GET", "", inSession, "Last-Event-ID: 1").StatusCode)
		require.Empty(t, b.listening)
	})
}

func Test_task_result(t *testing.T) {
	s := stage(t, map[string]rule{"tools/call response": edit("secret", "***")}, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		m, _ := wire.Read(b)
		w.Header().Set("Content-Type", typeJSON)
		switch m.Method {
		case "tools/call":
			io.WriteString(w, result(m.ID.String(), `{"task":{"taskId":"t"}}`))
		case "tasks/get":
			io.WriteString(w, result(m.ID.String(), `{"taskId":"t","status":"completed","result":{"text":"secret"}}`))
		case "tasks/result":
			io.WriteString(w, result(m.ID.String(), `{"text":"secret"}`))
		}
	})
	for _, headers := range [][]string{{inSession}, nil} {
		s.posts(call("1", `{"task":{}}`), 200, result("1", `{"task":{"taskId":"t"}}`), headers...)
		s.posts(request("2", "tasks/result", `{"taskId":"t"}`), 200, result("2", `{"text":"***"}`), headers...)
		s.posts(request("3", "tasks/get", `{"taskId":"t"}`), 200, result("3", `{"taskId":"t","status":"completed","result":{"text":"***"}}`), headers...)
	}
}

func Test_embedded_request(t *testing.T) {
	answer := result("1", `{"resultType":"inputRequired","inputRequests":{"k":{"method":"sampling/createMessage","params":{"secret":"x"}}}}`)
	t.Run("mutated", func(t *testing.T) {
		backend, got := answering(200, typeJSON, answer)
		s := stage(t, map[string]rule{"sampling/createMessage request": edit("x", "***"), "sampling/createMessage response": edit("bad", "good")}, backend)
		s.posts(call("1", "{}"), 200, strings.Replace(answer, `"x"`, `"***"`, 1))
		take(t, got)
		s.posts(call("1", `{"inputResponses":{"k":{"role":"bad"}}}`), 200, strings.Replace(answer, `"x"`, `"***"`, 1))
		require.Equal(t, call("1", `{"inputResponses":{"k":{"role":"good"}}}`), take(t, got).body)
	})
	t.Run("blocked", func(t *testing.T) {
		backend, _ := answering(200, typeJSON, answer)
		s := stage(t, map[string]rule{"sampling/createMessage request": block}, backend)
		res := s.do("POST", call("1", "{}"))
		body := s.read(res)
		require.Equal(t, 200, res.StatusCode)
		require.Contains(t, body, `"error":{"code":-32602`)
		require.Contains(t, body, `"event":"sampling/createMessage"`)
		require.NotContains(t, body, "secret")
	})
}

func Test_big_body(t *testing.T) {
	backend, got := answering(200, typeJSON, result("1", "{}"))
	s := stage(t, nil, backend)
	big := call("1", `{"x":"`+strings.Repeat("x", 5<<20)+`"}`)
	want := failure("1", "-32600", "the message is larger than the gateway accepts")
	s.posts(big, 413, want, inSession)
	res, err := http.DefaultTransport.RoundTrip(func() *http.Request {
		r := s.request(t.Context(), "POST", big, inSession)
		r.ContentLength = -1
		return r
	}())
	require.NoError(t, err)
	require.Equal(t, 413, res.StatusCode)
	require.Equal(t, want, s.read(res))
	res.Body.Close()
	require.Empty(t, got)
	s.posts(call("1", "{}"), 200, result("1", "{}"), inSession)
	require.Equal(t, []relay.Cause{relay.TooLarge, relay.TooLarge}, s.watcher.causes())
}

func Test_orphans(t *testing.T) {
	leak.Descriptors(t)
	b := newSessions()
	s := stage(t, nil, b.ServeHTTP, func(o *Options) { o.Idle = 50 * time.Millisecond })
	var gone []<-chan struct{}
	for i := range 100 {
		id := fmt.Sprintf("Mcp-Session-Id: o%d", i)
		s.posts(call("1", "{}"), 200, result("1", `{"protocolVersion":"2025-11-25"}`), id)
		take(t, b.posted)
		ctx, leave := context.WithCancel(t.Context())
		s.with(ctx, "GET", "", id)
		gone = append(gone, take(t, b.listening).gone)
		leave()
	}
	for _, g := range gone {
		select {
		case <-g:
		case <-time.After(patience):
			require.FailNow(t, "a stream of the backend stays open")
		}
	}
	require.Eventually(t, func() bool { return s.proxy.scopes.size() == 0 }, patience, time.Millisecond)
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

func Test_deleted_field_stays_deleted(t *testing.T) {
	full := result("1", `{"content":[],"structuredContent":{"a":1},"_meta":{"k":1,"l":2}}`)
	less := `{"content":[],"_meta":{"l":2}}`
	for _, kind := range []string{typeJSON, typeSSE} {
		body, want := full, result("1", less)
		if kind == typeSSE {
			body, want = "data: "+full+"\n\n", "data: "+want+"\n\n"
		}
		backend, _ := answering(200, kind, body)
		s := stage(t, map[string]rule{"tools/call response": replace(less)}, backend)
		s.posts(call("1", "{}"), 200, want)
	}
}
