package main

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// typedProxy is a proxy as one is written on an SDK: an mcp.Server whose handlers
// call an mcp.ClientSession. It governs nothing. The first argument is what it
// serves, stdio or http; the rest is the backend's URL or its command.
func typedProxy(args []string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var backend mcp.Transport
	if strings.HasPrefix(args[1], "http://") {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConnsPerHost = 256
		backend = &mcp.StreamableClientTransport{Endpoint: args[1], HTTPClient: &http.Client{Transport: transport}, DisableStandaloneSSE: true}
	} else {
		backend = &mcp.CommandTransport{Command: exec.Command(args[1], args[2:]...)}
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "proxy", Version: "1"}, nil)
	session, err := client.Connect(ctx, backend, nil)
	if err != nil {
		return fmt.Errorf("the backend: %w", err)
	}
	defer session.Close()

	server := mcp.NewServer(&mcp.Implementation{Name: "proxy", Version: "1"}, nil)
	for _, tool := range []string{"write_file", "file_tickets"} {
		server.AddTool(&mcp.Tool{Name: tool, InputSchema: map[string]any{"type": "object"}},
			func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return session.CallTool(ctx, &mcp.CallToolParams{Meta: r.Params.Meta, Name: r.Params.Name, Arguments: r.Params.Arguments})
			})
	}
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			if list, ok := r.(*mcp.ListToolsRequest); ok {
				return session.ListTools(ctx, list.Params)
			}
			return next(ctx, method, r)
		}
	})
	if args[0] == "stdio" {
		return server.Run(ctx, &mcp.StdioTransport{})
	}
	return serveHTTP(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
}
