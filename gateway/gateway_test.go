//lint:file-ignore SA1019 sampling is deprecated, and governed for as long as a peer may use it

package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway"
	"github.com/weir-mcp/weir/gateway/chain"
	"github.com/weir-mcp/weir/gateway/hosts"
	"github.com/weir-mcp/weir/gateway/relay"
	"github.com/weir-mcp/weir/internal/leak"
	"github.com/weir-mcp/weir/internal/logbook"
	"github.com/weir-mcp/weir/internal/need"
)

const (
	patience = 20 * time.Second
	role     = "WEIR_TEST_BACKEND"
)

// TestMain makes the test binary its own backend.
func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "":
		os.Exit(m.Run())
	case "server":
		serveBackend()
	case "echo":
		echoBackend()
	case "bare":
		bareRelay()
	case "gateway":
		gatewayProcess()
	case "governed":
		governedProcess()
	case "exits":
		fmt.Fprintln(os.Stderr, "no licence")
		os.Exit(3)
	case "dies":
		// Takes one message after the handshake and dies without an answer.
		in := bufio.NewScanner(os.Stdin)
		in.Scan()
		fmt.Println(`{"jsonrpc":"2.0","id":1,"result":{}}`)
		in.Scan()
		os.Exit(0)
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println(`{"jsonrpc":"2.0","method":"notifications/up"}`)
		select {}
	case "env":
		fmt.Printf(`{"jsonrpc":"2.0","method":"notifications/env","params":{"secret":%q,"other":%q}}`+"\n", os.Getenv("A_SECRET"), os.Getenv("ANOTHER"))
		io.Copy(io.Discard, os.Stdin)
	}
	os.Exit(0)
}

type echoArgs struct {
	Text string `json:"text"`
}

func serveBackend() {
	s := mcp.NewServer(&mcp.Implementation{Name: "backend", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in echoArgs) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "backend saw " + in.Text}}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "ask"}, func(ctx context.Context, r *mcp.CallToolRequest, in echoArgs) (*mcp.CallToolResult, any, error) {
		_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1})
		got, err := r.Session.CreateMessage(ctx, &mcp.CreateMessageParams{MaxTokens: 9, Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: in.Text}}}})
		if err != nil {
			return nil, nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{got.Content}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "input"}, func(_ context.Context, r *mcp.CallToolRequest, in echoArgs) (*mcp.CallToolResult, any, error) {
		if got, ok := r.Params.InputResponses["s"].(*mcp.CreateMessageWithToolsResult); ok {
			return &mcp.CallToolResult{Content: got.Content}, nil, nil
		}
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"s": &mcp.CreateMessageParams{
			MaxTokens: 9, Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: in.Text}}},
		}}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "wait"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ echoArgs) (*mcp.CallToolResult, any, error) {
		<-ctx.Done()
		return nil, nil, ctx.Err()
	})
	_ = s.Run(context.Background(), &mcp.StdioTransport{})
}

func backend(t *testing.T, as string) *gateway.Backend {
	t.Helper()
	t.Setenv(role, as)
	t.Setenv("GORACE", "atexit_sleep_ms=0") // of which each process would sleep 1 s
	self, err := os.Executable()
	require.NoError(t, err)
	b, err := gateway.Start(gateway.Command{Args: []string{self}, Stderr: io.Discard, Hide: []string{"A_SECRET"}, Patience: 100 * time.Millisecond})
	require.NoError(t, err)
	return b
}

// set is a host's interceptors in this process.
type set struct {
	mu      sync.Mutex
	list    []abi.Descriptor
	invoke  func(ctx context.Context, inv abi.Invocation) (abi.Result, error)
	changed func()
	calls   []string
}

func (s *set) List() []abi.Descriptor {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]abi.Descriptor(nil), s.list...)
}

func (s *set) Invoke(ctx context.Context, inv abi.Invocation) (abi.Result, error) {
	s.mu.Lock()
	s.calls = append(s.calls, inv.Name+" "+inv.Event+" "+string(inv.Phase))
	s.mu.Unlock()
	return s.invoke(ctx, inv)
}

func (s *set) Ready(context.Context) error { return nil }

func (s *set) Subscribe(changed func()) func() {
	s.changed = changed
	return func() {}
}

func (s *set) put(list ...abi.Descriptor) {
	s.mu.Lock()
	s.list = list
	s.mu.Unlock()
	s.changed()
}

// words are interceptors by what they do with payloads.
func words(list ...abi.Descriptor) *set {
	return &set{list: list, invoke: func(_ context.Context, inv abi.Invocation) (abi.Result, error) {
		r := abi.Result{Interceptor: inv.Name, Phase: inv.Phase}
		switch inv.Name {
		case "redact":
			r.Type, r.Modified = abi.Mutation, bytes.Contains(inv.Payload, []byte("secret"))
			r.Payload = bytes.ReplaceAll(inv.Payload, []byte("secret"), []byte("******"))
		case "guard":
			r.Type, r.Valid = abi.Validation, !bytes.Contains(inv.Payload, []byte("evil"))
			if !r.Valid {
				r.Severity, r.Messages = abi.SeverityError, []abi.Message{{Message: "evil found", Severity: abi.SeverityError}}
			}
		case "sink":
			r.Type, r.Recorded = abi.Sink, true
		}
		return r, nil
	}}
}

func mutator() abi.Descriptor {
	return abi.Descriptor{Name: "redact", Type: abi.Mutation, Hooks: abi.OnBoth("*")}
}
func guard() abi.Descriptor {
	return abi.Descriptor{Name: "guard", Type: abi.Validation, Hooks: abi.OnBoth("tools/call", "sampling/createMessage")}
}
func sink() abi.Descriptor {
	return abi.Descriptor{Name: "sink", Type: abi.Sink, Hooks: abi.OnBoth("tools/call")}
}

// decisions are the records of governed phases.
func decisions(t *testing.T, l *logbook.Book) []map[string]any {
	t.Helper()
	return slices.DeleteFunc(l.Records(t), func(r map[string]any) bool { return r["phase"] == nil })
}

func newGateway(t *testing.T, s *set, adapt func(*gateway.Options)) (*gateway.Gateway, *logbook.Book) {
	l := &logbook.Book{}
	logger := l.JSON()
	var o gateway.Options
	o.Hosts, o.Logger = hosts.NewSet([]*hosts.Host{hosts.InProcess("local", s, hosts.Options{Logger: logger})}, hosts.SetOptions{}), logger
	if adapt != nil {
		adapt(&o)
	}
	g, err := gateway.New(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.Close(context.Background())) })
	return g, l
}

// gatewayOf is a gateway over hosts, which the test closes.
func gatewayOf(t *testing.T, h gateway.Hosts, log slog.Handler) *gateway.Gateway {
	t.Helper()
	g, err := gateway.New(gateway.Options{ChainOptions: gateway.ChainOptions{Hosts: h, Logger: slog.New(log)}})
	require.NoError(t, err)
	return g
}

// connect joins a go-sdk client to a backend through the gateway.
func connect(t *testing.T, g *gateway.Gateway, b relay.End, version string) (session *mcp.ClientSession, served chan error, progress chan float64) {
	t.Helper()
	toGateway, fromClient := io.Pipe()
	toClient, fromGateway := io.Pipe()
	served, progress = make(chan error, 1), make(chan float64, 10)
	go func() { served <- g.Serve(context.Background(), relay.Lines(toGateway, fromGateway, 1<<20), b) }()
	c := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, &mcp.ClientOptions{
		CreateMessageHandler: func(_ context.Context, r *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			return &mcp.CreateMessageResult{Role: "assistant", Model: "m", Content: &mcp.TextContent{Text: "model saw " + r.Params.Messages[0].Content.(*mcp.TextContent).Text}}, nil
		},
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { progress <- r.Params.Progress },
	})
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	session, err := c.Connect(ctx, &mcp.IOTransport{Reader: toClient, Writer: fromClient}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	require.NoError(t, err)
	return session, served, progress
}

func callTool(session *mcp.ClientSession, tool, text string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	p := &mcp.CallToolParams{Name: tool, Arguments: map[string]any{"text": text}}
	p.SetProgressToken("p")
	r, err := session.CallTool(ctx, p)
	if err != nil {
		return "", err
	}
	return r.Content[0].(*mcp.TextContent).Text, nil
}

func TestARealBackendIsGoverned(t *testing.T) {
	leak.Goroutines(t, "weir/gateway.(", "weir/gateway/relay.", "weir/gateway/hosts.", "weir/gateway/chain.")
	s := words(guard(), mutator(), sink())
	g, l := newGateway(t, s, nil)
	require.NoError(t, g.Ready(t.Context()))
	session, served, progress := connect(t, g, backend(t, "server"), "2025-11-25")

	text, err := callTool(session, "echo", "a secret")
	require.NoError(t, err)
	require.Equal(t, "backend saw a ******", text)

	text, err = callTool(session, "ask", "my secret")
	require.NoError(t, err)
	require.Equal(t, "model saw my ******", text)
	require.Equal(t, 1.0, <-progress)

	_, err = callTool(session, "echo", "evil secret")
	require.ErrorContains(t, err, "blocked by an interceptor")
	tools, err := session.ListTools(context.Background(), nil)
	require.NoError(t, err)
	require.Len(t, tools.Tools, 4)

	// A module is dropped in: the next message meets it.
	s.put(abi.Descriptor{Name: "guard", Type: abi.Validation, Hooks: abi.On(abi.Request, "prompts/list")})
	text, err = callTool(session, "echo", "an evil secret")
	require.NoError(t, err)
	require.Equal(t, "backend saw an evil secret", text)

	require.NoError(t, session.Close())
	require.NoError(t, <-served)
	require.NotContains(t, l.String(), "secret", "no payload in the log")

	records := decisions(t, l)
	var blocked map[string]any
	for _, r := range records {
		require.Equal(t, records[0]["session"], r["session"])
		if r["msg"] == "blocked" {
			blocked = r
		}
	}
	require.Subset(t, blocked, map[string]any{
		"event": "tools/call", "phase": "request", "direction": "sending", "initiator": "client", "name": "echo",
		"status": "validation_failed", "interceptor": "guard", "host": "local", "reason": "rejected",
	})
	require.NotEmpty(t, blocked["reference"])
	plan := blocked["plan"].([]any)
	require.Equal(t, "redact", plan[0].(map[string]any)["interceptor"])
	require.Equal(t, "discarded", plan[0].(map[string]any)["effect"])
	require.Equal(t, "blocked", plan[1].(map[string]any)["effect"])
	require.NotContains(t, plan[1], "messages")
}

func TestInputRequiredOfARealBackend(t *testing.T) {
	s := words(abi.Descriptor{Name: "redact", Type: abi.Mutation, Hooks: abi.On(abi.Request, "sampling/*")}, abi.Descriptor{
		Name: "guard", Type: abi.Validation, Hooks: abi.OnBoth("sampling/createMessage"), Compat: &abi.Compat{MinProtocol: "2026-07-28"},
	})
	g, _ := newGateway(t, s, nil)
	session, served, _ := connect(t, g, backend(t, "server"), "2026-07-28")
	tools, err := session.ListTools(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, "public", tools.CacheScope, "as the backend says")
	text, err := callTool(session, "input", "my secret")
	require.NoError(t, err)
	require.Equal(t, "model saw my ******", text)
	_, err = callTool(session, "input", "evil")
	require.ErrorContains(t, err, "blocked by an interceptor")
	require.NoError(t, session.Close())
	require.NoError(t, <-served)
	require.Equal(t, []string{
		"guard sampling/createMessage request", "redact sampling/createMessage request",
		"guard sampling/createMessage response", "guard sampling/createMessage request",
	}, s.calls)
}

func TestAListBehindAMutatorIsPrivate(t *testing.T) {
	g, _ := newGateway(t, words(mutator()), nil)
	session, served, _ := connect(t, g, backend(t, "server"), "2026-07-28")
	tools, err := session.ListTools(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, "private", tools.CacheScope)
	require.NoError(t, session.Close())
	require.NoError(t, <-served)
}

// Sessions leave no descriptors, processes or goroutines behind.
func TestOrphans(t *testing.T) {
	if runtime.GOOS != "linux" {
		need.Missing(t, "/proc, where descriptors are counted", "run it on Linux")
	}
	descriptors := func() int {
		all, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			need.Missing(t, "/proc", "mount it: "+err.Error())
		}
		return len(all)
	}
	g, _ := newGateway(t, words(guard()), nil)
	one := func() {
		session, served, _ := connect(t, g, backend(t, "server"), "2025-11-25")
		_, err := callTool(session, "echo", "x")
		require.NoError(t, err)
		require.NoError(t, session.Close())
		require.NoError(t, <-served)
	}
	one()
	fds := descriptors()
	for range 5 {
		one()
	}
	require.LessOrEqual(t, descriptors(), fds)
}

func TestCancelledCallReachesTheBackend(t *testing.T) {
	g, _ := newGateway(t, words(guard()), nil)
	session, served, _ := connect(t, g, backend(t, "server"), "2025-11-25")
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		_, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "wait", Arguments: map[string]any{"text": ""}})
		done <- err
	}()
	_, err := callTool(session, "echo", "x")
	require.NoError(t, err)
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	_, err = callTool(session, "echo", "x")
	require.NoError(t, err)
	require.NoError(t, session.Close())
	require.NoError(t, <-served)
}

// The gateway as a process of its own, on its real standard input and output.
func TestOverStandardInputAndOutput(t *testing.T) {
	for _, size := range []int{1, 100_000, 1_000_000} {
		p := backend(t, "gateway")
		big := strings.Repeat("x", size)
		require.NoError(t, p.Write([]byte("{\n\"jsonrpc\":\"2.0\",\r\n\"id\":1,\"method\":\"tools/call\",\"params\":{\"x\":\""+big+"\"}}")))
		line, err := p.Read()
		require.NoError(t, err)
		require.Contains(t, string(line), `{"jsonrpc":"2.0","id":1,"result":`)
		require.NoError(t, p.CloseWrite())
		_, err = p.Read()
		require.ErrorIs(t, err, io.EOF)
		require.NoError(t, p.Close())
	}
}

func TestAClientThatIsGoneIsNoSignal(t *testing.T) {
	t.Setenv(role, "gateway")
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	cmd.Stdout = w
	require.NoError(t, cmd.Start())
	require.NoError(t, r.Close())
	require.NoError(t, w.Close())
	_, err = io.WriteString(stdin, `{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n")
	require.NoError(t, err)
	require.EqualError(t, cmd.Wait(), "exit status 2", "an error, not SIGPIPE")
}

// raw speaks lines to a gateway.
func raw(t *testing.T, g *gateway.Gateway, b relay.End) (send func(string), lines *bufio.Reader, served chan error, hangUp func()) {
	toGateway, fromClient := io.Pipe()
	toClient, fromGateway := io.Pipe()
	served = make(chan error, 1)
	go func() { served <- g.Serve(context.Background(), relay.Lines(toGateway, fromGateway, 1<<20), b) }()
	return func(m string) {
		_, err := io.WriteString(fromClient, m+"\n")
		require.NoError(t, err)
	}, bufio.NewReader(toClient), served, func() { fromClient.Close() }
}

func TestBackendThatFails(t *testing.T) {
	t.Run("does not start", func(t *testing.T) {
		_, err := gateway.Start(gateway.Command{Args: []string{"./no-such-backend", "--flag"}})
		require.ErrorContains(t, err, `backend "./no-such-backend --flag" does not start`)
		_, err = gateway.Start(gateway.Command{})
		require.ErrorContains(t, err, "command is empty")
	})
	t.Run("exits at once", func(t *testing.T) {
		g, _ := newGateway(t, words(), nil)
		_, lines, served, hangUp := raw(t, g, backend(t, "exits"))
		_, err := lines.ReadString('\n')
		require.ErrorIs(t, err, io.EOF)
		err = <-served
		require.ErrorContains(t, err, "ended before it had sent a message (exit status 3)")
		require.ErrorContains(t, err, os.Args[0])
		hangUp()
	})
	t.Run("dies during a call", func(t *testing.T) {
		g, _ := newGateway(t, words(guard()), nil)
		send, lines, served, hangUp := raw(t, g, backend(t, "dies"))
		send(`{"jsonrpc":"2.0","id":1,"method":"initialize"}`)
		_, err := lines.ReadString('\n')
		require.NoError(t, err)
		send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t"}}`)
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		require.Contains(t, line, `"id":2,"error":{"code":-32603`)
		require.ErrorContains(t, <-served, "ended (exit status 0)")
		hangUp()
	})
	t.Run("does not want to end", func(t *testing.T) {
		g, _ := newGateway(t, words(), func(o *gateway.Options) { o.Relay.Grace = 10 * time.Millisecond })
		_, lines, served, hangUp := raw(t, g, backend(t, "stubborn"))
		_, err := lines.ReadString('\n')
		require.NoError(t, err)
		hangUp()
		require.NoError(t, <-served)
	})
}

func TestBackendInheritsTheEnvironmentButForWhatIsHidden(t *testing.T) {
	t.Setenv("A_SECRET", "s")
	t.Setenv("ANOTHER", "o")
	g, _ := newGateway(t, words(), nil)
	_, lines, served, hangUp := raw(t, g, backend(t, "env"))
	line, err := lines.ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, `{"secret":"","other":"o"}`)
	hangUp()
	require.NoError(t, <-served)
}

// A host that is down blocks its events and comes back by itself.
type downHosts struct{ listings []chain.Listing }

func (d downHosts) Listings(ctx context.Context) ([]chain.Listing, uint64) { return d.listings, 1 }
func (downHosts) Close(context.Context) error                              { return nil }

func TestGoverns(t *testing.T) {
	scope := func(event string, phase abi.Phase) relay.Scope { return relay.Scope{Event: event, Phase: phase} }
	t.Run("what is hooked", func(t *testing.T) {
		g, _ := newGateway(t, words(abi.Descriptor{Name: "guard", Type: abi.Validation, Hooks: abi.On(abi.Request, "tools/*")}), nil)
		require.True(t, g.Governs(scope("tools/call", abi.Request)), "while nothing is known")
		require.NoError(t, g.Ready(t.Context()))
		require.True(t, g.Governs(scope("tools/call", abi.Request)))
		require.False(t, g.Governs(scope("tools/call", abi.Response)))
		require.False(t, g.Governs(scope("prompts/get", abi.Request)))
		require.True(t, g.Governs(scope(relay.AnyEvent, abi.Request)))
		require.False(t, g.Governs(scope(relay.AnyEvent, abi.Response)))
	})
	t.Run("all that a host which is down may hook", func(t *testing.T) {
		down := chain.Listing{Err: fmt.Errorf("down")}
		for failOpen, want := range map[bool]bool{false: true, true: false} {
			down.FailOpen = failOpen
			down.Host = hosts.InProcess("h", words(), hosts.Options{})
			g := gatewayOf(t, downHosts{[]chain.Listing{down}}, slog.DiscardHandler)
			require.Equal(t, want, g.Governs(scope("tools/call", abi.Response)))
			require.Equal(t, want, g.Governs(scope(relay.AnyEvent, abi.Response)))
			require.ErrorContains(t, g.Ready(t.Context()), "down")
			v := g.Govern(t.Context(), relay.Operation{Scope: scope("tools/call", abi.Response), Payload: []byte(`{}`), Arrived: time.Now()})
			require.Equal(t, want, v.Block != nil)
			if want {
				require.Equal(t, abi.StatusDiscoveryFailed, v.Block.Reason)
			}
			require.NoError(t, g.Close(t.Context()))
		}
	})
	t.Run("what is required and missing", func(t *testing.T) {
		policy, err := chain.NewPolicy([]chain.Entry{{Interceptor: "needed", Required: true, Hooks: abi.On(abi.Request, "roots/list")}})
		require.NoError(t, err)
		g, _ := newGateway(t, words(), func(o *gateway.Options) { o.Policy = policy })
		require.NoError(t, g.Ready(t.Context()))
		require.True(t, g.Governs(scope("roots/list", abi.Request)))
		require.True(t, g.Governs(scope(relay.AnyEvent, abi.Request)))
		require.False(t, g.Governs(scope("tools/call", abi.Request)))
	})
	t.Run("plans that peers make up are not kept without bound", func(t *testing.T) {
		g, _ := newGateway(t, words(abi.Descriptor{Name: "guard", Type: abi.Validation, Hooks: abi.On(abi.Request, "x/9999")}), nil)
		require.NoError(t, g.Ready(t.Context()))
		for i := range 10_000 {
			require.Equal(t, i == 9999, g.Governs(scope(fmt.Sprintf("x/%d", i), abi.Request)))
		}
	})
}

// One chain over two hosts: mutations in one global order, validators behind
// them, equal names once per host.
func TestTwoHostsAreOneChain(t *testing.T) {
	var mu sync.Mutex
	var ran []string
	host := func(name string, list ...abi.Descriptor) *hosts.Host {
		return hosts.InProcess(name, &set{list: list, invoke: func(_ context.Context, inv abi.Invocation) (abi.Result, error) {
			r := abi.Result{Interceptor: inv.Name, Phase: inv.Phase, Type: abi.Validation, Valid: true}
			mu.Lock()
			defer mu.Unlock()
			if strings.HasPrefix(inv.Name, "add-") {
				r.Type, r.Modified = abi.Mutation, true
				r.Payload = bytes.Replace(inv.Payload, []byte("]"), []byte(`,"`+inv.Name+`@`+name+`"]`), 1)
			} else {
				ran = append(ran, name+" sees "+string(inv.Payload))
			}
			return r, nil
		}}, hosts.Options{})
	}
	add := func(name string, priority int32) abi.Descriptor {
		return abi.Descriptor{Name: name, Type: abi.Mutation, Hooks: abi.On(abi.Request, "*"), PriorityHint: abi.Priority(priority)}
	}
	check := abi.Descriptor{Name: "check", Type: abi.Validation, Hooks: abi.On(abi.Request, "*")}
	g := gatewayOf(t, hosts.NewSet([]*hosts.Host{
		host("one", add("add-late", 1000), add("add-same", 0), check), host("two", add("add-early", -1000), add("add-same", 0), check),
	}, hosts.SetOptions{}), slog.DiscardHandler)
	d := g.Govern(t.Context(), relay.Operation{Scope: relay.Scope{Event: "x/y", Phase: abi.Request}, Payload: []byte(`{"a":[0]}`), Arrived: time.Now()})
	require.Nil(t, d.Block)
	require.Equal(t, `{"a":[0,"add-early@two","add-same@one","add-same@two","add-late@one"]}`, string(d.Payload))
	require.ElementsMatch(t, []string{"one sees " + string(d.Payload), "two sees " + string(d.Payload)}, ran)
	require.NoError(t, g.Close(t.Context()))
}

// A slow sink delays nobody, and is let finish at shutdown.
func TestSinksAreDrained(t *testing.T) {
	release, recorded := make(chan struct{}), make(chan struct{})
	s := words(sink())
	s.invoke = func(_ context.Context, inv abi.Invocation) (abi.Result, error) {
		<-release
		close(recorded)
		return abi.Result{Type: abi.Sink, Interceptor: inv.Name, Phase: inv.Phase, Recorded: true}, nil
	}
	l := &logbook.Book{}
	g := gatewayOf(t, hosts.NewSet([]*hosts.Host{hosts.InProcess("local", s, hosts.Options{})}, hosts.SetOptions{}), slog.NewTextHandler(l, nil))
	d := g.Govern(t.Context(), relay.Operation{Scope: relay.Scope{Event: "tools/call", Phase: abi.Request}, Payload: []byte(`{}`), Arrived: time.Now()})
	require.Equal(t, relay.Decision{}, d)
	require.Contains(t, l.String(), `plan="sink@local sink started`)
	closed := make(chan error)
	go func() { closed <- g.Close(context.Background()) }()
	close(release)
	<-recorded
	require.NoError(t, <-closed)
}

func TestTheAggregateDeadlineRunsFromArrival(t *testing.T) {
	s := words(guard())
	s.invoke = func(ctx context.Context, inv abi.Invocation) (abi.Result, error) {
		<-ctx.Done()
		return abi.Result{}, ctx.Err()
	}
	g, l := newGateway(t, s, func(o *gateway.Options) { o.Timeout = time.Hour })
	v := g.Govern(t.Context(), relay.Operation{
		Scope: relay.Scope{Event: "tools/call", Phase: abi.Request}, Payload: []byte(`{"name":"t"}`), Arrived: time.Now().Add(-time.Hour),
	})
	require.Contains(t, []abi.Status{abi.StatusTimeout, abi.StatusDiscoveryFailed}, v.Block.Reason)
	require.Contains(t, l.String(), `"msg":"blocked"`)
}

func TestLogShowsNoMoreThanItMay(t *testing.T) {
	g, l := newGateway(t, words(guard()), func(o *gateway.Options) { o.LogMessages = true })
	require.NoError(t, g.Ready(t.Context()))
	for _, uri := range []string{"https://user:pass@host/path?token=hush#frag", "data:text/plain,hush", "file:///a%2fb?hush", "%zz:hush"} {
		payload, err := json.Marshal(map[string]string{"uri": uri})
		require.NoError(t, err)
		g.Govern(t.Context(), relay.Operation{Scope: relay.Scope{Event: "resources/read", Phase: abi.Response}, Request: payload, Payload: []byte(`{"x":"hush"}`), Arrived: time.Now(), Session: "hush", Reference: "R"})
	}
	require.NotContains(t, l.String(), "hush")
	require.NotContains(t, l.String(), "pass")
	require.Contains(t, l.String(), `"name":"https://host/path"`)
	require.Contains(t, l.String(), `"reference":"R"`)
	g.Govern(t.Context(), relay.Operation{Scope: relay.Scope{Event: "tools/call", Phase: abi.Request}, Payload: []byte(`{"name":"evil"}`), Arrived: time.Now()})
	require.Contains(t, l.String(), `"messages":["evil found"]`)
}
