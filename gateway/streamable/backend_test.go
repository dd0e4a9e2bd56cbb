//lint:file-ignore SA1019 sampling is deprecated, and carried for as long as a peer may use it

package streamable

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// sdkServer is a server of go-sdk with a tool that reports progress and asks the
// client back.
func sdkServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "server", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in struct{ Text string }) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Text}}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "ask"}, func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1})
		got, err := r.Session.CreateMessage(ctx, &mcp.CreateMessageParams{MaxTokens: 1})
		if err != nil {
			return nil, nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{got.Content}}, nil, nil
	})
	return s
}

func TestBackendWithServersOfGoSDK(t *testing.T) {
	for name, o := range map[string]*mcp.StreamableHTTPOptions{
		"sessions, SSE":   {EventStore: mcp.NewMemoryEventStore(nil)},
		"sessions, JSON":  {JSONResponse: true},
		"stateless":       {Stateless: true},
		"stateless, JSON": {Stateless: true, JSONResponse: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := sdkServer()
			server := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, o))
			t.Cleanup(server.Close)
			backend, err := Dial(BackendOptions{URL: server.URL})
			require.NoError(t, err)
			changed, progress := make(chan struct{}, 10), make(chan float64, 10)
			session := sdkOver(t, backend, &mcp.ClientOptions{
				CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
					return &mcp.CreateMessageResult{Content: &mcp.TextContent{Text: "sampled"}, Model: "m", Role: "assistant"}, nil
				},
				ToolListChangedHandler:      func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} },
				ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { progress <- r.Params.Progress },
			})
			res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"Text": "hi"}})
			require.NoError(t, err)
			require.Equal(t, "hi", res.Content[0].(*mcp.TextContent).Text)
			if o.Stateless || o.JSONResponse {
				return
			}
			params := &mcp.CallToolParams{Name: "ask"}
			params.SetProgressToken("tok")
			res, err = session.CallTool(t.Context(), params)
			require.NoError(t, err)
			require.Equal(t, "sampled", res.Content[0].(*mcp.TextContent).Text)
			require.Equal(t, 1.0, <-progress)
			s.AddTool(&mcp.Tool{Name: "new", InputSchema: map[string]any{"type": "object"}}, nil)
			<-changed
		})
	}
}
