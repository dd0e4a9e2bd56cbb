package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway"
	"github.com/weir-mcp/weir/gateway/chain"
	"github.com/weir-mcp/weir/gateway/hosts"
	"github.com/weir-mcp/weir/gateway/relay"
	"github.com/weir-mcp/weir/internal/leak"
	"github.com/weir-mcp/weir/internal/logbook"
)

// listener remembers what it was invoked with, and says yes to all of it.
type listener struct {
	name string
	mu   sync.Mutex
	got  []abi.Invocation
}

func (l *listener) Name() string { return l.name }

func (l *listener) Invoke(_ context.Context, inv abi.Invocation) (abi.Result, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.got = append(l.got, inv)
	return abi.Result{Type: abi.Validation, Interceptor: inv.Name, Phase: inv.Phase, Valid: true}, nil
}

func (l *listener) last(t *testing.T) abi.Invocation {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	require.NotEmpty(t, l.got)
	return l.got[len(l.got)-1]
}

func (l *listener) calls() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.got)
}

func listing(h chain.Host, list ...abi.Descriptor) chain.Listing {
	return chain.Listing{Host: h, Interceptors: list}
}

func watcher(name string) abi.Descriptor {
	return abi.Descriptor{Name: name, Type: abi.Validation, Hooks: abi.OnBoth("*")}
}

// newChain is a chain that the test closes.
func newChain(t *testing.T, o gateway.ChainOptions) *gateway.Chain {
	t.Helper()
	leak.Goroutines(t, "weir/gateway.(", "weir/gateway/chain.")
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	c, err := gateway.NewChain(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close(context.Background())) })
	return c
}

func TestOptionsThatCannotMeanAnythingAreRefused(t *testing.T) {
	_, err := gateway.NewChain(gateway.ChainOptions{})
	require.ErrorContains(t, err, "needs hosts")
	_, err = gateway.New(gateway.Options{})
	require.ErrorContains(t, err, "needs hosts")
	_, err = gateway.ExecuteOnce(t.Context(), gateway.ChainOptions{}, gateway.Operation{Event: abi.ToolsCall})
	require.ErrorContains(t, err, "needs hosts")
	for _, event := range []string{"", "initialize", "tasks/get", "tasks/*", "notifications/*", "call", "interceptors/list"} {
		_, err := gateway.NewChain(gateway.ChainOptions{Hosts: gateway.Fixed(), Events: []string{"tools/call", event}})
		require.ErrorContains(t, err, fmt.Sprintf("%q", event))
	}
	for _, event := range []string{"*", "tools/*", "*/list", "llm/completion", "acme/op", "acme/*", "tools/call*"} {
		newChain(t, gateway.ChainOptions{Hosts: gateway.Fixed(), Events: []string{event}})
	}
}

func TestAChainOverHostsOfOnesOwn(t *testing.T) {
	h := &listener{name: "own"}
	c := newChain(t, gateway.ChainOptions{Hosts: gateway.Fixed(listing(h, watcher("w")))})
	require.NoError(t, c.Ready(t.Context()))
	require.Len(t, c.Listings(t.Context()), 1)

	out := c.Execute(t.Context(), gateway.Operation{Event: "llm/completion", Payload: json.RawMessage(`{"messages":[]}`)})
	require.True(t, out.Released())
	require.Equal(t, `{"messages":[]}`, string(out.FinalPayload))
	require.Equal(t, abi.Request, out.Phase, "which is the default")
	require.Equal(t, abi.Sending, out.Direction)
	require.NotEmpty(t, out.Reference)
	require.Nil(t, out.Block())
	require.Nil(t, out.Refusal())
	require.Len(t, out.Results, 1)

	out = c.Execute(t.Context(), gateway.Operation{Event: "tools/call", Phase: abi.Response, Payload: json.RawMessage(`{}`), Request: json.RawMessage(`{"name":"t"}`)})
	require.True(t, out.Released())
	require.Equal(t, `{"name":"t"}`, string(h.last(t).Request), "a response goes with its request")

	out = c.Execute(t.Context(), gateway.Operation{Event: "ping"})
	require.True(t, out.Released())
	require.Empty(t, out.Results, "which is no event")

	plan := c.Plan(t.Context(), relay.Scope{Event: "tools/call", Phase: abi.Request})
	require.Len(t, plan.Steps(), 1)
	require.Same(t, plan, c.Plan(t.Context(), relay.Scope{Event: "tools/call", Phase: abi.Request}), "plans are kept")
}

func TestABlockedOperationSaysWhatItsRequesterIsTold(t *testing.T) {
	h := hosts.InProcess("h", words(guard()), hosts.Options{})
	c := newChain(t, gateway.ChainOptions{Hosts: hosts.NewSet([]*hosts.Host{h}, hosts.SetOptions{})})
	out := c.Execute(t.Context(), gateway.Operation{Event: abi.ToolsCall, Phase: abi.Response, Payload: json.RawMessage(`{"content":["evil"]}`), Reference: "R"})
	require.False(t, out.Released())
	require.Nil(t, out.FinalPayload)
	refusal := out.Refusal()
	require.Equal(t, abi.CodeInvalidParams, refusal.Code())
	require.EqualError(t, refusal, "blocked by an interceptor (reference R)")
	require.JSONEq(t, `{"reason":"validation_failed","reference":"R","event":"tools/call","phase":"response","mayHaveRun":true}`, string(refusal.AppendData(nil, false)))
	require.JSONEq(t, `{"reason":"validation_failed","reference":"R","event":"tools/call","phase":"response","mayHaveRun":true,
		"interceptor":"guard","messages":[{"message":"evil found","severity":"error"}]}`, string(refusal.AppendData(nil, true)))
}

// closer counts how often it is closed.
type closer struct {
	gateway.Hosts
	mu     sync.Mutex
	closed int
}

func (c *closer) Close(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed++
	return nil
}

func (c *closer) times() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

func TestExecuteOnceClosesWhatItOpened(t *testing.T) {
	own := &closer{Hosts: gateway.Fixed(listing(&listener{name: "own"}, watcher("w")))}
	o := gateway.ChainOptions{Hosts: own, Logger: slog.New(slog.DiscardHandler)}
	out, err := gateway.ExecuteOnce(t.Context(), o, gateway.Operation{Event: abi.ToolsCall, Payload: json.RawMessage(`{"name":"t"}`)})
	require.NoError(t, err)
	require.True(t, out.Released())
	require.Equal(t, 1, own.times())

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	out, err = gateway.ExecuteOnce(ctx, o, gateway.Operation{Event: abi.ToolsCall, Payload: json.RawMessage(`{"name":"t"}`)})
	require.NoError(t, err)
	require.Equal(t, abi.StatusCancelled, out.Status)
	require.Equal(t, 2, own.times(), "whatever becomes of the operation")
}

func TestOnlyTheEventsOnTheListAreGoverned(t *testing.T) {
	h := &listener{name: "own"}
	policy, err := chain.NewPolicy([]chain.Entry{{Interceptor: "needed", Required: true}})
	require.NoError(t, err)
	for _, tt := range []struct {
		events   []string
		governed map[string]bool
	}{
		{nil, map[string]bool{"tools/call": true, "prompts/get": true, "ping": false}},
		{[]string{"tools/*"}, map[string]bool{"tools/call": true, "tools/list": true, "prompts/get": false}},
		{[]string{"prompts/get", "acme/x"}, map[string]bool{"tools/call": false, "prompts/get": true, "acme/x": true}},
		{[]string{}, map[string]bool{"tools/call": false, "": false}},
	} {
		t.Run(fmt.Sprint(tt.events), func(t *testing.T) {
			c := newChain(t, gateway.ChainOptions{Hosts: gateway.Fixed(listing(h, watcher("w"))), Policy: policy, Events: tt.events})
			for event, want := range tt.governed {
				require.Equal(t, want, c.Governs(relay.Scope{Event: event, Phase: abi.Request}), event)
				if event == "" {
					continue
				}
				out := c.Execute(t.Context(), gateway.Operation{Event: event, Payload: json.RawMessage(`{}`)})
				require.Equal(t, !want, out.Released(), "what is required and missing blocks what is governed, and nothing else")
				require.Equal(t, want, c.Plan(t.Context(), relay.Scope{Event: event, Phase: abi.Request}).Blocked())
			}
		})
	}
}

const (
	traceA = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	traceB = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
)

// Who an operation runs for: the live request first, then its trace, then the
// defaults, then what the provider makes of it.
func TestContext(t *testing.T) {
	arrived := time.Date(2026, 10, 8, 12, 34, 56, 789, time.FixedZone("", 3600))
	stamp := "2026-10-08T11:34:56.000000789Z"
	user := func(id, claims string) *abi.Principal {
		p := &abi.Principal{Type: abi.PrincipalUser, ID: id}
		if claims != "" {
			p.Claims = json.RawMessage(claims)
		}
		return p
	}
	meta := func(v string) json.RawMessage {
		return json.RawMessage(`{"name":"t","_meta":{"traceparent":"` + v + `"}}`)
	}
	for _, tt := range []struct {
		name string
		o    gateway.ChainOptions
		op   gateway.Operation
		want abi.Context
	}{
		{name: "nothing but the time", want: abi.Context{Timestamp: stamp}},
		{
			name: "what the request says",
			op:   gateway.Operation{Context: &abi.Context{Principal: user("u", ""), SessionID: "s", TraceID: "t", SpanID: "p"}},
			want: abi.Context{Principal: user("u", ""), SessionID: "s", TraceID: "t", SpanID: "p", Timestamp: stamp},
		},
		{
			name: "defaults fill what is open, but for the time",
			o:    gateway.ChainOptions{Context: &abi.Context{Principal: user("d", ""), SessionID: "d", TraceID: "d", SpanID: "d", Timestamp: "2000-01-01T00:00:00Z"}},
			op:   gateway.Operation{Context: &abi.Context{SessionID: "s"}},
			want: abi.Context{Principal: user("d", ""), SessionID: "s", TraceID: "d", SpanID: "d", Timestamp: stamp},
		},
		{
			name: "a time stamp of the request's own",
			op:   gateway.Operation{Context: &abi.Context{Timestamp: "2026-01-01T00:00:00Z"}},
			want: abi.Context{Timestamp: "2026-01-01T00:00:00Z"},
		},
		{
			name: "the trace in the message's _meta, before the transport's",
			op:   gateway.Operation{Payload: meta(traceA), Traceparent: traceB},
			want: abi.Context{TraceID: traceA[3:35], SpanID: traceA[36:52], Timestamp: stamp},
		},
		{
			name: "the transport's trace",
			op:   gateway.Operation{Traceparent: traceB},
			want: abi.Context{TraceID: traceB[3:35], SpanID: traceB[36:52], Timestamp: stamp},
		},
		{
			name: "a trace that is none is ignored, and the transport's counts",
			op:   gateway.Operation{Payload: meta("00-" + "0"), Traceparent: traceB},
			want: abi.Context{TraceID: traceB[3:35], SpanID: traceB[36:52], Timestamp: stamp},
		},
		{
			name: "a transport's trace that is none is ignored",
			op:   gateway.Operation{Traceparent: "evil\r\nx: y"},
			want: abi.Context{Timestamp: stamp},
		},
		{
			name: "of a trace id without a span the default's span is not the span",
			o:    gateway.ChainOptions{Context: &abi.Context{TraceID: "d", SpanID: "d"}},
			op:   gateway.Operation{Context: &abi.Context{TraceID: "t"}},
			want: abi.Context{TraceID: "t", Timestamp: stamp},
		},
		{
			name: "a response has the trace of its request",
			op:   gateway.Operation{Phase: abi.Response, Payload: meta(traceB), Request: meta(traceA)},
			want: abi.Context{TraceID: traceA[3:35], SpanID: traceA[36:52], Timestamp: stamp},
		},
		{
			name: "no claims unless they are named",
			op:   gateway.Operation{Context: &abi.Context{Principal: user("u", `{"email":"a@b","team":"x"}`)}},
			want: abi.Context{Principal: user("u", ""), Timestamp: stamp},
		},
		{
			name: "named claims, as spelled",
			o:    gateway.ChainOptions{Claims: []string{"team", "n"}},
			op:   gateway.Operation{Context: &abi.Context{Principal: user("u", `{ "email" : "a@b", "t\u0065am":"x", "Team":1, "n": 9007199254740993 }`)}},
			want: abi.Context{Principal: user("u", `{"t\u0065am":"x","n":9007199254740993}`), Timestamp: stamp},
		},
		{
			name: "claims that are no object are none",
			o:    gateway.ChainOptions{Claims: []string{"team"}},
			op:   gateway.Operation{Context: &abi.Context{Principal: user("u", `["team"]`)}},
			want: abi.Context{Principal: user("u", ""), Timestamp: stamp},
		},
		{
			name: "the provider has the last word, its claims are held to the list",
			o: gateway.ChainOptions{Claims: []string{"team"}, Provider: func(_ context.Context, op *gateway.Operation, c *abi.Context) error {
				if op.Event != abi.ToolsCall || c.SessionID != "s" || c.Principal.ID != "u" {
					return errors.New("it is given what is known")
				}
				c.Principal.ID, c.TraceID = "looked-up", "mine"
				c.Principal.Claims = json.RawMessage(`{"team":"x","salary":1}`)
				return nil
			}},
			op:   gateway.Operation{Context: &abi.Context{Principal: user("u", ""), SessionID: "s"}},
			want: abi.Context{Principal: user("looked-up", `{"team":"x"}`), SessionID: "s", TraceID: "mine", Timestamp: stamp},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := &listener{name: "own"}
			tt.o.Hosts = gateway.Fixed(listing(h, watcher("w")))
			tt.o.Timeout = 24 * 365 * 100 * time.Hour // it runs from the arrival
			c := newChain(t, tt.o)
			tt.op.Event, tt.op.Arrived = abi.ToolsCall, arrived
			out := c.Execute(t.Context(), tt.op)
			require.True(t, out.Released(), out.Aborted)
			require.Equal(t, tt.want, *h.last(t).Context)
			if live := tt.op.Context; live != nil && live.Principal != nil {
				require.Equal(t, "u", live.Principal.ID, "what the caller gave is the caller's")
			}
		})
	}
}

func TestAProviderThatFailsBlocks(t *testing.T) {
	h := &listener{name: "own"}
	book := &logbook.Book{}
	c := newChain(t, gateway.ChainOptions{Hosts: gateway.Fixed(listing(h, watcher("w"))), Logger: book.JSON(),
		Provider: func(context.Context, *gateway.Operation, *abi.Context) error { return errors.New("no such token") }})
	out := c.Execute(t.Context(), gateway.Operation{Event: abi.ToolsCall})
	require.Equal(t, abi.StatusDiscoveryFailed, out.Status)
	require.Zero(t, h.calls())
	require.Contains(t, book.String(), "no such token")
	require.NotContains(t, string(out.Refusal().AppendData(nil, true)), "token", "which is the operator's to know")
}

func TestObserversAreToldInTheirOrder(t *testing.T) {
	var mu sync.Mutex
	var told []string
	tell := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, fmt.Sprintf(format, args...))
	}
	h := hosts.InProcess("h", words(guard(), sink()), hosts.Options{})
	c, err := gateway.NewChain(gateway.ChainOptions{
		Hosts: hosts.NewSet([]*hosts.Host{h}, hosts.SetOptions{}), Server: "files", Logger: slog.New(slog.DiscardHandler),
		Sinks: chain.SinkOptions{Observe: func(r chain.SinkReport) { tell("sinks: %s %s", r.Name, r.Effect) }},
		Observers: []gateway.Observer{
			{Decided: func(op *gateway.Operation, out *gateway.Outcome) {
				tell("first: %s %s at %s, %s as %s", op.Event, op.Phase, op.Server, out.Status, out.Reference)
			}},
			{},
			{
				Decided: func(*gateway.Operation, *gateway.Outcome) { tell("third") },
				Sunk:    func(r chain.SinkReport) { tell("third: %s %s", r.Name, r.Effect) },
			},
		},
	})
	require.NoError(t, err)
	c.Execute(t.Context(), gateway.Operation{Event: abi.ToolsCall, Payload: json.RawMessage(`{"name":"evil"}`), Reference: "A", Server: "overridden"})
	c.Execute(t.Context(), gateway.Operation{Event: abi.PromptsGet, Payload: json.RawMessage(`{"name":"p"}`), Reference: "B"})
	require.Equal(t, []string{
		"first: tools/call request at files, validation_failed as A", "third",
		"first: prompts/get request at files, success as B", "third",
	}, told)
	told = nil
	c.Execute(t.Context(), gateway.Operation{Event: abi.ToolsCall, Payload: json.RawMessage(`{"name":"t"}`)})
	require.NoError(t, c.Close(context.Background()))
	require.Subset(t, told, []string{"sinks: sink recorded", "third: sink recorded"})
}

func TestTheLogNamesASessionByAHashOfItsID(t *testing.T) {
	book := &logbook.Book{}
	c := newChain(t, gateway.ChainOptions{Hosts: gateway.Fixed(listing(&listener{name: "own"}, watcher("w"))), Logger: book.JSON()})
	c.Execute(t.Context(), gateway.Operation{Event: abi.ToolsCall, Context: &abi.Context{SessionID: "s-1", TraceID: "t-1"}, Server: "files"})
	// As audit-trail's page says: printf %s s-1 | sha256sum | cut -c-12
	require.Contains(t, book.String(), `"session":"6a840baf5d8c"`)
	require.Contains(t, book.String(), `"trace":"t-1"`)
	require.Contains(t, book.String(), `"server":"files"`)
}
