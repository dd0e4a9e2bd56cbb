//lint:file-ignore SA1019 sampling is deprecated, and carried for as long as a peer may use it

package streamable_test

import (
	"context"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// Clients of go-sdk find in a server behind the front what they would find in the
// server itself, whatever era both of them speak.
func TestClientsOfGoSDK(t *testing.T) {
	for name, version := range map[string]string{"session era": "2025-06-18", "priming": "2025-11-25", "stateless era": "2026-07-28", "newest": ""} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, "sdk")
			changed, progress := make(chan struct{}, 10), make(chan float64, 10)
			client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, &mcp.ClientOptions{
				CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
					return &mcp.CreateMessageResult{Content: &mcp.TextContent{Text: "sampled"}, Model: "m", Role: "assistant"}, nil
				},
				ToolListChangedHandler:      func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} },
				ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { progress <- r.Params.Progress },
			})
			session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: h.url}, &mcp.ClientSessionOptions{ProtocolVersion: version})
			require.NoError(t, err)
			defer session.Close()
			if version != "" {
				require.Equal(t, version, session.InitializeResult().ProtocolVersion)
			}
			for range 3 {
				res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"Text": "hi"}})
				require.NoError(t, err)
				require.Equal(t, "hi", res.Content[0].(*mcp.TextContent).Text)
			}
			if session.InitializeResult().ProtocolVersion >= "2026" {
				return
			}
			params := &mcp.CallToolParams{Name: "ask"}
			params.SetProgressToken("tok")
			res, err := session.CallTool(t.Context(), params)
			require.NoError(t, err)
			require.Equal(t, "sampled", res.Content[0].(*mcp.TextContent).Text)
			require.Equal(t, 1.0, <-progress)
			_, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "grow"})
			require.NoError(t, err)
			<-changed
		})
	}
}

// A client that speaks the stateless era falls back to a session when the backend
// is older, without being told anything but the backend's own error.
func TestClientsFallBack(t *testing.T) {
	h := newHouse(t, "raw")
	client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: h.url}, nil)
	require.NoError(t, err)
	defer session.Close()
	require.Equal(t, "2025-11-25", session.InitializeResult().ProtocolVersion)
	_, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "pid"})
	require.NoError(t, err)
}
