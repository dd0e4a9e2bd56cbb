package gateway_test

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway"
	"github.com/weir-mcp/weir/gateway/hosts"
	"github.com/weir-mcp/weir/internal/leak"
	"github.com/weir-mcp/weir/runtime/library"
	"github.com/weir-mcp/weir/runtime/server"
)

// recorder is an interceptor that keeps what it was last asked.
type recorder struct {
	mu   sync.Mutex
	last abi.Invocation
}

func (r *recorder) library(t *testing.T) *library.Library {
	t.Helper()
	lib := library.New(library.Options{})
	require.NoError(t, lib.Register(library.Validator("watch", abi.OnBoth("*"), func(_ context.Context, inv *abi.Invocation) (library.Verdict, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.last = *inv
		return library.Allow(), nil
	})))
	return lib
}

func (r *recorder) take() abi.Invocation {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.last
	r.last = abi.Invocation{}
	return last
}

// What a live request says reaches every host, over HTTP too: the principal with
// the claims that may travel, trace, session and time. The request that a response
// answers reaches those of this process, and others only where told to.
func TestTheContextReachesEveryHost(t *testing.T) {
	var own, plain, told recorder
	remote := func(name string, r *recorder, o hosts.Options) *hosts.Host {
		web := httptest.NewServer(server.New(r.library(t), server.Options{Name: name, Version: "1", Logger: quiet, TrustContext: true}).Handler())
		t.Cleanup(web.Close)
		o.Logger = quiet
		return hosts.HTTP(name, hosts.Endpoint{URL: web.URL}, o)
	}
	c := newChain(t, gateway.ChainOptions{
		Hosts: hosts.NewSet([]*hosts.Host{
			hosts.InProcess("own", own.library(t), hosts.Options{}),
			remote("plain", &plain, hosts.Options{}),
			remote("told", &told, hosts.Options{Request: true}),
		}, hosts.SetOptions{}),
		Claims: []string{"team"},
	})
	const params = `{"name":"t","_meta":{"traceparent":"` + traceA + `","tracestate":"vendor=1","baggage":"user=ann"}}`
	for _, phase := range []abi.Phase{abi.Request, abi.Response} {
		op := gateway.Operation{Event: abi.ToolsCall, Phase: phase, Payload: []byte(params), Context: &abi.Context{SessionID: "s", Principal: &abi.Principal{
			Type: abi.PrincipalUser, ID: "ann", Claims: []byte(`{"team":"red","email":"ann@example.com"}`)}}}
		if phase == abi.Response {
			op.Payload, op.Request = []byte(`{"content":[]}`), []byte(params)
		}
		out := c.Execute(t.Context(), op)
		require.True(t, out.Released(), "%+v", out.Aborted)
		for name, r := range map[string]*recorder{"own": &own, "plain": &plain, "told": &told} {
			got := r.take()
			require.Equal(t, phase, got.Phase, name)
			require.Equal(t, "ann", got.Context.Principal.ID, name)
			require.JSONEq(t, `{"team":"red"}`, string(got.Context.Principal.Claims), name)
			require.Equal(t, "s", got.Context.SessionID, name)
			require.Equal(t, traceA[3:35], got.Context.TraceID, name)
			require.Equal(t, traceA[36:52], got.Context.SpanID, name)
			require.NotEmpty(t, got.Context.Timestamp, name)
			if phase == abi.Response && name != "plain" {
				require.Equal(t, params, string(got.Request), name)
			} else {
				require.Nil(t, got.Request, name)
			}
		}
	}
}

// A session that the gateway relays fills the context by itself, in both eras.
func TestARelayedSessionFillsTheContext(t *testing.T) {
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			leak.Goroutines(t, "weir/gateway.(", "weir/gateway/relay.", "weir/gateway/hosts.", "weir/gateway/chain.")
			var seen recorder
			g := gatewayOf(t, hosts.NewSet([]*hosts.Host{hosts.InProcess("own", seen.library(t), hosts.Options{Logger: quiet})}, hosts.SetOptions{}), slog.DiscardHandler)
			session, served, _ := connect(t, g, backend(t, "server"), version)
			before := time.Now()
			_, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": "hi"}, Meta: mcp.Meta{"traceparent": traceA}})
			require.NoError(t, err)
			got := seen.take()
			require.Equal(t, abi.ToolsCall, got.Event)
			require.Equal(t, abi.Response, got.Phase)
			require.Equal(t, traceA[3:35], got.Context.TraceID)
			require.NotEmpty(t, got.Context.SessionID)
			require.Nil(t, got.Context.Principal, "stdio has nobody who is authenticated")
			at, err := time.Parse(time.RFC3339Nano, got.Context.Timestamp)
			require.NoError(t, err)
			require.WithinDuration(t, before, at, time.Minute)
			require.Contains(t, string(got.Request), `"text":"hi"`)

			_, err = callTool(session, "echo", "again")
			require.NoError(t, err)
			require.Equal(t, got.Context.SessionID, seen.take().Context.SessionID, "of one session")
			require.NoError(t, session.Close())
			<-served
			require.NoError(t, g.Close(context.Background()))
		})
	}
}
