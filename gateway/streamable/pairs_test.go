package streamable_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/proxy"
	"github.com/weir-mcp/weir/gateway/relay"
	"github.com/weir-mcp/weir/gateway/streamable"
	"github.com/weir-mcp/weir/internal/leak"
	"github.com/weir-mcp/weir/internal/wire"
)

// The rows of field-cases.md "Gateway" that are about messages, by their names,
// over every pair of transports. Those about a transport are beside it.

// rules say what is decided, by "event phase".
type rules map[string]func(context.Context, relay.Operation) relay.Decision

func (r rules) Governs(sc relay.Scope) bool {
	for key := range r {
		event, phase, _ := strings.Cut(key, " ")
		if phase == string(sc.Phase) && (sc.Event == relay.AnyEvent || sc.Event == event) {
			return true
		}
	}
	return false
}

func (r rules) Govern(ctx context.Context, op relay.Operation) relay.Decision {
	if decide := r[op.Event+" "+string(op.Phase)]; decide != nil {
		return decide(ctx, op)
	}
	return relay.Decision{}
}

func letPass(context.Context, relay.Operation) relay.Decision { return relay.Decision{} }

func forbid(context.Context, relay.Operation) relay.Decision {
	return relay.Decision{Block: &relay.Block{Reason: abi.StatusValidationFailed}}
}

func putting(payload string) func(context.Context, relay.Operation) relay.Decision {
	return func(context.Context, relay.Operation) relay.Decision {
		return relay.Decision{Payload: json.RawMessage(payload)}
	}
}

func exchanging(old, new string) func(context.Context, relay.Operation) relay.Decision {
	return func(_ context.Context, op relay.Operation) relay.Decision {
		return relay.Decision{Payload: bytes.ReplaceAll(op.Payload, []byte(old), []byte(new))}
	}
}

// scripted is a backend that writes down what reaches it and says what it is told
// to, over stdio or HTTP.
type scripted struct {
	got chan string

	mu     sync.Mutex
	says   [][]string // to what comes next, and after it
	stream chan string
	lines  io.Writer
}

// next is what is said to a message.
func (b *scripted) next(message []byte) []string {
	m, err := wire.Read(message)
	if err != nil {
		return nil
	}
	switch m.Method {
	case "initialize":
		return []string{`{"jsonrpc":"2.0","id":` + m.ID.String() + `,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"b","version":"1"}}}`}
	case "notifications/initialized":
		return nil
	case "ping":
		return []string{`{"jsonrpc":"2.0","id":` + m.ID.String() + `,"result":{}}`}
	}
	b.got <- string(message)
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.says) == 0 {
		return nil
	}
	says := b.says[0]
	b.says = b.says[1:]
	return says
}

// say sends something at once: on the stream of the last request, where there are
// streams.
func (b *scripted) say(messages ...string) {
	b.mu.Lock()
	stream, lines := b.stream, b.lines
	b.mu.Unlock()
	for _, m := range messages {
		if stream != nil {
			stream <- m
		} else {
			_, _ = io.WriteString(lines, string(wire.Flat(nil, []byte(m)))+"\n")
		}
	}
}

// overLines serves one session on stdio.
func (b *scripted) overLines(in io.Reader, out io.WriteCloser) {
	defer out.Close()
	b.mu.Lock()
	b.lines = out
	b.mu.Unlock()
	for lines := bufio.NewReaderSize(in, 8<<20); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		b.say(b.next(bytes.TrimSuffix(line, []byte("\n")))...)
	}
}

// ServeHTTP serves the same over HTTP: what is said to a request goes out on its
// stream, and so does what is said until it is answered.
func (b *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body, _ := io.ReadAll(r.Body)
	m, err := wire.Read(body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if m.Kind != wire.Request {
		says := b.next(body)
		w.WriteHeader(http.StatusAccepted)
		b.say(says...)
		return
	}
	w.Header().Set("Mcp-Session-Id", "s1")
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	stream := make(chan string, 100)
	if m.Method != "ping" && m.Method != "initialize" {
		b.mu.Lock()
		b.stream = stream
		b.mu.Unlock()
	}
	for _, said := range b.next(body) {
		stream <- said
	}
	w.(http.Flusher).Flush()
	for {
		select {
		case said := <-stream:
			var event strings.Builder
			for line := range strings.SplitSeq(said, "\n") {
				event.WriteString("data: " + line + "\n")
			}
			_, _ = io.WriteString(w, event.String()+"\n")
			w.(http.Flusher).Flush()
			if a, err := wire.Read([]byte(said)); err == nil && a.Kind != wire.Request && a.Kind != wire.Notification && a.ID.Equal(m.ID) {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}

// linked is a scripted client with what it has received.
type linked struct {
	t       *testing.T
	backend *scripted
	gets    chan string
	// send sends a message. Its HTTP status comes by the channel, 0 on stdio.
	send func(message string) <-chan int
	http bool
}

// pairs are all there are.
var pairs = []struct {
	name                  string
	frontHTTP, behindHTTP bool
}{
	{"stdio to stdio", false, false},
	{"stdio to HTTP", false, true},
	{"HTTP to stdio", true, false},
	{"HTTP to HTTP", true, true},
}

const bodyLimit = 4 << 20

// link puts a relay with rules between a client and a backend.
func link(t *testing.T, frontHTTP, behindHTTP bool, governor relay.Governor) *linked {
	t.Helper()
	leak.Goroutines(t, "gateway/streamable.(", "gateway/relay.(", "gateway/proxy.(")
	l := &linked{t: t, backend: &scripted{got: make(chan string, 100)}, gets: make(chan string, 100), http: frontHTTP}
	o := relay.Options{Governor: governor, Leave: 10 * time.Millisecond, Grace: time.Second, Drain: time.Second}
	backend := ""
	if behindHTTP {
		web := httptest.NewServer(l.backend)
		t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
		backend = web.URL
	}
	start := func() (relay.End, error) {
		if behindHTTP {
			return streamable.Dial(streamable.BackendOptions{URL: backend})
		}
		in, toBackend := io.Pipe()
		fromBackend, out := io.Pipe()
		go l.backend.overLines(in, out)
		return relay.Lines(fromBackend, toBackend, 16<<20), nil
	}
	switch {
	case !frontHTTP:
		end, err := start()
		require.NoError(t, err)
		l.overLines(end, o)
	case behindHTTP:
		p, err := proxy.New(proxy.Options{Backend: backend, Relay: o, ClientLimit: bodyLimit})
		require.NoError(t, err)
		l.overHTTP(p, p.Close)
	default:
		f := streamable.NewFront(streamable.FrontOptions{
			Start: func(context.Context, *abi.Principal) (relay.End, error) { return start() }, Relay: o, Body: bodyLimit,
		})
		l.overHTTP(f, func() {
			ended, cancel := context.WithCancel(context.Background())
			cancel()
			_ = f.Shutdown(ended)
		})
	}
	<-l.send(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	require.Contains(t, l.next(), `"id":"init","result"`)
	<-l.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return l
}

func (l *linked) overLines(backend relay.End, o relay.Options) {
	in, toGateway := io.Pipe()
	fromGateway, out := io.Pipe()
	ran := make(chan struct{})
	go func() {
		defer close(ran)
		_ = relay.Run(context.Background(), relay.Lines(in, out, bodyLimit), backend, o)
	}()
	go func() {
		for lines := bufio.NewReader(fromGateway); ; {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			l.gets <- strings.TrimSuffix(line, "\n")
		}
	}()
	l.send = func(message string) <-chan int {
		status := make(chan int, 1)
		_, _ = io.WriteString(toGateway, message+"\n")
		status <- 0
		return status
	}
	l.t.Cleanup(func() {
		toGateway.Close()
		<-ran
		fromGateway.Close()
	})
}

func (l *linked) overHTTP(handler http.Handler, end func()) {
	web := httptest.NewServer(handler)
	var session string
	var posts sync.WaitGroup
	ctx, leave := context.WithCancel(context.Background())
	l.send = func(message string) <-chan int {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, web.URL+"/mcp", strings.NewReader(message))
		require.NoError(l.t, err)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
			r.Header.Set("Mcp-Protocol-Version", "2025-11-25")
		}
		status := make(chan int, 1)
		posts.Go(func() {
			res, err := web.Client().Do(r)
			if err != nil {
				status <- -1
				return
			}
			defer res.Body.Close()
			if id := res.Header.Get("Mcp-Session-Id"); session == "" {
				session = id
			}
			status <- res.StatusCode
			l.receive(res)
		})
		return status
	}
	l.t.Cleanup(func() {
		leave()
		end()
		web.CloseClientConnections()
		web.Close()
		posts.Wait()
	})
}

// receive reads the messages of an answer.
func (l *linked) receive(res *http.Response) {
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		if body, _ := io.ReadAll(res.Body); len(body) > 0 {
			l.gets <- string(body)
		}
		return
	}
	var data []string
	for lines := bufio.NewReader(res.Body); ; {
		line, err := lines.ReadString('\n')
		switch line = strings.TrimSuffix(line, "\n"); {
		case err != nil:
			return
		case strings.HasPrefix(line, "data: "):
			data = append(data, line[len("data: "):])
		case line == "":
			if m := strings.Join(data, "\n"); m != "" { // else it only has an id
				l.gets <- m
			}
			data = nil
		}
	}
}

func (l *linked) next() string {
	l.t.Helper()
	return soon(l.t, l.gets)
}

func soon[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(30 * time.Second):
		require.FailNow(t, "nothing arrived")
		panic("unreachable")
	}
}

// step is one message of the client and what comes of it.
type step struct {
	send string
	// status is what an HTTP client is told; 0 is 200, or 202 where nothing is
	// answered.
	status int
	// got is what the backend gets, empty for nothing.
	got string
	// says is what it says to that.
	says []string
	// gets is what the client gets. Where there is an ellipsis, anything may stand.
	gets []string
}

// play does the steps, and ends with a ping: by then everything before it has
// arrived, or never will.
func (l *linked) play(steps ...step) {
	l.t.Helper()
	for i, s := range append(steps, step{send: rq(`"last"`, "ping", "{}"), gets: []string{rs(`"last"`, "{}")}}) {
		l.backend.mu.Lock()
		l.backend.says = nil
		if s.got != "" {
			l.backend.says = [][]string{s.says}
		}
		l.backend.mu.Unlock()
		status := l.send(s.send)
		if s.got != "" {
			require.Equal(l.t, flat(s.got), flat(soon(l.t, l.backend.got)), "what the backend gets, step %d", i+1)
		}
		for _, want := range s.gets {
			l.alike(want, l.next(), i+1)
		}
		if l.http && (s.status != 0 || len(s.gets) > 0) {
			want := s.status
			if want == 0 {
				want = http.StatusOK
			}
			require.Equal(l.t, want, soon(l.t, status), "step %d", i+1)
		}
	}
	require.Empty(l.t, l.gets)
	require.Empty(l.t, l.backend.got)
}

func (l *linked) alike(want, got string, step int) {
	l.t.Helper()
	pieces := strings.Split(flat(want), "…")
	rest := flat(got)
	if len(pieces) == 1 {
		require.Equal(l.t, pieces[0], rest, "what the client gets, step %d", step)
	}
	for _, piece := range pieces {
		_, after, ok := strings.Cut(rest, piece)
		require.True(l.t, ok, "step %d: no %s in %s", step, piece, got)
		rest = after
	}
}

// flat is a message as a line.
func flat(message string) string { return string(wire.Flat(nil, []byte(message))) }

func rq(id, method, params string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + params + `}`
}

func rs(id, result string) string { return `{"jsonrpc":"2.0","id":` + id + `,"result":` + result + `}` }

func nt(method, params string) string {
	return `{"jsonrpc":"2.0","method":"` + method + `","params":` + params + `}`
}

func TestFieldCasesOverEachPair(t *testing.T) {
	const odd = `{"zeta":1,"name":"t","alpha":{"n":[9007199254740993,1.0,1e400,-0,0.10],"s":"<>&\u003c\ud83d\ude00 \ud800 é\/"},"_meta":{"progressToken":9007199254740993,"x":null}}`
	const oddRequest = `{"id": 9007199254740993 ,"extra":[1.0,{"a":"b"}],"params":` + odd + `,"method":"tools\/call","jsonrpc":"2.0"}`
	const oddResponse = `{"id":9007199254740993,"x-unknown":{"k":1e400},"result":` + odd + `,"jsonrpc":"2.0"}`
	inner := rq("66", "tools/call", `{"name":"evil"}`)
	cases := []struct {
		name     string
		rules    rules
		steps    []step
		httpOnly bool // what is sent is no line
	}{
		{name: "deleted_field_stays_deleted", rules: rules{"tools/call response": putting(`{"content":[],"_meta":{"b":2}}`)}, steps: []step{{
			send: rq("1", "tools/call", `{"name":"t"}`), got: rq("1", "tools/call", `{"name":"t"}`),
			says: []string{rs("1", `{"content":[],"structuredContent":{"x":1},"_meta":{"a":1,"b":2}}`)}, gets: []string{rs("1", `{"content":[],"_meta":{"b":2}}`)},
		}}},
		{name: "untouched_means_untouched, no plan", steps: []step{{send: oddRequest, got: oddRequest, says: []string{oddResponse}, gets: []string{oddResponse}}}},
		{name: "untouched_means_untouched, an unmodified pass", rules: rules{"tools/call request": letPass, "tools/call response": letPass},
			steps: []step{{send: oddRequest, got: oddRequest, says: []string{oddResponse}, gets: []string{oddResponse}}}},
		{name: "untouched_means_untouched, mutated", rules: rules{"tools/call request": putting(`{"name":"p","n":1e3}`), "tools/call response": putting(`{"content":[],"n":0.0}`)},
			steps: []step{{send: oddRequest, got: strings.Replace(oddRequest, odd, `{"name":"p","n":1e3}`, 1), says: []string{oddResponse},
				gets: []string{strings.Replace(oddResponse, odd, `{"content":[],"n":0.0}`, 1)}}}},
		{name: "duplicate_keys", rules: rules{"tools/call request": letPass}, steps: []step{
			{send: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"safe","name":"evil"}}`, status: 400, gets: []string{`…"id":1,"error":{"code":-32600…`}},
			{send: `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","arguments":{"a":1,"a":2}}}`, status: 400, gets: []string{`…"id":2,"error":{"code":-32600…`}},
			{send: `{"jsonrpc":"2.0","id":3,"method":"ping","Method":"tools/call"}`, status: 400, gets: []string{`…"error":{"code":-32600…`}},
			{send: `[` + rq("4", "tools/call", `{"name":"t"}`) + `]`, status: 400, gets: []string{`…"error":{"code":-32600…`}},
		}},
		{name: "subscribe_mutation", rules: rules{"resources/subscribe request": exchanging("file:///a", "file:///jail/a")}, steps: []step{{
			send: rq("1", "resources/subscribe", `{"uri":"file:///a"}`), got: rq("1", "resources/subscribe", `{"uri":"file:///jail/a"}`),
			says: []string{nt("notifications/resources/updated", `{"uri":"file:///jail/a"}`), rs("1", "{}")},
			gets: []string{nt("notifications/resources/updated", `{"uri":"file:///jail/a"}`), rs("1", "{}")},
		}}},
		{name: "progress_and_sampling", rules: rules{"sampling/createMessage request": exchanging("secret", "******"), "sampling/createMessage response": exchanging("bad", "good")}, steps: []step{
			{
				send: rq("1", "tools/call", `{"name":"t","_meta":{"progressToken":"p"}}`), got: rq("1", "tools/call", `{"name":"t","_meta":{"progressToken":"p"}}`),
				says: []string{nt("notifications/progress", `{"progressToken":"p","progress":1}`), rq(`"s"`, "sampling/createMessage", `{"messages":[],"x":"secret"}`)},
				gets: []string{nt("notifications/progress", `{"progressToken":"p","progress":1}`), rq(`"s"`, "sampling/createMessage", `{"messages":[],"x":"******"}`)},
			},
			{send: rs(`"s"`, `{"role":"assistant","content":{"text":"bad"}}`), status: 202, got: rs(`"s"`, `{"role":"assistant","content":{"text":"good"}}`),
				says: []string{rs("1", `{"content":[]}`)}, gets: []string{rs("1", `{"content":[]}`)}},
		}},
		{name: "list_is_governed", rules: rules{"tools/list response": exchanging(`,{"name":"hidden"}`, ""), "tools/call request": forbid}, steps: []step{
			{send: rq("1", "tools/list", "{}"), got: rq("1", "tools/list", "{}"), says: []string{rs("1", `{"tools":[{"name":"a"},{"name":"hidden"}],"nextCursor":"2"}`)},
				gets: []string{rs("1", `{"tools":[{"name":"a"}],"nextCursor":"2"}`)}},
			{send: rq("2", "tools/list", `{"cursor":"2"}`), got: rq("2", "tools/list", `{"cursor":"2"}`), says: []string{rs("2", `{"tools":[{"name":"b"},{"name":"hidden"}]}`)},
				gets: []string{rs("2", `{"tools":[{"name":"b"}]}`)}},
			{send: rq("3", "tools/call", `{"name":"hidden"}`), gets: []string{`…"id":3,"error":{"code":-32602,"message":"blocked by an interceptor"…"reference":"…`}},
		}},
		{name: "smuggled_lines, from a client", httpOnly: true, steps: []step{{
			send: "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"t\",\"arguments\":{\"a\":\r\n" + inner + "\r\n}}}",
			got:  `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"a":` + inner + `}}}`,
			says: []string{rs("1", "{}")}, gets: []string{rs("1", "{}")},
		}}},
		{name: "smuggled_lines, from a backend", steps: []step{{
			send: rq("1", "tools/call", `{"name":"t"}`), got: rq("1", "tools/call", `{"name":"t"}`),
			says: []string{"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":\n" + inner + "\n}}"}, gets: []string{rs("1", `{"a":`+inner+`}`)},
		}}},
		{name: "smuggled_lines, from a mutator", rules: rules{
			"tools/call request":  putting("{\"name\":\"t\",\"a\":\r\n" + inner + "\r\n}"),
			"tools/call response": putting("{\"content\":[],\"a\":\n" + inner + "\n}"),
		}, steps: []step{{
			send: rq("1", "tools/call", `{"name":"t"}`), got: rq("1", "tools/call", `{"name":"t","a":`+inner+`}`),
			says: []string{rs("1", `{"content":[]}`)}, gets: []string{rs("1", `{"content":[],"a":`+inner+`}`)},
		}}},
		{name: "reused_id", rules: rules{"tools/call response": letPass}, steps: []step{
			{send: rq("7", "tools/call", `{"name":"t"}`), got: rq("7", "tools/call", `{"name":"t"}`), says: nil},
			{send: rq("7", "x/y", `{}`), status: 400, gets: []string{`…"id":7,"error":{"code":-32600…`}},
			{send: rq("7.0", "x/y", `{}`), status: 400, gets: []string{`…"id":7.0,"error":{"code":-32600…`}},
			{send: rq("7e0", "x/y", `{}`), status: 400, gets: []string{`…"id":7e0,"error":{"code":-32600…`}},
			{send: rq(`"7"`, "x/y", `{}`), got: rq(`"7"`, "x/y", `{}`), says: []string{rs(`"7"`, `{}`)}, gets: []string{rs(`"7"`, `{}`)}},
			{send: rq("9007199254740993", "x/y", `{}`), got: rq("9007199254740993", "x/y", `{}`), says: []string{rs("9007199254740993", `{}`)}, gets: []string{rs("9007199254740993", `{}`)}},
		}},
		{name: "unknown_response", steps: []step{
			{send: rs("99", `{"roots":[]}`), status: 202},
			{send: rq("1", "tools/call", `{"name":"t"}`), got: rq("1", "tools/call", `{"name":"t"}`), says: []string{rs("98", `{"content":[]}`), rs("1", `{"content":[]}`)}, gets: []string{rs("1", `{"content":[]}`)}},
		}},
		{name: "task_result", rules: rules{"tools/call response": exchanging("secret", "******")}, steps: []step{
			{send: rq("1", "tools/call", `{"name":"t","task":{}}`), got: rq("1", "tools/call", `{"name":"t","task":{}}`),
				says: []string{rs("1", `{"task":{"taskId":"t1","status":"working"}}`)}, gets: []string{rs("1", `{"task":{"taskId":"t1","status":"working"}}`)}},
			{send: rq("2", "tasks/result", `{"taskId":"t1"}`), got: rq("2", "tasks/result", `{"taskId":"t1"}`),
				says: []string{rs("2", `{"content":[{"type":"text","text":"a secret"}]}`)}, gets: []string{rs("2", `{"content":[{"type":"text","text":"a ******"}]}`)}},
		}},
		{name: "embedded_request", rules: rules{"sampling/createMessage request": forbid}, steps: []step{{
			send: rq("1", "tools/call", `{"name":"t"}`), got: rq("1", "tools/call", `{"name":"t"}`),
			says: []string{rs("1", `{"resultType":"input_required","inputRequests":{"q":{"method":"sampling/createMessage","params":{"messages":[]}}}}`)},
			gets: []string{`…"id":1,"error":{"code":-32602…"event":"sampling/createMessage"…"mayHaveRun":true…`},
		}}},
		{name: "big_body", steps: []step{
			{send: rq("1", "tools/call", `{"name":"`+strings.Repeat("x", 5<<20)+`"}`), status: 413, gets: []string{`…"error":{"code":-32600…`}},
			{send: rq("2", "tools/call", `{"name":"t"}`), got: rq("2", "tools/call", `{"name":"t"}`), says: []string{rs("2", "{}")}, gets: []string{rs("2", "{}")}},
		}},
	}
	for _, p := range pairs {
		t.Run(p.name, func(t *testing.T) {
			for _, c := range cases {
				if c.httpOnly && !p.frontHTTP {
					continue
				}
				t.Run(c.name, func(t *testing.T) {
					link(t, p.frontHTTP, p.behindHTTP, c.rules).play(c.steps...)
				})
			}
			t.Run("cancelled_call", func(t *testing.T) {
				l := link(t, p.frontHTTP, p.behindHTTP, rules{"tools/call response": letPass})
				cancelled := nt("notifications/cancelled", `{"requestId":7.0}`)
				l.play(
					step{send: rq("7", "tools/call", `{"name":"t"}`), got: rq("7", "tools/call", `{"name":"t"}`)},
					step{send: cancelled, got: cancelled},
				)
			})
		})
	}
}
