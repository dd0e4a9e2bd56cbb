//lint:file-ignore SA1019 sampling, roots and logging are deprecated, and governed for as long as peers use them

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/internal/need"
)

// sdkClient is a client of the go-sdk that writes down what reaches it, in
// order.
type sdkClient struct {
	*mcp.ClientSession
	t      testing.TB
	mu     sync.Mutex
	events []string
	errs   *buffer // of the command, where one was started
}

func (c *sdkClient) note(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, fmt.Sprintf(format, args...))
}

func (c *sdkClient) seen() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.events...)
}

// once is what was seen, the same twice in a row as one.
func (c *sdkClient) once() []string { return slices.Compact(c.seen()) }

// await waits until an event that begins with the prefix has come.
func (c *sdkClient) await(prefix string) {
	c.t.Helper()
	eventually(c.t, prefix, func() bool {
		for _, event := range c.seen() {
			if strings.HasPrefix(event, prefix) {
				return true
			}
		}
		return false
	})
}

// connect starts a server and connects a client with all handlers to it.
func connect(t testing.TB, command []string, version string) *sdkClient {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	errs := &buffer{}
	cmd.Stderr = errs
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("stderr of %v:\n%.20000s", command, errs)
		}
	})
	c := connectOver(t, &mcp.CommandTransport{Command: cmd}, version)
	c.errs = errs
	return c
}

// connectOver connects a client with all handlers to a server.
func connectOver(t testing.TB, transport mcp.Transport, version string) *sdkClient {
	t.Helper()
	c := &sdkClient{t: t}
	client := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, &mcp.ClientOptions{
		CreateMessageHandler: func(_ context.Context, r *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			asked := r.Params.Messages[0].Content.(*mcp.TextContent).Text
			c.note("sampling %s", asked)
			return &mcp.CreateMessageResult{Role: "assistant", Model: "m", Content: &mcp.TextContent{Text: "re: " + asked}}, nil
		},
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			c.note("elicitation %s", r.Params.Message)
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"username": "Zoë", "name": "Zoë"}}, nil
		},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { c.note("tools changed") },
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { c.note("updated %s", r.Params.URI) },
		LoggingMessageHandler:  func(_ context.Context, r *mcp.LoggingMessageRequest) { c.note("log %v", r.Params.Data) },
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			c.note("progress %v %v of %v", r.Params.ProgressToken, r.Params.Progress, r.Params.Total)
		},
	})
	client.AddRoots(&mcp.Root{URI: "file:///tmp/a", Name: "a"}, &mcp.Root{URI: "file:///tmp/b%20c"})
	session, err := client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	require.NoError(t, err)
	c.ClientSession = session
	t.Cleanup(func() { _ = session.Close() })
	return c
}

// call calls a tool and returns the text of its answer.
func (c *sdkClient) call(tool string, arguments map[string]any, meta mcp.Meta) string {
	c.t.Helper()
	if arguments == nil {
		arguments = map[string]any{}
	}
	params := &mcp.CallToolParams{Name: tool, Arguments: arguments, Meta: meta}
	result, err := c.CallTool(c.t.Context(), params)
	require.NoError(c.t, err, tool)
	var text []string
	for _, content := range result.Content {
		if t, ok := content.(*mcp.TextContent); ok {
			text = append(text, t.Text)
		}
	}
	return strings.Join(text, "\n")
}

// The SDK hands notifications to their handlers beside the answers to calls, so
// that a test waits for the last one; that they leave the gateway before the
// answer is TestProgressBeforeAnswer's matter.

func sdkBackend(t testing.TB) []string { return []string{everythingServer(t)} }
func npmBackend(t testing.TB) []string { return append(need.NPM(t, "mcp-server-everything"), "stdio") }
func ownBackend(t testing.TB) []string {
	return role(t, "backend", filepath.Join(t.TempDir(), "notes"))
}

// clientCases are what a client of the go-sdk does with a server.
var clientCases = []struct {
	name, version string
	overHTTP      bool // the backend speaks it, too
	backend       func(t testing.TB) []string
	do            func(t *testing.T, c *sdkClient)
	want          []string // events, in order; the same twice in a row counts once
}{
	{"tools/list", "2025-06-18", true, sdkBackend, func(t *testing.T, c *sdkClient) {
		names := 0
		for tool, err := range c.Tools(t.Context(), nil) {
			require.NoError(t, err)
			c.note("tool %s", tool.Name)
			names++
		}
		require.Greater(t, names, 20)
	}, nil},
	{"progress in order", "2025-06-18", true, sdkBackend, func(t *testing.T, c *sdkClient) {
		require.Equal(t, "tok", c.call("test_tool_with_progress", nil, mcp.Meta{"progressToken": "tok"}))
		c.await("progress tok 100")
	}, []string{"progress tok 0 of 100", "progress tok 50 of 100", "progress tok 100 of 100"}},
	{"log messages in order", "2025-06-18", true, sdkBackend, func(t *testing.T, c *sdkClient) {
		require.NoError(t, c.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: "debug"}))
		c.call("test_tool_with_logging", nil, nil)
		c.await("log Tool execution completed")
	}, []string{"log Tool execution started", "log Tool processing data", "log Tool execution completed"}},
	{"sampling", "2025-06-18", true, sdkBackend, func(t *testing.T, c *sdkClient) {
		require.Equal(t, "LLM response: re: <hé>", c.call("test_sampling", map[string]any{"prompt": "<hé>"}, nil))
	}, []string{"sampling <hé>"}},
	{"elicitation", "2025-06-18", true, sdkBackend, func(t *testing.T, c *sdkClient) {
		require.Contains(t, c.call("test_elicitation", map[string]any{"message": "who?"}, nil), "username:Zoë")
	}, []string{"elicitation who?"}},
	{"tools/list_changed", "2025-06-18", true, sdkBackend, func(t *testing.T, c *sdkClient) {
		c.call("test_trigger_tool_change", nil, nil)
		c.await("tools changed")
	}, []string{"tools changed"}},
	{"tools/list_changed of 2026-07-28", "2026-07-28", true, sdkBackend, func(t *testing.T, c *sdkClient) {
		require.Equal(t, "2026-07-28", c.InitializeResult().ProtocolVersion)
		c.call("test_trigger_tool_change", nil, nil)
		c.await("tools changed")
	}, []string{"tools changed"}},
	{"input required", "2026-07-28", true, sdkBackend, func(t *testing.T, c *sdkClient) {
		require.Contains(t, c.call("test_input_required_result_sampling", nil, nil), "re: What is the capital of France?")
	}, []string{"sampling What is the capital of France?"}},
	{"subscribe, updated", "2025-06-18", true, sdkBackend, func(t *testing.T, c *sdkClient) {
		require.NoError(t, c.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "test://watched-resource"}))
		c.await("updated test://watched-resource")
	}, nil},
	{"roots", "2025-06-18", false, ownBackend, func(t *testing.T, c *sdkClient) {
		require.Equal(t, "file:///tmp/a file:///tmp/b%20c", c.call("roots", nil, nil))
	}, nil},
	{"npm: sampling, progress, roots", "2025-06-18", false, npmBackend, func(t *testing.T, c *sdkClient) {
		c.await("log Roots updated: 2 root(s)")
		require.Contains(t, c.call("trigger-sampling-request", map[string]any{"prompt": "hi"}, nil), "re: Resource trigger-sampling-request context: hi")
		c.call("trigger-long-running-operation", map[string]any{"duration": 0.2, "steps": 4}, mcp.Meta{"progressToken": "tok"})
		c.await("progress tok 4 of 4")
		require.Contains(t, c.call("get-roots-list", nil, nil), "file:///tmp/b%20c")
	}, nil},
}

// TestClientBehaves compares what a go-sdk client meets through the gateway,
// behind a chain that lets everything pass, with what it meets directly.
func TestClientBehaves(t *testing.T) {
	t.Parallel()
	for _, c := range clientCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			backend := c.backend(t)
			direct := connect(t, backend, c.version)
			c.do(t, direct)
			through := connect(t, gatewayCommand(t, allowingHosts(t), backend), c.version)
			c.do(t, through)
			want := direct.once()
			if c.want != nil {
				require.Equal(t, c.want, want, "directly")
			}
			require.Equal(t, want, through.once(), "through the gateway")
		})
	}
}

// TestProgressBeforeAnswer is field case progress_and_sampling on the wire:
// progress and a governed request of the backend arrive before the answer to
// the call that they belong to.
func TestProgressBeforeAnswer(t *testing.T) {
	t.Parallel()
	s := startRaw(t, gatewayCommand(t, allowingHosts(t), []string{everythingServer(t)}), clientReplies)
	hello(s, "2025-06-18")
	s.call(rpc(1, "tools/call", `{"_meta":{"progressToken":"tok"},"name":"test_tool_with_progress","arguments":{}}`))
	require.Len(t, s.seen, 1+3+1, "the handshake's answer, progress, the call's answer")
	for i, progress := range []string{`"progress":0`, `"progress":50`, `"progress":100`} {
		require.Contains(t, s.seen[1+i], progress)
	}
	s.call(rpc(2, "tools/call", toolParams("test_sampling", `{"prompt":"hi"}`)))
	require.Contains(t, s.seen[5], `"sampling/createMessage"`)
	require.Contains(t, s.seen[6], `"id":2`)
}

// TestCancellationReachesBackend is field case cancelled_call: the backend gets
// notifications/cancelled, and nobody makes up a response.
func TestCancellationReachesBackend(t *testing.T) {
	t.Parallel()
	for name, conf := range map[string]func(t *testing.T) string{
		"without hosts":  func(*testing.T) string { return "" },
		"allowing chain": allowingHosts,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			notes := filepath.Join(t.TempDir(), "notes")
			noted := func(what string) func() bool {
				return func() bool {
					b, _ := os.ReadFile(notes)
					return strings.Contains(string(b), what)
				}
			}
			s := startRaw(t, gatewayCommand(t, conf(t), role(t, "backend", notes)), clientReplies)
			hello(s, "2025-06-18")
			s.send(rpc(7, "tools/call", toolParams("wait", `{}`)))
			eventually(t, "the call runs", noted("waiting"))
			s.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7,"reason":"enough"}}`)
			eventually(t, "the backend is told", noted("cancelled"))
			s.call(rpc(8, "tools/call", toolParams("echo", `{"text":"still here"}`)))
			s.end()
			for _, line := range s.seen {
				require.NotContains(t, line, `"id":7`)
			}

			c := connect(t, gatewayCommand(t, conf(t), role(t, "backend", notes)), "2025-06-18")
			require.NoError(t, os.Remove(notes))
			ctx, cancel := context.WithCancel(t.Context())
			failed := make(chan error, 1)
			go func() {
				_, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "wait"})
				failed <- err
			}()
			eventually(t, "the call runs", noted("waiting"))
			cancel()
			select {
			case err := <-failed:
				require.ErrorIs(t, err, context.Canceled)
			case <-time.After(patience):
				t.Fatal("the call does not end")
			}
			eventually(t, "the backend is told", noted("cancelled"))
			require.Equal(t, "still here", c.call("echo", map[string]any{"text": "still here"}, nil))
		})
	}
}
