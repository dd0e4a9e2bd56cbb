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
type headers http.Header

func (h headers) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, all := range h {
		r.Header[name] = all
	}
	return http.DefaultTransport.RoundTrip(r)
}

const traceparent = "00-" + traceID + "-" + spanID + "-01"

// overHTTP is a session with a governed server that knows everybody as ann.
func overHTTP(t *testing.T, tr *trail, version string, trace ...string) *mcp.ClientSession {
	t.Helper()
	server := (&world{}).server(t)
	middleware.GovernServer(server, tr.chain, middleware.Options{})
	verify := func(context.Context, string, *http.Request) (*auth.TokenInfo, error) {
		return &auth.TokenInfo{UserID: "ann", Scopes: []string{"read", "write"}, Expiration: time.Now().Add(time.Hour),
			Extra: map[string]any{"team": "red", "email": "ann@example.com"}}, nil
	}
	web := httptest.NewServer(auth.RequireBearerToken(verify, nil)(mcp.NewStreamableHTTPHandler(
		func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: version == statelessEra})))
	t.Cleanup(web.Close)
	session, err := mcp.NewClient(&mcp.Implementation{Name: "client"}, people()).Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint:   web.URL,
		HTTPClient: &http.Client{Transport: headers{"Authorization": {"Bearer x"}, "Traceparent": trace}},
	}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	require.NoError(t, err)
	t.Cleanup(func() { session.Close() })
	return session
}

func eras(t *testing.T, test func(t *testing.T, version string)) {
	for _, version := range []string{sessionEra, statelessEra} {
		t.Run(version, func(t *testing.T) { test(t, version) })
	}
}

// What interceptors of a server are told of who calls: the user of the token, with
// those claims only that may travel; the trace of the HTTP request; the session;
// and in the response phase what is answered.
func TestContextOfAServersRequest(t *testing.T) {
	eras(t, func(t *testing.T, version string) {
		tr := newTrail(t, gateway.ChainOptions{Claims: []string{"scope", "team"}})
		session := overHTTP(t, tr, version, traceparent)
		before := time.Now()
		_, err := say(session, "ask", "hi")
		require.NoError(t, err)

		for _, event := range []string{abi.ToolsCall, abi.SamplingCreate} { // what the tool asks for runs for its caller
			for _, phase := range []abi.Phase{abi.Request, abi.Response} {
				got := tr.last(t, event, phase)
				require.Equal(t, abi.PrincipalUser, got.Context.Principal.Type)
				require.Equal(t, "ann", got.Context.Principal.ID)
				require.JSONEq(t, `{"scope":"read write","team":"red"}`, string(got.Context.Principal.Claims))
				require.Equal(t, traceID, got.Context.TraceID, event)
				require.Equal(t, spanID, got.Context.SpanID)
				if id := session.ID(); id != "" {
					require.Equal(t, relay.SessionName(id), got.Context.SessionID, "a name of the session, no key to it")
				}
				require.NotEmpty(t, got.Context.SessionID)
				at, err := time.Parse(time.RFC3339Nano, got.Context.Timestamp)
				require.NoError(t, err)
				require.WithinDuration(t, before, at, time.Minute)
			}
		}
		require.Contains(t, string(tr.last(t, abi.ToolsCall, abi.Response).Request), `"text":"hi"`, "the request that it answers")
		require.Nil(t, tr.last(t, abi.ToolsCall, abi.Request).Request)
	})
}

func TestTraceOfAServersRequest(t *testing.T) {
	const other = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
	for _, c := range []struct {
		name   string
		header []string
		meta   any
		want   string
	}{
		{"of the header", []string{traceparent}, nil, traceID},
		{"of _meta, before the header", []string{other}, traceparent, traceID},
		{"of the header, where _meta has none that is one", []string{traceparent}, "00-x", traceID},
		{"of the header, where _meta has no text", []string{traceparent}, 7, traceID},
		{"two headers are none", []string{traceparent, other}, nil, ""},
		{"a header that is none", []string{"00-" + traceID}, nil, ""},
		{"none", nil, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			eras(t, func(t *testing.T, version string) {
				tr := newTrail(t, gateway.ChainOptions{Events: []string{abi.ToolsCall}})
				session := overHTTP(t, tr, version, c.header...)
				params := &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": "hi"}}
				if c.meta != nil {
					params.Meta = mcp.Meta{"traceparent": c.meta}
				}
				_, err := session.CallTool(t.Context(), params)
				require.NoError(t, err)
				require.Equal(t, c.want, tr.last(t, abi.ToolsCall, abi.Request).Context.TraceID)
				require.Equal(t, c.want, tr.last(t, abi.ToolsCall, abi.Response).Context.TraceID)
			})
		})
	}
}

// Claims travel by name only: without a list none do.
func TestNoClaimsTravelUnlessTheyAreNamed(t *testing.T) {
	tr := newTrail(t, gateway.ChainOptions{Events: []string{abi.ToolsCall}})
	_, err := say(overHTTP(t, tr, sessionEra), "echo", "hi")
	require.NoError(t, err)
	require.Equal(t, &abi.Principal{Type: abi.PrincipalUser, ID: "ann"}, tr.last(t, abi.ToolsCall, abi.Request).Context.Principal)
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
