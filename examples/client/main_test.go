package main

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/examples/internal/moduletest"
	"github.com/weir-mcp/weir/internal/leak"
	"github.com/weir-mcp/weir/runtime/library"
	"github.com/weir-mcp/weir/runtime/server"
)

var quiet = slog.New(slog.DiscardHandler)

func TestItDoesWhatItsManualPageShows(t *testing.T) {
	leak.Goroutines(t, "weir/gateway.", "weir/gateway/chain.", "weir/gateway/hosts.")
	leak.Descriptors(t)
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), nil, &out, quiet))
	require.Equal(t, moduletest.Console(t, "go run ./examples/client"), out.String())
}

func TestOverHTTP(t *testing.T) {
	leak.Goroutines(t, "weir/gateway.", "weir/gateway/chain.", "weir/gateway/hosts.")
	lib := library.New(library.Options{})
	require.NoError(t, lib.Register(library.CheckTool("no-query", func(tool string, _ json.RawMessage) bool { return tool != "query" })))
	require.NoError(t, lib.Register(library.Check("of-prompts", abi.OnBoth(abi.PromptsGet), func(json.RawMessage) bool { return false })))
	web := httptest.NewServer(server.New(lib, server.Options{Name: "test", Version: "1", Logger: quiet}).Handler())
	t.Cleanup(web.Close)
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{web.URL}, &out, quiet))
	require.Contains(t, out.String(), "server offers of-prompts, a validation of requests of prompts/get, responses of prompts/get\n")
	require.Contains(t, out.String(), `no-query says {"type":"validation","interceptor":"no-query","phase":"request","valid":false`)
	require.NotContains(t, out.String(), "of-prompts says", "it hooks no tool calls")
	require.Contains(t, out.String(), "blocked: validation_failed by no-query")
}

func TestAServerThatCannotBeListed(t *testing.T) {
	for name, args := range map[string][]string{
		"nobody there":    {"http://127.0.0.1:1/mcp"},
		"no such command": {"./no-such-server"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			require.ErrorContains(t, run(t.Context(), args, &out, quiet), "server")
			require.Empty(t, out.String())
		})
	}
}
