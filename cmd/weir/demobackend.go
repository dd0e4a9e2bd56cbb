package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"
)

// demoFileBytes bounds what the demo's backend reads and writes.
const demoFileBytes = 1 << 20

// newDemoBackend is the MCP server that the demo puts behind the gateway where
// npm's filesystem server is not to be had: two of its tools, by the same names
// and arguments, confined to one folder.
func newDemoBackend(std streams) *cobra.Command {
	return &cobra.Command{
		Use:    "demo-backend DIR",
		Short:  "The MCP server behind the gateway of weir demo",
		Hidden: true,
		Args:   exactly(1, "one folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			root, err := os.OpenRoot(args[0])
			if err != nil {
				return err
			}
			defer root.Close()
			files := demoFiles{dir: args[0], root: root}
			server := mcp.NewServer(&mcp.Implementation{Name: "weir-demo-backend", Version: buildVersion()}, nil)
			mcp.AddTool(server, &mcp.Tool{Name: "write_file", Description: "Write a text file"}, files.write)
			mcp.AddTool(server, &mcp.Tool{Name: "read_text_file", Description: "Read a text file"}, files.read)
			return server.Run(cmd.Context(), &mcp.IOTransport{Reader: std.in, Writer: std.out})
		},
	}
}

type demoFiles struct {
	dir  string
	root *os.Root
}

type demoWrite struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

type demoRead struct {
	Path string `json:"path"`
}

// inside makes a path relative to the folder; whether it leaves it is os.Root's
// to say.
func (f demoFiles) inside(path string) string {
	if rel, err := filepath.Rel(f.dir, path); err == nil && filepath.IsAbs(path) {
		return rel
	}
	return path
}

func (f demoFiles) write(_ context.Context, _ *mcp.CallToolRequest, in demoWrite) (*mcp.CallToolResult, any, error) {
	if len(in.Content) > demoFileBytes {
		return demoText("the content is too large", true), nil, nil
	}
	if err := f.root.WriteFile(f.inside(in.Path), []byte(in.Content), 0o600); err != nil {
		return demoText(err.Error(), true), nil, nil
	}
	return demoText("Successfully wrote to "+in.Path, false), nil, nil
}

func (f demoFiles) read(_ context.Context, _ *mcp.CallToolRequest, in demoRead) (*mcp.CallToolResult, any, error) {
	file, err := f.root.Open(f.inside(in.Path))
	if err != nil {
		return demoText(err.Error(), true), nil, nil
	}
	defer file.Close()
	var text strings.Builder
	if _, err := io.Copy(&text, io.LimitReader(file, demoFileBytes)); err != nil {
		return demoText(err.Error(), true), nil, nil
	}
	return demoText(text.String(), false), nil, nil
}

func demoText(text string, isError bool) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}, IsError: isError}
}
