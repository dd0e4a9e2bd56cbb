package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/wire"
	"github.com/weir-mcp/weir/runtime/library"
	"github.com/weir-mcp/weir/runtime/server"
)

func capabilitiesOf(t *testing.T, answer string) string {
	t.Helper()
	c, ok := wire.Get([]byte(answer), "result", "capabilities")
	require.True(t, ok, answer)
	return string(c)
}

const discover = `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{}}`

// The capability is the only one, in either handshake, and live (protocol.md §4).
func TestCapability(t *testing.T) {
	const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}`
	shakes := map[string]func(t *testing.T, s *server.Server) string{
		"initialize over stdio": func(t *testing.T, s *server.Server) string { return dialLines(t, s).handshake(t) },
		"initialize over http":  func(t *testing.T, s *server.Server) string { return dialHTTP(t, s).call(t, initialize) },
		"server/discover over stdio": func(t *testing.T, s *server.Server) string {
			return (&statelessLines{dialLines(t, s)}).call(t, discover)
		},
		"server/discover over http": func(t *testing.T, s *server.Server) string {
			return (&statelessPosts{dialHTTP(t, s)}).call(t, discover)
		},
	}
	for name, shake := range shakes {
		t.Run(name, func(t *testing.T) {
			lib := library.New(library.Options{})
			s := server.New(lib, server.Options{})
			require.Equal(t, `{"extensions":{"io.modelcontextprotocol/interceptors":{"supportedEvents":[]}}}`,
				capabilitiesOf(t, shake(t, s)))

			pass := func(json.RawMessage) bool { return true }
			require.NoError(t, lib.Register(library.Check("a", abi.OnBoth("tools/call", "*"), pass)))
			require.NoError(t, lib.Register(library.Check("b", abi.On(abi.Response, "prompts/get", "tools/call"), pass)))
			require.Equal(t, `{"extensions":{"io.modelcontextprotocol/interceptors":{"supportedEvents":["*","prompts/get","tools/call"]}}}`,
				capabilitiesOf(t, shake(t, s)))
		})
	}
}

func TestServerNamesItself(t *testing.T) {
	s := server.New(desk(t), server.Options{Name: "fences", Version: "1.2"})
	require.Contains(t, dialLines(t, s).handshake(t), `"serverInfo":{"name":"fences","version":"1.2"}`)
	answer := (&statelessPosts{dialHTTP(t, s)}).call(t, discover)
	require.Contains(t, answer, `"name":"fences"`)
	require.Contains(t, answer, `"ttlMs":0`, "nobody may keep a live capability")
	require.Contains(t, answer, `"cacheScope":"private"`)
}

// Lists, the capability and invocations wait for the first load, but not for
// ever (abi.md, Load).
func TestWaitsUntilReady(t *testing.T) {
	for _, message := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"interceptors/list"}`,
		`{"jsonrpc":"2.0","id":1,"method":"interceptor/invoke","params":{"name":"late","event":"tools/call","phase":"request","payload":{}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}`,
	} {
		lib := library.New(library.Options{})
		waits := make(chan struct{})
		go func() {
			<-waits
			_ = lib.Register(library.Check("late", abi.On(abi.Request, "tools/call"), func(json.RawMessage) bool { return true }))
			close(waits)
		}()
		p := dialHTTP(t, server.New(lib, server.Options{Ready: func(ctx context.Context) error {
			waits <- struct{}{}
			<-waits
			return nil
		}}))
		require.Regexp(t, `"late"|"tools/call"`, p.call(t, message))
	}
}

func TestServesWhatThereIsWhenItDoesNotGetReady(t *testing.T) {
	s := server.New(desk(t), server.Options{Ready: func(context.Context) error { return errors.New("still loading") }})
	require.Contains(t, dialHTTP(t, s).call(t, `{"jsonrpc":"2.0","id":1,"method":"interceptors/list"}`), `"no-rm"`)
}

// A client of go-sdk, over both transports and in both eras.
func TestClientOfTheSDK(t *testing.T) {
	noLeaks(t)
	for _, version := range []string{"2025-06-18", "2025-11-25", "2026-07-28"} {
		connect := map[string]func(t *testing.T, s *server.Server) *mcp.ClientSession{
			"stdio": func(t *testing.T, s *server.Server) *mcp.ClientSession {
				l := dialLines(t, s)
				session, err := sdkClient(t).Connect(t.Context(), l.transport(), &mcp.ClientSessionOptions{ProtocolVersion: version})
				require.NoError(t, err)
				return session
			},
			"http": func(t *testing.T, s *server.Server) *mcp.ClientSession {
				p := dialHTTP(t, s)
				session, err := sdkClient(t).Connect(t.Context(),
					&mcp.StreamableClientTransport{Endpoint: p.url, HTTPClient: p.client},
					&mcp.ClientSessionOptions{ProtocolVersion: version})
				require.NoError(t, err)
				return session
			},
		}
		for name, dial := range connect {
			t.Run(name+" "+version, func(t *testing.T) {
				session := dial(t, server.New(desk(t), server.Options{}))
				defer session.Close()
				info := session.InitializeResult()
				require.Contains(t, info.Capabilities.Extensions, abi.ExtensionKey)
				require.Nil(t, info.Capabilities.Tools)
				//lint:ignore SA1019 deprecated, and what a client would still find here
				require.Nil(t, info.Capabilities.Logging)

				raw, err := mcp.CallCustomMethod[*rawParams, *rawResult](t.Context(), session, abi.MethodList, &rawParams{raw: json.RawMessage(`{}`)})
				require.NoError(t, err)
				page, err := abi.ReadPage(raw.raw)
				require.NoError(t, err)
				require.Empty(t, page.Skipped)
				require.Equal(t, "no-rm", page.Interceptors[0].Name)

				result, err := invokeSDK(t.Context(), session, abi.Invocation{
					Name: "no-rm", Event: abi.ToolsCall, Phase: abi.Request, Payload: json.RawMessage(`{"name":"sh","arguments":{"c":"rm -rf /"}}`),
				})
				require.NoError(t, err)
				require.True(t, result.Blocks())
			})
		}
	}
}
