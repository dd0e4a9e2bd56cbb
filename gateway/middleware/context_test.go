package middleware_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway"
	"github.com/weir-mcp/weir/gateway/middleware"
	"github.com/weir-mcp/weir/gateway/relay"
)

const (
	traceID = "0af7651916cd43dd8448eb211c80319c"
	spanID  = "b7ad6b7169203331"
)

// headers adds headers to each request.
type headers map[string]string

func (h headers) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, v := range h {
		r.Header.Set(name, v)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// What interceptors of a server are told of who calls: the user of the token, with
// those claims only that may travel; the trace of the HTTP request; the session.
func TestContextOfAServersRequest(t *testing.T) {
	tr := newTrail(t, gateway.ChainOptions{Events: []string{"tools/call"}, Claims: []string{"scope", "team"}})
	server := (&world{}).server(t)
	middleware.GovernServer(server, tr.chain, middleware.Options{})
	verify := func(context.Context, string, *http.Request) (*auth.TokenInfo, error) {
		return &auth.TokenInfo{UserID: "ann", Scopes: []string{"read", "write"}, Expiration: time.Now().Add(time.Hour),
			Extra: map[string]any{"team": "red", "email": "ann@example.com"}}, nil
	}
	web := httptest.NewServer(auth.RequireBearerToken(verify, nil)(
		mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)))
	t.Cleanup(web.Close)
	client := mcp.NewClient(&mcp.Implementation{Name: "client"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint:   web.URL,
		HTTPClient: &http.Client{Transport: headers{"Authorization": "Bearer x", "Traceparent": "00-" + traceID + "-" + spanID + "-01"}},
	}, &mcp.ClientSessionOptions{ProtocolVersion: sessionEra})
	require.NoError(t, err)
	defer session.Close()
	before := time.Now()
	_, err = say(session, "echo", "hi")
	require.NoError(t, err)

	for _, phase := range []abi.Phase{abi.Request, abi.Response} {
		got := tr.last(t, "tools/call", phase)
		require.Equal(t, abi.PrincipalUser, got.Context.Principal.Type)
		require.Equal(t, "ann", got.Context.Principal.ID)
		require.JSONEq(t, `{"scope":"read write","team":"red"}`, string(got.Context.Principal.Claims))
		require.Equal(t, traceID, got.Context.TraceID)
		require.Equal(t, relay.SessionName(session.ID()), got.Context.SessionID, "a name of the session, no key to it")
		at, err := time.Parse(time.RFC3339Nano, got.Context.Timestamp)
		require.NoError(t, err)
		require.WithinDuration(t, before, at, time.Minute)
		if phase == abi.Response {
			require.Contains(t, string(got.Request), `"text":"hi"`, "the request that it answers")
		}
	}
}

// A program says by itself who asks, and what a _meta says of a trace counts.
func TestContextOfAClientsRequest(t *testing.T) {
	tr := newTrail(t, gateway.ChainOptions{Events: []string{"tools/call"}})
	client := middleware.NewClient(&mcp.Implementation{Name: "client"}, nil, tr.chain, middleware.Options{
		Principal: func(context.Context, mcp.Request) *abi.Principal {
			return &abi.Principal{Type: abi.PrincipalService, ID: "batch"}
		},
	})
	session := connect(t, "memory", sessionEra, client, (&world{}).server(t))
	_, err := session.CallTool(t.Context(), &mcp.CallToolParams{
		Name: "echo", Arguments: map[string]any{"text": "hi"}, Meta: mcp.Meta{"traceparent": "00-" + traceID + "-" + spanID + "-01"},
	})
	require.NoError(t, err)
	got := tr.last(t, "tools/call", abi.Request)
	require.Equal(t, "batch", got.Context.Principal.ID)
	require.Equal(t, traceID, got.Context.TraceID)
	require.NotEmpty(t, got.Context.SessionID)
	require.Equal(t, got.Context.SessionID, tr.last(t, "tools/call", abi.Response).Context.SessionID)
}

// protocol.md §6 "Blocked": details go to the guarded side only, unless told
// otherwise.
func TestDetails(t *testing.T) {
	for _, c := range []struct {
		name    string
		client  bool
		details relay.Details
		shown   bool
	}{
		{"auto, to the program", true, relay.DetailsAuto, true},
		{"auto, to a peer", false, relay.DetailsAuto, false},
		{"never, to the program", true, relay.DetailsNever, false},
		{"always, to a peer", false, relay.DetailsAlways, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			at := side{client: c.client, how: "memory", version: sessionEra}
			session := at.connect(t, newTrail(t, gateway.ChainOptions{}), &world{}, middleware.Options{Details: c.details})
			_, err := say(session, "echo", "evil")
			data := string(blockedBy(t, err).Data)
			if c.shown {
				require.Contains(t, data, "evil found")
			} else {
				require.NotContains(t, data, "evil found")
				require.NotContains(t, data, "guard")
			}
		})
	}
}
