package main

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/runtime/library"
)

// What the README shows is run by the test of package examples; this is the rest.
func TestInterceptors(t *testing.T) {
	var log bytes.Buffer
	set := library.New(library.Options{})
	t.Cleanup(func() { require.NoError(t, set.Close(context.Background())) })
	for _, n := range []library.Native{noDeletes(), limitResults(), callLog(slog.New(slog.NewTextHandler(&log, nil)))} {
		require.NoError(t, set.Register(n))
	}
	invoke := func(name, payload, config string) (abi.Result, error) {
		inv := abi.Invocation{Name: name, Event: abi.ToolsCall, Phase: abi.Request, Payload: json.RawMessage(payload)}
		if config != "" {
			inv.Config = json.RawMessage(config)
		}
		return set.Invoke(t.Context(), inv)
	}

	for payload, valid := range map[string]bool{
		`{"name":"read_file"}`:   true,
		`{"name":"delete_file"}`: false,
		`{"name":"Delete"}`:      false,
		`{"method":"tools/call","params":{"name":"delete_file"}}`: false,
		`{}`: false,
	} {
		r, err := invoke("no-deletes", payload, "")
		require.NoError(t, err)
		require.Equal(t, valid, r.Valid, payload)
	}

	for _, tt := range []struct{ payload, config, want string }{
		{`{"name":"search"}`, ``, `{"name":"search","arguments":{"limit":20}}`},
		{`{"name":"search","arguments":{"q":1.0}}`, `{"limit":5}`, `{"name":"search","arguments":{"q":1.0,"limit":5}}`},
		{`{"method":"tools/call","params":{"name":"search"}}`, ``, `{"method":"tools/call","params":{"name":"search","arguments":{"limit":20}}}`},
		{`{"name":"search","arguments":{"limit":7}}`, ``, ``},
		{`{"name":"other"}`, ``, ``},
	} {
		r, err := invoke("limit-results", tt.payload, tt.config)
		require.NoError(t, err)
		require.Equal(t, tt.want != "", r.Modified, tt.payload)
		if r.Modified {
			require.Equal(t, tt.want, string(r.Payload))
		}
	}
	_, err := invoke("limit-results", `{"name":"search"}`, `{"limit":0}`)
	require.Equal(t, abi.ReasonConfig, abi.AsError(err, "limit-results", abi.Request).Reason)
	_, err = invoke("limit-results", `{"name":"search","arguments":[]}`, ``)
	require.Error(t, err, "what cannot be limited does not pass")

	_, err = invoke("call-log", `{"name":"`+strings.Repeat("x", 1<<20)+`","arguments":{"secret":"s3cr3t"}}`, "")
	require.NoError(t, err)
	require.Less(t, log.Len(), 1024)
	require.NotContains(t, log.String(), "s3cr3t")
}

func TestOnlyTheLoopbackIsServed(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":0", "192.0.2.1:0"} {
		require.ErrorContains(t, serve(t.Context(), slog.New(slog.DiscardHandler), "", address), "loopback", address)
	}
	require.ErrorIs(t, serve(t.Context(), slog.New(slog.DiscardHandler), "no-such-folder", ""), library.ErrNoFolder)
}

func TestServerEndsWhenItIsTold(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, serve(ctx, slog.New(slog.DiscardHandler), "", "127.0.0.1:0"))
}
