//lint:file-ignore SA1019 sampling and roots are deprecated, and governed for as long as a peer may use them

package middleware_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway"
	"github.com/weir-mcp/weir/gateway/hosts"
	"github.com/weir-mcp/weir/gateway/middleware"
	"github.com/weir-mcp/weir/internal/leak"
	"github.com/weir-mcp/weir/runtime/library"
)

const patience = 20 * time.Second

// The versions of the two eras.
const (
	sessionEra   = "2025-11-25"
	statelessEra = "2026-07-28"
)

// trail is a chain of three interceptors, which write down what they see: a
// mutator that hides "secret", a validator that refuses "evil", and a sink.
type trail struct {
	chain *gateway.Chain
	mu    sync.Mutex
	seen  []string
	invs  []abi.Invocation
}

func (tr *trail) note(inv *abi.Invocation) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.seen = append(tr.seen, fmt.Sprintf("%s %s %s", inv.Name, inv.Event, inv.Phase))
	tr.invs = append(tr.invs, *inv)
}

func (tr *trail) all() []string {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return append([]string(nil), tr.seen...)
}

// last is the last invocation of an event and phase.
func (tr *trail) last(t *testing.T, event string, phase abi.Phase) abi.Invocation {
	t.Helper()
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for i := len(tr.invs) - 1; i >= 0; i-- {
		if tr.invs[i].Event == event && tr.invs[i].Phase == phase {
			return tr.invs[i]
		}
	}
	t.Fatalf("nobody was asked about the %s of %s", phase, event)
	return abi.Invocation{}
}

func newTrail(t *testing.T, o gateway.ChainOptions, more ...library.Native) *trail {
	t.Helper()
	leak.Goroutines(t, "weir/gateway.", "weir/gateway/chain.", "weir/gateway/hosts.", "weir/gateway/middleware.", "weir/runtime/library.")
	tr := &trail{}
	lib := library.New(library.Options{})
	natives := append([]library.Native{
		library.Mutator("hide", abi.OnBoth("*"), func(_ context.Context, inv *abi.Invocation) (json.RawMessage, error) {
			tr.note(inv)
			if !bytes.Contains(inv.Payload, []byte("secret")) {
				return nil, nil
			}
			return bytes.ReplaceAll(inv.Payload, []byte("secret"), []byte("******")), nil
		}),
		library.Validator("guard", abi.OnBoth("*"), func(_ context.Context, inv *abi.Invocation) (library.Verdict, error) {
			tr.note(inv)
			if bytes.Contains(inv.Payload, []byte("evil")) {
				return library.Deny("evil found"), nil
			}
			return library.Allow(), nil
		}),
	}, more...)
	for _, n := range natives {
		require.NoError(t, lib.Register(n))
	}
	o.Hosts = hosts.NewSet([]*hosts.Host{hosts.InProcess("local", lib, hosts.Options{})}, hosts.SetOptions{})
	o.Logger = slog.New(slog.DiscardHandler)
	c, err := gateway.NewChain(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close(context.Background())) })
	require.NoError(t, c.Ready(t.Context()))
	tr.chain = c
	return tr
}

type textArgs struct {
	Text string `json:"text"`
}

// world is a server with something of everything; what its tools were called
// with is in calls.
type world struct {
	mu    sync.Mutex
	calls []string
}

func (w *world) called(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, text)
}

func (w *world) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.calls...)
}

type searchParams struct {
	mcp.ParamsBase
	Query string `json:"query"`
	Big   any    `json:"big,omitempty"`
}

type searchResult struct {
	mcp.ResultBase
	Hits []string `json:"hits"`
}

func text(s string) []mcp.Content { return []mcp.Content{&mcp.TextContent{Text: s}} }

func (w *world) server(t *testing.T) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "world", Version: "1"}, &mcp.ServerOptions{
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})
	tool := func(name string, handle func(ctx context.Context, r *mcp.CallToolRequest, in textArgs) (*mcp.CallToolResult, error)) {
		mcp.AddTool(s, &mcp.Tool{Name: name, Description: "says <secret>"}, func(ctx context.Context, r *mcp.CallToolRequest, in textArgs) (*mcp.CallToolResult, any, error) {
			w.called(name + " " + in.Text)
			res, err := handle(ctx, r, in)
			return res, nil, err
		})
	}
	tool("echo", func(_ context.Context, _ *mcp.CallToolRequest, in textArgs) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: text("heard " + in.Text)}, nil
	})
	tool("leak", func(context.Context, *mcp.CallToolRequest, textArgs) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: text("the secret")}, nil
	})
	tool("curse", func(context.Context, *mcp.CallToolRequest, textArgs) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: text("pure evil")}, nil
	})
	// Asks the client's model: by a request of its own in the session era, inside
	// the result in the stateless one.
	tool("ask", func(ctx context.Context, r *mcp.CallToolRequest, in textArgs) (*mcp.CallToolResult, error) {
		if got, ok := r.Params.InputResponses["m"].(*mcp.CreateMessageWithToolsResult); ok {
			return &mcp.CallToolResult{Content: got.Content}, nil
		}
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"m": &mcp.CreateMessageParams{
			MaxTokens: 9, Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: in.Text}}},
		}}, RequestState: "kept"}, nil
	})
	// Asks the person and looks at the roots.
	tool("person", func(_ context.Context, r *mcp.CallToolRequest, in textArgs) (*mcp.CallToolResult, error) {
		got, ok := r.Params.InputResponses["p"].(*mcp.ElicitResult)
		if !ok {
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{
				"p": &mcp.ElicitParams{Message: in.Text, RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}}}},
				"r": &mcp.ListRootsParams{},
			}}, nil
		}
		roots := r.Params.InputResponses["r"].(*mcp.ListRootsResult)
		return &mcp.CallToolResult{Content: text(fmt.Sprint(got.Action, " ", got.Content["name"], " at ", roots.Roots[0].Name))}, nil
	})
	tool("insatiable", func(context.Context, *mcp.CallToolRequest, textArgs) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"r": &mcp.ListRootsParams{}}}, nil
	})
	tool("busy", func(context.Context, *mcp.CallToolRequest, textArgs) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{}, RequestState: "later"}, nil
	})
	s.AddPrompt(&mcp.Prompt{Name: "greet"}, func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "a secret for " + r.Params.Arguments["who"]}}}}, nil
	})
	s.AddResource(&mcp.Resource{URI: "file:///a", Name: "a"}, func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, Text: "a secret file"}}}, nil
	})
	require.NoError(t, mcp.AddReceivingCustomMethod(s, "acme/search", func(_ context.Context, _ *mcp.ServerSession, p *searchParams) (*searchResult, error) {
		return &searchResult{Hits: []string{p.Query, "secret"}}, nil
	}))
	return s
}

// people are the handlers of a client.
func people() *mcp.ClientOptions {
	return &mcp.ClientOptions{
		CreateMessageHandler: func(_ context.Context, r *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			said := r.Params.Messages[0].Content.(*mcp.TextContent).Text
			return &mcp.CreateMessageResult{Role: "assistant", Model: "m", Content: &mcp.TextContent{Text: "model saw " + said + ", has a secret"}}, nil
		},
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "secret of " + r.Params.Message}}, nil
		},
	}
}

// transports are the ways by which the tests connect.
var transports = []string{"memory", "http"}

// connect joins a client to a server.
func connect(t *testing.T, how, version string, c *mcp.Client, s *mcp.Server) *mcp.ClientSession {
	t.Helper()
	c.AddRoots(&mcp.Root{URI: "file:///secret", Name: "secret root"})
	require.NoError(t, mcp.AddSendingCustomMethod[*searchParams, *searchResult](c, "acme/search"))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	var transport mcp.Transport
	if how == "memory" {
		client, server := mcp.NewInMemoryTransports()
		_, err := s.Connect(ctx, server, nil)
		require.NoError(t, err)
		transport = client
	} else {
		web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: version == statelessEra}))
		t.Cleanup(web.Close)
		transport = &mcp.StreamableClientTransport{Endpoint: web.URL, HTTPClient: web.Client()}
	}
	session, err := c.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	require.NoError(t, err)
	t.Cleanup(func() { session.Close() })
	return session
}

// say calls a tool with a text.
func say(session *mcp.ClientSession, tool, words string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: map[string]any{"text": words}})
	if err != nil {
		return "", err
	}
	var said []string
	for _, c := range r.Content {
		said = append(said, c.(*mcp.TextContent).Text)
	}
	return strings.Join(said, "|"), nil
}

// sides run a test with the chain at the client and at the server, over both
// transports and in both eras.
func sides(t *testing.T, test func(t *testing.T, at side)) {
	for _, where := range []string{"client", "server"} {
		for _, how := range transports {
			for _, version := range []string{sessionEra, statelessEra} {
				t.Run(where+" "+how+" "+version, func(t *testing.T) {
					test(t, side{client: where == "client", how: how, version: version})
				})
			}
		}
	}
}

type side struct {
	client  bool
	how     string
	version string
}

// connect joins a client and a server of which one is governed.
func (at side) connect(t *testing.T, tr *trail, w *world, o middleware.Options) *mcp.ClientSession {
	t.Helper()
	server := w.server(t)
	impl := &mcp.Implementation{Name: "client", Version: "1"}
	if at.client {
		return connect(t, at.how, at.version, middleware.NewClient(impl, people(), tr.chain, o), server)
	}
	middleware.GovernServer(server, tr.chain, o)
	return connect(t, at.how, at.version, mcp.NewClient(impl, people()), server)
}

// blockedBy is the JSON-RPC error in err.
func blockedBy(t *testing.T, err error) *jsonrpc.Error {
	t.Helper()
	var blocked *jsonrpc.Error
	require.True(t, errors.As(err, &blocked), "%v", err)
	return blocked
}

// modelThatSays counts how often it is asked.
func modelThatSays(asked *int, answer *string) func(context.Context, *mcp.CreateMessageWithToolsRequest) (*mcp.CreateMessageWithToolsResult, error) {
	return func(context.Context, *mcp.CreateMessageWithToolsRequest) (*mcp.CreateMessageWithToolsResult, error) {
		*asked++
		return &mcp.CreateMessageWithToolsResult{Role: "assistant", Model: "m", Content: text(*answer)}, nil
	}
}
