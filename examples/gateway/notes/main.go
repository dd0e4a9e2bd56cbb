// Command notes is a small MCP server over stdio, for examples that need a server
// to put a gateway in front of: it knows nothing of interceptors.
//
//	go run ./examples/gateway/notes
package main

import (
	"context"
	"log"
	"os"
	"os/signal"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()

	server := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1.0.0"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "save_note", Description: "Save a note, and say what was saved"}, saveNote)
	mcp.AddTool(server, &mcp.Tool{Name: "read_note", Description: "Read the note that is there from the start"}, readNote)
	if err := server.Run(ctx, &mcp.StdioTransport{}); err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}

type note struct {
	Text string `json:"text"`
}

// saveNote answers with the text that arrived, so that a caller sees what a
// gateway on the way made of it.
func saveNote(_ context.Context, _ *mcp.CallToolRequest, in note) (*mcp.CallToolResult, any, error) {
	return text("saved: " + in.Text), nil, nil
}

func readNote(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
	return text("Questions? Write to ann@example.com."), nil, nil
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}
