//go:build unix

package streamable_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway"
	"github.com/weir-mcp/weir/gateway/relay"
	"github.com/weir-mcp/weir/gateway/streamable"
	"github.com/weir-mcp/weir/internal/need"
)

// tour calls what the reference server of the TypeScript SDK has to show.
func tour(t *testing.T, transport mcp.Transport) {
	t.Helper()
	progress := make(chan float64, 100)
	client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { progress <- r.Params.Progress },
	})
	session, err := client.Connect(t.Context(), transport, nil)
	require.NoError(t, err)
	tools, err := session.ListTools(t.Context(), nil)
	require.NoError(t, err)
	require.Greater(t, len(tools.Tools), 5)
	res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"message": "hi"}})
	require.NoError(t, err)
	require.Equal(t, "Echo: hi", res.Content[0].(*mcp.TextContent).Text)
	params := &mcp.CallToolParams{Name: "trigger-long-running-operation", Arguments: map[string]any{"duration": 0.3, "steps": 3}}
	params.SetProgressToken("tok")
	_, err = session.CallTool(t.Context(), params)
	require.NoError(t, err)
	require.Equal(t, 1.0, <-progress)
	resources, err := session.ListResources(t.Context(), nil)
	require.NoError(t, err)
	require.NotEmpty(t, resources.Resources)
	require.NoError(t, session.Close())
}

func TestServerOfTheTypeScriptSDKBehindAFront(t *testing.T) {
	command := append(need.NPM(t, "mcp-server-everything"), "stdio")
	h := newHouse(t, "", func(o *streamable.FrontOptions) {
		o.Start = func(context.Context, *abi.Principal) (relay.End, error) {
			return gateway.Start(gateway.Command{Args: command, Stderr: io.Discard})
		}
	})
	tour(t, &mcp.StreamableClientTransport{Endpoint: h.url})
	// The shared backend stays, which the client has asked for server/discover.
	eventually(t, "the session is gone", func() bool { return h.front.Sessions() <= 1 })
}

func TestServerOfTheTypeScriptSDKOverHTTP(t *testing.T) {
	command := append(need.NPM(t, "mcp-server-everything"), "streamableHttp")
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := free.Addr().(*net.TCPAddr).Port
	require.NoError(t, free.Close())
	server := exec.Command(command[0], command[1:]...)
	server.Env = append(os.Environ(), fmt.Sprintf("PORT=%d", port))
	server.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, server.Start())
	t.Cleanup(func() {
		_ = syscall.Kill(-server.Process.Pid, syscall.SIGKILL)
		_ = server.Wait()
	})
	url := fmt.Sprintf("http://127.0.0.1:%d/mcp", port)
	eventually(t, "the server listens", func() bool {
		res, err := http.Get(url)
		if err == nil {
			res.Body.Close()
		}
		return err == nil
	})
	backend, err := streamable.Dial(streamable.BackendOptions{URL: url})
	require.NoError(t, err)
	toRelay, fromClient := io.Pipe()
	toClient, fromRelay := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- relay.Run(context.Background(), relay.Lines(toRelay, fromRelay, 16<<20), backend, relay.Options{})
	}()
	tour(t, &mcp.IOTransport{Reader: toClient, Writer: fromClient})
	require.NoError(t, <-done)
}
