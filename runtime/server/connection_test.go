package server_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/runtime/library"
	"github.com/weir-mcp/weir/runtime/server"
)

// A stdio connection has a name of its own for as long as it lasts; what comes
// over HTTP has none (abi.md, grant kv).
func TestConnectionsHaveNames(t *testing.T) {
	lib := library.New(library.Options{})
	require.NoError(t, lib.Register(library.Validator("which", abi.On(abi.Request, abi.ToolsCall),
		func(_ context.Context, inv *abi.Invocation) (library.Verdict, error) {
			name, _ := json.Marshal(inv.Connection)
			return library.Verdict{Valid: true, Info: name}, nil
		})))
	s := server.New(lib, server.Options{TrustContext: true})
	which := func(c wireClient, id string) string {
		answer := c.call(t, `{"jsonrpc":"2.0","id":`+id+`,"method":"interceptor/invoke","params":{"name":"which","event":"tools/call","phase":"request","payload":{},"connection":"mine"}}`)
		var a struct{ Result struct{ Info string } }
		require.NoError(t, json.Unmarshal([]byte(answer), &a), answer)
		return a.Result.Info
	}
	first, second := dialLines(t, s), dialLines(t, s)
	first.handshake(t)
	second.handshake(t)
	one, other := which(first, "1"), which(second, "1")
	require.NotEmpty(t, one)
	require.NotEqual(t, "mine", one)
	require.Equal(t, one, which(first, "2"))
	require.NotEmpty(t, other)
	require.NotEqual(t, one, other)
	require.Empty(t, which(dialHTTP(t, s), "1"))
}
