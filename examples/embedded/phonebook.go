package main

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// phoneBook is the MCP server that the program uses. It could be anybody's, over
// any transport.
func phoneBook() *mcp.Server {
	type question struct {
		Name string `json:"name"`
	}
	entries := map[string]string{
		"Bo":           "Bo Berg, bo@example.com, room 7",
		"everybody":    "Bo Berg, Cy Cole, Di Dahl",
		"the password": "hunter2",
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "phone-book", Version: "1.0.0"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "look-up", Description: "What the phone book says of a name."},
		func(_ context.Context, _ *mcp.CallToolRequest, q question) (*mcp.CallToolResult, any, error) {
			text, ok := entries[q.Name]
			if !ok {
				text = "nobody of that name"
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
		})
	return s
}
