package hosts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
)

// The test binary is also the interceptor server that the tests run as a
// command: WEIR_TEST_SERVER says which.
func TestMain(m *testing.M) {
	if kind := os.Getenv("WEIR_TEST_SERVER"); kind != "" {
		os.Exit(serveStdio(kind))
	}
	os.Exit(m.Run())
}

// script is an interceptor server by its answers.
type script struct {
	// list gives the page for a cursor, invoke the answer to raw params: raw
	// JSON, or an error.
	list   func(ctx context.Context, cursor string) (string, error)
	invoke func(ctx context.Context, params json.RawMessage) (string, error)
}

const oneValidator = `{"interceptors":[{"name":"guard","type":"validation","hooks":[{"events":["tools/call"],"phase":"request"}]}]}`

const plainPass = `{"type":"validation","interceptor":"guard","phase":"request","valid":true}`

func lists(page string) func(context.Context, string) (string, error) {
	return func(context.Context, string) (string, error) { return page, nil }
}

func says(answer string) func(context.Context, json.RawMessage) (string, error) {
	return func(context.Context, json.RawMessage) (string, error) { return answer, nil }
}

type wireParams struct {
	mcp.ParamsBase
	raw json.RawMessage
}

func (p *wireParams) UnmarshalJSON(b []byte) error {
	p.raw = bytes.Clone(b)
	return nil
}

type wireResult struct {
	mcp.ResultBase
	raw json.RawMessage
}

func (r *wireResult) MarshalJSON() ([]byte, error) { return r.raw, nil }

func (s script) server() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ServerOptions{Capabilities: &mcp.ServerCapabilities{}})
	answer := func(raw string, err error) (*wireResult, error) { return &wireResult{raw: json.RawMessage(raw)}, err }
	must(mcp.AddReceivingCustomMethod(server, abi.MethodList, func(ctx context.Context, _ *mcp.ServerSession, p *wireParams) (*wireResult, error) {
		params, err := abi.ReadListParams(p.raw)
		if err != nil {
			return nil, err
		}
		return answer(s.list(ctx, params.Cursor))
	}))
	must(mcp.AddReceivingCustomMethod(server, abi.MethodInvoke, func(ctx context.Context, _ *mcp.ServerSession, p *wireParams) (*wireResult, error) {
		return answer(s.invoke(ctx, p.raw))
	}))
	return server
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// over serves a script in each way that a host can be reached, and runs the
// test against each.
func over(t *testing.T, kind string, o Options, test func(t *testing.T, h *Host)) {
	t.Helper()
	for name, make := range map[string]func(t *testing.T) *Host{
		"stdio": func(t *testing.T) *Host { return stdioHost(t, kind, o) },
		"http, stateless": func(t *testing.T) *Host {
			return HTTP("remote", Endpoint{URL: serveHTTP(t, scripts[kind], true).URL}, o)
		},
		"http, sessions": func(t *testing.T) *Host {
			return HTTP("remote", Endpoint{URL: serveHTTP(t, scripts[kind], false).URL}, o)
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := make(t)
			t.Cleanup(func() { require.NoError(t, h.close(context.Background())) })
			test(t, h)
		})
	}
}

func stdioHost(t testing.TB, kind string, o Options) *Host {
	exe, err := os.Executable()
	require.NoError(t, err)
	return hasty(Stdio("remote", Process{Command: []string{exe}, Env: Environment(map[string]string{"WEIR_TEST_SERVER": kind})}, o))
}

// hasty gives the peer little time to leave: under the race detector a process
// takes a second for its exit, which nothing here depends on.
func hasty(h *Host) *Host {
	h.grace = 100 * time.Millisecond
	return h
}

func serveHTTP(t testing.TB, s script, stateless bool) *httptest.Server {
	server := s.server()
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{Stateless: stateless, JSONResponse: stateless})
	web := httptest.NewServer(handler)
	t.Cleanup(web.Close)
	return web
}

// beforeServing is what some kinds of servers do first; they serve "dies" then.
var beforeServing = map[string]func(){}

func serveStdio(kind string) int {
	if first := beforeServing[kind]; first != nil {
		first()
		kind = "dies"
	}
	switch kind {
	case "exits":
		fmt.Fprintln(os.Stderr, "cannot open my database")
		return 3
	case "environment":
		kind = "plain"
		fmt.Fprintln(os.Stderr, "env: "+strings.Join(os.Environ(), "|"))
	case "noisy":
		kind = "plain"
		fmt.Println("Welcome to my server!")
		fmt.Println(`{"jsonrpc":"2.0","method":"notifications/x","method":"notifications/y"}`)
		fmt.Fprintln(os.Stderr, strings.Repeat("x", 3*maxLogLine))
		for i := range 10 * maxLinesPerSecond {
			fmt.Fprintln(os.Stderr, "line", i)
		}
	case "deaf":
		time.Sleep(time.Hour)
	}
	if err := scripts[kind].server().Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		return 1
	}
	return 0
}

var scripts = map[string]script{
	"plain": {lists(oneValidator), says(plainPass)},
	"pages": {func(_ context.Context, cursor string) (string, error) {
		if cursor == "" {
			return strings.TrimSuffix(oneValidator, "}") + `,"nextCursor":"two"}`, nil
		}
		return strings.ReplaceAll(oneValidator, "guard", "on page "+cursor), nil
	}, nil},
	"endless": {func(_ context.Context, cursor string) (string, error) {
		return `{"interceptors":[],"nextCursor":"again"}`, nil
	}, nil},
	"many pages": {func(_ context.Context, cursor string) (string, error) {
		return fmt.Sprintf(`{"interceptors":[],"nextCursor":"%sx"}`, cursor), nil
	}, nil},
	"duplicates in list": {lists(`{"interceptors":[],"interceptors":[{"name":"other"}]}`), nil},
	"bad hint": {lists(`{"interceptors":[` + descriptors("a", "b") + `,
		{"name":"odd","type":"mutation","hooks":[],"priorityHint":1.5},` + descriptors("c", "d", "a") + `]}`), nil},
	"no list": {func(context.Context, string) (string, error) {
		return "", &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "method not found"}
	}, nil},
	"echo": {lists(oneValidator), func(_ context.Context, params json.RawMessage) (string, error) {
		return `{"type":"validation","interceptor":"guard","phase":"request","valid":true,"info":` + string(params) + `}`, nil
	}},
	"mirror": {lists(oneValidator), func(_ context.Context, params json.RawMessage) (string, error) {
		inv, err := abi.ReadInvocation(params)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf(`{"type":"mutation","interceptor":"guard","phase":%q,"modified":true,"payload":%s}`, inv.Phase, inv.Payload), nil
	}},
	"unwrapped": {lists(oneValidator), says(`{"type":"mutation","interceptor":"guard","phase":"request","modified":true,"payload":{"a":1}}`)},
	"malformed": {lists(oneValidator), func(_ context.Context, params json.RawMessage) (string, error) {
		inv, err := abi.ReadInvocation(params)
		var answer string
		if err == nil {
			err = json.Unmarshal(inv.Payload, &answer)
		}
		return answer, err
	}},
	"fails": {lists(oneValidator), func(_ context.Context, params json.RawMessage) (string, error) {
		inv, err := abi.ReadInvocation(params)
		if err != nil {
			return "", err
		}
		var e jsonrpc.Error
		if err := json.Unmarshal(inv.Payload, &e); err != nil {
			return "", err
		}
		return "", &e
	}},
	"big": {lists(oneValidator), func(_ context.Context, params json.RawMessage) (string, error) {
		inv, _ := abi.ReadInvocation(params)
		if string(inv.Payload) == `"small"` {
			return plainPass, nil
		}
		return `{"type":"validation","interceptor":"guard","phase":"request","valid":true,"info":"` + strings.Repeat("x", MaxAnswer) + `"}`, nil
	}},
	"slow": {lists(oneValidator), func(ctx context.Context, params json.RawMessage) (string, error) {
		// Over stateless HTTP the SDK's server does not hear that its caller left.
		select {
		case <-ctx.Done():
		case <-time.After(300 * time.Millisecond):
		}
		return "", errors.New("nobody waited for me")
	}},
	"dies": {lists(oneValidator), func(_ context.Context, params json.RawMessage) (string, error) {
		inv, _ := abi.ReadInvocation(params)
		if string(inv.Payload) == `"die"` {
			os.Exit(7)
		}
		return fmt.Sprintf(`{"type":"validation","interceptor":"guard","phase":"request","valid":true,"info":%d}`, os.Getpid()), nil
	}},
}

// crowd is how many calls "together" waits for before it answers any.
const crowd = 32

func init() {
	whole := make(chan struct{})
	var here atomic.Int32
	scripts["together"] = script{lists(oneValidator), func(context.Context, json.RawMessage) (string, error) {
		if here.Add(1) < crowd {
			<-whole
			return plainPass, nil
		}
		here.Store(0)
		for range crowd - 1 {
			whole <- struct{}{}
		}
		return plainPass, nil
	}}
	var asked atomic.Bool
	scripts["forgets"] = script{func(context.Context, string) (string, error) {
		if asked.Swap(false) {
			return strings.ReplaceAll(oneValidator, "guard", "successor"), nil
		}
		return oneValidator, nil
	}, func(context.Context, json.RawMessage) (string, error) {
		asked.Store(true)
		return "", &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "unknown", Data: json.RawMessage(`{"name":"guard"}`)}
	}}
}

func descriptors(names ...string) string {
	var list []string
	for _, name := range names {
		list = append(list, fmt.Sprintf(`{"name":%q,"type":"validation","hooks":[]}`, name))
	}
	return strings.Join(list, ",")
}

// invocation is one of "guard" with a payload.
func invocation(payload string) abi.Invocation {
	return abi.Invocation{Name: "guard", Event: abi.ToolsCall, Phase: abi.Request, Payload: json.RawMessage(payload)}
}

// failed is the reason of an invocation's failure.
func failed(t *testing.T, err error) *abi.Error {
	t.Helper()
	var e *abi.Error
	require.ErrorAs(t, err, &e)
	return e
}

// native is a set in this process.
type native struct {
	mu      sync.Mutex
	list    []abi.Descriptor
	changed func()
	stopped atomic.Bool
	lists   atomic.Int32
	last    atomic.Pointer[abi.Invocation]
}

func (n *native) List() []abi.Descriptor {
	n.lists.Add(1)
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]abi.Descriptor(nil), n.list...)
}

func (n *native) Invoke(_ context.Context, inv abi.Invocation) (abi.Result, error) {
	n.last.Store(&inv)
	return abi.Result{Type: abi.Validation, Interceptor: inv.Name, Phase: inv.Phase, Valid: true}, nil
}

func (n *native) Ready(context.Context) error { return nil }

func (n *native) Subscribe(changed func()) func() {
	n.changed = changed
	return func() { n.stopped.Store(true) }
}

func (n *native) set(names ...string) {
	n.mu.Lock()
	n.list = nil
	for _, name := range names {
		n.list = append(n.list, abi.Descriptor{Name: name, Type: abi.Validation, Hooks: abi.On(abi.Request, "*")})
	}
	n.mu.Unlock()
	if n.changed != nil {
		n.changed()
	}
}
