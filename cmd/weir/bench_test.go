package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/config"
)

// sentence is what a tool is called with: about 1 KB of text with one address
// to take out.
var sentence = strings.Repeat("The order was shipped on Monday & arrives <soon>. ", 19) + "Write to ann@example.com."

// BenchmarkInvocation is one invocation in this process: a real module, in the
// sandbox, on 1 KB.
func BenchmarkInvocation(b *testing.B) {
	modules := exampleModules(b)
	std := streams{err: &buffer{}}
	box, err := newSandbox(std, slog.New(slog.DiscardHandler), config.Default())
	require.NoError(b, err)
	defer box.Close(context.Background())
	lib := box.library(&config.Host{}, nil)
	defer lib.Close(context.Background())
	require.NoError(b, lib.Open(b.Context(), modules))
	require.NoError(b, lib.Ready(b.Context()))

	arguments, err := json.Marshal(map[string]string{"text": sentence})
	require.NoError(b, err)
	for _, name := range []string{"pii-redactor", "secret-scanner"} {
		b.Run(name, func(b *testing.B) {
			inv := abi.Invocation{
				Name: name, Event: abi.ToolsCall, Phase: abi.Request,
				Payload: json.RawMessage(toolParams("echo", string(arguments))),
			}
			b.SetBytes(int64(len(inv.Payload)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := lib.Invoke(b.Context(), inv); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkToolCall is the same tools/call, made by the same client of the same
// backend: directly, through a gateway with nothing to govern, and through one
// with the example modules, that is two mutations, two validations and a sink
// for each call.
func BenchmarkToolCall(b *testing.B) {
	modules := exampleModules(b)
	for _, c := range []struct {
		name  string
		front []string
	}{
		{"direct", nil},
		{"gateway without hosts", []string{weirBinary(b), "gateway", "--"}},
		{"gateway with the examples", []string{weirBinary(b), "gateway", "--hosts", modules, "--"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			command := append(c.front, role(b, "backend", filepath.Join(b.TempDir(), "notes"))...)
			client := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
			session, err := client.Connect(b.Context(), &mcp.CommandTransport{Command: exec.Command(command[0], command[1:]...)},
				&mcp.ClientSessionOptions{ProtocolVersion: "2025-06-18"})
			require.NoError(b, err)
			defer session.Close()
			params := &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": sentence}}
			for range 200 { // until the modules have settled: the first calls run on fresh instances
				if _, err := session.CallTool(b.Context(), params); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				if _, err := session.CallTool(b.Context(), params); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
