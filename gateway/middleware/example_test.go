package middleware_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway"
	"github.com/weir-mcp/weir/gateway/hosts"
	"github.com/weir-mcp/weir/gateway/middleware"
	"github.com/weir-mcp/weir/runtime/library"
)

// notes is an MCP server with one tool, and notesChain a chain of one
// interceptor, which hides a name.
func notes() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "note"}, func(_ context.Context, _ *mcp.CallToolRequest, in textArgs) (*mcp.CallToolResult, any, error) {
		fmt.Println("the server reads:", in.Text)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "noted for Ada: " + in.Text}}}, nil, nil
	})
	return s
}

func notesChain(phase abi.Phase) *gateway.Chain {
	quiet := slog.New(slog.DiscardHandler)
	lib := library.New(library.Options{})
	hooks := []abi.Hook{{Events: []string{abi.ToolsCall}, Phase: phase}}
	err := lib.Register(library.Mutator("hide-names", hooks, func(_ context.Context, inv *abi.Invocation) (json.RawMessage, error) {
		return bytes.ReplaceAll(inv.Payload, []byte("Ada"), []byte("[name]")), nil
	}))
	if err != nil {
		panic(err)
	}
	local := hosts.InProcess("local", lib, hosts.Options{Logger: quiet})
	c, err := gateway.NewChain(gateway.ChainOptions{Hosts: hosts.NewSet([]*hosts.Host{local}, hosts.SetOptions{}), Logger: quiet})
	if err != nil {
		panic(err)
	}
	return c
}

// note calls the tool.
func note(client *mcp.Client, server *mcp.Server) {
	ctx := context.Background()
	near, far := mcp.NewInMemoryTransports()
	if _, err := server.Connect(ctx, far, nil); err != nil {
		panic(err)
	}
	session, err := client.Connect(ctx, near, nil)
	if err != nil {
		panic(err)
	}
	defer session.Close()
	res, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "note", Arguments: map[string]any{"text": "Ada called"}})
	if err != nil {
		panic(err)
	}
	fmt.Println("the client reads:", res.Content[0].(*mcp.TextContent).Text)
}

// A client whose requests are governed before they leave.
func ExampleNewClient() {
	c := notesChain(abi.Request)
	defer c.Close(context.Background())
	client := middleware.NewClient(&mcp.Implementation{Name: "app", Version: "1"}, nil, c, middleware.Options{})
	note(client, notes())

	// Output:
	// the server reads: [name] called
	// the client reads: noted for Ada: [name] called
}

// A server whose results are governed before they leave.
func ExampleGovernServer() {
	c := notesChain(abi.Response)
	defer c.Close(context.Background())
	server := notes()
	middleware.GovernServer(server, c, middleware.Options{})
	note(mcp.NewClient(&mcp.Implementation{Name: "app", Version: "1"}, nil), server)

	// Output:
	// the server reads: Ada called
	// the client reads: noted for [name]: [name] called
}
