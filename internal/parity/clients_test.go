package parity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/internal/need"
)

// seen is what a client got: each answer as it gives it.
type seen struct {
	// Tools are the names of the list, in alphabetical order.
	Tools       []string        `json:"tools"`
	Text, Image json.RawMessage // answers of two tools
	// Denied is the answer of a third, or the error instead.
	Denied json.RawMessage
}

const deniedTool = "test_audio_content"

// A person is a client in use: it does the same with each server, and says what
// it saw. target is a URL, or a command.
type person func(t *testing.T, target []string) seen

// TestClients: what clients that people use get directly they get through the
// gateway, except the one call that the chain refuses, which all of them see as
// an error.
func TestClients(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		client    person
		stateless bool // speaks 2026-07-28
	}{
		{"go-sdk", goClient("2025-11-25"), false},
		{"go-sdk, 2026-07-28", goClient("2026-07-28"), true},
		{"@modelcontextprotocol/sdk 1.x", scripted("sdk1.cjs"), false},
		{"@modelcontextprotocol/client 2.x", scripted("client2.cjs"), false},
		{"@modelcontextprotocol/client 2.x, 2026-07-28", scripted("client2.cjs", "auto"), true},
		{"@modelcontextprotocol/inspector-cli", inspector, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for name, backend := range map[string]string{
				"to stdio": everything(t),
				"to HTTP":  everythingOverHTTP(t, fmt.Sprintf("-stateless=%t", c.stateless)),
			} {
				direct := c.client(t, []string{backend})
				require.Greater(t, len(direct.Tools), 20)
				require.Contains(t, string(direct.Text), "This is a simple text response")
				require.Contains(t, string(direct.Denied), "audio/wav")
				require.Equal(t, c.stateless, strings.Contains(string(direct.Text), "_meta"), "%s", direct.Text)
				deny := denying(t, deniedTool)
				front, _ := gatewayOverHTTP(t, deny, backend)
				for from, target := range map[string][]string{"stdio ": gateway(t, deny, backend), "HTTP ": {front}} {
					t.Run(from+name, func(t *testing.T) {
						through := c.client(t, target)
						require.Contains(t, string(through.Denied), "blocked")
						require.NotContains(t, string(through.Denied), "audio/wav")
						through.Denied = direct.Denied
						require.Equal(t, direct, through)
					})
				}
			}
		})
	}
}

// goClient is the client of the go-sdk.
func goClient(version string) person {
	return func(t *testing.T, target []string) (s seen) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		var transport mcp.Transport = &mcp.CommandTransport{Command: exec.Command(target[0], target[1:]...)}
		if strings.HasPrefix(target[0], "http://") {
			transport = &mcp.StreamableClientTransport{Endpoint: target[0]}
		}
		client, err := mcp.NewClient(&mcp.Implementation{Name: "parity", Version: "1"}, nil).
			Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
		require.NoError(t, err)
		defer client.Close()
		require.Equal(t, version, client.InitializeResult().ProtocolVersion)
		for tool, err := range client.Tools(ctx, nil) {
			require.NoError(t, err)
			s.Tools = append(s.Tools, tool.Name)
		}
		slices.Sort(s.Tools)
		call := func(name string) json.RawMessage {
			result, err := client.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: map[string]any{}})
			if err != nil {
				return json.RawMessage(err.Error())
			}
			b, err := json.Marshal(result)
			require.NoError(t, err)
			return b
		}
		s.Text, s.Image, s.Denied = call("test_simple_text"), call("test_image_content"), call(deniedTool)
		return s
	}
}

// clientPackages are the clients that run on Node.
func clientPackages(t *testing.T) string {
	t.Helper()
	return filepath.Join(need.Packages(t, "@modelcontextprotocol/sdk@1.32.2", "@modelcontextprotocol/client@2.4.0",
		"@modelcontextprotocol/inspector-cli@1.0.3"), "node_modules")
}

// scripted is a client in testdata.
func scripted(script string, more ...string) person {
	return func(t *testing.T, target []string) (s seen) {
		t.Helper()
		args := append([]string{filepath.Join("testdata", script), clientPackages(t), strings.Join(more, "")}, target...)
		out, errs, err := run(t, node(t), args...)
		require.NoError(t, err, errs)
		require.NoError(t, json.Unmarshal([]byte(out), &s), out)
		return s
	}
}

// inspector is the command line of the inspector, one run for each request.
func inspector(t *testing.T, target []string) (s seen) {
	t.Helper()
	modules := clientPackages(t)
	// The program reads the package.json of the inspector, two folders above its
	// own, which the package that it is in does not bring.
	missing := filepath.Join(modules, "@modelcontextprotocol", "package.json")
	require.NoError(t, os.WriteFile(missing, []byte(`{"name":"@modelcontextprotocol/inspector","version":"1.0.3"}`), 0o600))
	cli := filepath.Join(modules, "@modelcontextprotocol", "inspector-cli", "build", "index.js")
	ask := func(request ...string) json.RawMessage {
		args := slices.Concat([]string{cli, target[0]}, request)
		if strings.HasPrefix(target[0], "http://") {
			args = append(args, "--transport", "http")
		} else if len(target) > 1 {
			args = append(append(args, "--"), target[1:]...)
		}
		out, errs, err := run(t, node(t), args...)
		if _, failed := errors.AsType[*exec.ExitError](err); failed {
			return json.RawMessage(errs)
		}
		require.NoError(t, err)
		return json.RawMessage(out)
	}
	var list struct{ Tools []struct{ Name string } }
	listed := ask("--method", "tools/list")
	require.NoError(t, json.Unmarshal(listed, &list), "%s", listed)
	for _, tool := range list.Tools {
		s.Tools = append(s.Tools, tool.Name)
	}
	slices.Sort(s.Tools)
	call := func(name string) json.RawMessage { return ask("--method", "tools/call", "--tool-name", name) }
	s.Text, s.Image, s.Denied = call("test_simple_text"), call("test_image_content"), call(deniedTool)
	return s
}

func node(t *testing.T) string { return need.Command(t, "node", "install Node.js 20 or newer") }

// run runs a program to its end.
func run(t *testing.T, name string, args ...string) (out, errs string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	var stdout, stderr buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	require.NoError(t, ctx.Err(), "%v\n%s", cmd.Args, &stderr)
	return stdout.String(), stderr.String(), err
}
