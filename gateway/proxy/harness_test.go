package proxy

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/relay"
	"github.com/weir-mcp/weir/internal/leak"
	"github.com/weir-mcp/weir/internal/wire"
)

const patience = 20 * time.Second

// rule is what the scripted governor does for one event and phase.
type rule func(ctx context.Context, op relay.Operation) relay.Decision

// script is a governor. Its keys are "event phase".
type script struct {
	rules map[string]rule
	mu    sync.Mutex
	seen  []relay.Operation
}

func (s *script) Governs(sc relay.Scope) bool {
	if sc.Event != relay.AnyEvent {
		return s.rules[sc.Event+" "+string(sc.Phase)] != nil
	}
	for key := range s.rules {
		if strings.HasSuffix(key, " "+string(sc.Phase)) {
			return true
		}
	}
	return false
}

func (s *script) Govern(ctx context.Context, op relay.Operation) relay.Decision {
	s.mu.Lock()
	s.seen = append(s.seen, op)
	s.mu.Unlock()
	return s.rules[op.Event+" "+string(op.Phase)](ctx, op)
}

func (s *script) operations() []relay.Operation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]relay.Operation(nil), s.seen...)
}

func pass(context.Context, relay.Operation) relay.Decision { return relay.Decision{} }

func edit(old, new string) rule {
	return func(_ context.Context, op relay.Operation) relay.Decision {
		return relay.Decision{Payload: bytes.ReplaceAll(op.Payload, []byte(old), []byte(new))}
	}
}

func replace(payload string) rule {
	return func(context.Context, relay.Operation) relay.Decision {
		return relay.Decision{Payload: []byte(payload)}
	}
}

func block(context.Context, relay.Operation) relay.Decision {
	return relay.Decision{Block: &relay.Block{Reason: abi.StatusValidationFailed}}
}

// watcher keeps what is discarded.
type watcher struct {
	mu       sync.Mutex
	discards []relay.Discard
	arrived  []string
}

func (w *watcher) Governed(relay.Record) {}

func (w *watcher) Arrived(from relay.Side, kind wire.Kind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.arrived = append(w.arrived, from.String()+" "+kind.String())
}

func (w *watcher) messages() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.arrived...)
}

func (w *watcher) Discarded(d relay.Discard) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.discards = append(w.discards, d)
}

func (w *watcher) causes() []relay.Cause {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []relay.Cause
	for _, d := range w.discards {
		all = append(all, d.Cause)
	}
	return all
}

// scene is a proxy between the test as a client and a backend of the test's own.
type scene struct {
	t        *testing.T
	proxy    *Proxy
	url      string
	governor *script
	watcher  *watcher
	// caller is who the next requests come from, as a door before the proxy says.
	caller atomic.Pointer[abi.Principal]
}

// as makes requests come from somebody.
func (s *scene) as(caller *abi.Principal) { s.caller.Store(caller) }

func (s *scene) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p := s.caller.Load(); p != nil {
		r = r.WithContext(relay.WithPrincipal(r.Context(), p))
	}
	s.proxy.ServeHTTP(w, r)
}

// seen is a request as the backend got it.
type seen struct {
	*http.Request
	body string
}

// stage starts the backend and the proxy in front of it.
func stage(t *testing.T, rules map[string]rule, backend http.HandlerFunc, adapt ...func(*Options)) *scene {
	t.Helper()
	leak.Goroutines(t, "gateway/proxy.(*Proxy)", "gateway/proxy.(*exchange)", "gateway/proxy.(*stream)", "gateway/relay.(*")
	b := httptest.NewServer(backend)
	s := &scene{t: t, governor: &script{rules: rules}, watcher: &watcher{}}
	o := Options{Backend: b.URL + "/mcp", Relay: relay.Options{Governor: s.governor, Observer: s.watcher}}
	for _, f := range adapt {
		f(&o)
	}
	var err error
	s.proxy, err = New(o)
	require.NoError(t, err)
	front := httptest.NewServer(s)
	s.url = front.URL + "/mcp"
	t.Cleanup(func() {
		b.CloseClientConnections()
		s.proxy.Close()
		front.Close()
		b.Close()
	})
	return s
}

// answering is a backend that answers every request in the same way and tells what
// it has got.
func answering(status int, contentType, body string) (http.HandlerFunc, chan seen) {
	got := make(chan seen, 100)
	return func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got <- seen{r, string(b)}
		if contentType != "" {
			w.Header().Set("Content-Type", contentType)
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}, got
}

// do makes a request. Headers are "Name: value".
func (s *scene) do(method, body string, headers ...string) *http.Response {
	s.t.Helper()
	return s.with(s.t.Context(), method, body, headers...)
}

func (s *scene) with(ctx context.Context, method, body string, headers ...string) *http.Response {
	s.t.Helper()
	res, err := http.DefaultTransport.RoundTrip(s.request(ctx, method, body, headers...))
	require.NoError(s.t, err)
	s.t.Cleanup(func() { res.Body.Close() })
	return res
}

func (s *scene) request(ctx context.Context, method, body string, headers ...string) *http.Request {
	s.t.Helper()
	var r io.Reader
	if method == http.MethodPost {
		r = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, s.url, r)
	require.NoError(s.t, err)
	req.Header.Set("Content-Type", typeJSON)
	req.Header.Set("Accept", typeJSON+", "+typeSSE)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Add(name, value)
	}
	return req
}

// posts demands status and body as the answer to a message.
func (s *scene) posts(message string, status int, body string, headers ...string) *http.Response {
	s.t.Helper()
	res := s.do(http.MethodPost, message, headers...)
	require.Equal(s.t, body, s.read(res))
	require.Equal(s.t, status, res.StatusCode)
	return res
}

func (s *scene) read(res *http.Response) string {
	s.t.Helper()
	b, err := io.ReadAll(res.Body)
	require.NoError(s.t, err)
	return string(b)
}

// events reads an event stream: blocks of text up to an empty line.
type events struct {
	t *testing.T
	r *bufio.Reader
}

func (s *scene) events(res *http.Response) *events {
	s.t.Helper()
	require.Equal(s.t, typeSSE, res.Header.Get("Content-Type"))
	return &events{s.t, bufio.NewReader(res.Body)}
}

func (e *events) next() string {
	e.t.Helper()
	got := make(chan string, 1)
	go func() {
		var b strings.Builder
		for {
			line, err := e.r.ReadString('\n')
			if line == "\n" || err != nil {
				got <- strings.TrimSuffix(b.String(), "\n")
				return
			}
			b.WriteString(line)
		}
	}()
	select {
	case s := <-got:
		return s
	case <-time.After(patience):
		require.FailNow(e.t, "nothing arrived")
		return ""
	}
}

// gets demands exactly these events next; "" is the end.
func (e *events) gets(want ...string) {
	e.t.Helper()
	for _, w := range want {
		require.Equal(e.t, w, e.next())
	}
}

func take[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		require.FailNow(t, "nothing arrived")
		panic("unreachable")
	}
}

func request(id, method, params string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + params + `}`
}

func call(id, params string) string { return request(id, "tools/call", params) }

func notification(method, params string) string {
	return `{"jsonrpc":"2.0","method":"` + method + `","params":` + params + `}`
}

func result(id, result string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"result":` + result + `}`
}

func failure(id, code, text string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":` + code + `,"message":"` + text + `"}}`
}

// Session headers of the tests.
const inSession = "Mcp-Session-Id: s1"
