package examples_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/examples/internal/moduletest"
	"github.com/weir-mcp/weir/gateway"
	"github.com/weir-mcp/weir/gateway/hosts"
	"github.com/weir-mcp/weir/guest/guesttest"
	"github.com/weir-mcp/weir/internal/guestbuild"
)

// modules are the folders here that hold a module: those whose main.go says how
// go generate builds it.
func modules(t *testing.T) (dirs []string) {
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	for _, e := range entries {
		source, err := os.ReadFile(filepath.Join(e.Name(), "main.go"))
		if err == nil && strings.Contains(string(source), "//go:generate ") {
			dirs = append(dirs, e.Name())
		}
	}
	return dirs
}

func TestModulesHaveTheirTests(t *testing.T) {
	dirs := modules(t)
	require.Subset(t, dirs, []string{"audit-trail", "pii-redactor", "quota", "secret-scanner"})
	for _, dir := range dirs {
		source, err := os.ReadFile(filepath.Join(dir, "main_test.go"))
		require.NoError(t, err)
		require.Contains(t, string(source), "moduletest.Run(t)", dir)
		main, err := os.ReadFile(filepath.Join(dir, "main.go"))
		require.NoError(t, err)
		folder := "../interceptors/"
		if settings, err := os.ReadFile(filepath.Join(dir, "weir.yaml")); err == nil {
			// It needs a grant: it would be refused in the folder of those that
			// do not, so it has one of its own.
			require.Contains(t, string(settings), dir+".wasm: {grants: ", dir)
			folder = "interceptors/"
		}
		require.Contains(t, string(main), "//go:generate go run ../../internal/guestbuild/buildguest -o "+folder+" .", dir)
	}
}

// TestOneFolder serves all modules as a user does: from one folder, by their
// names, with their configuration checked.
func TestOneFolder(t *testing.T) {
	folder := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	dirs := modules(t)
	for _, dir := range dirs {
		_, err := guestbuild.Copy(ctx, "./"+dir, folder+"/")
		require.NoError(t, err)
	}
	s := moduletest.OpenFolder(t, folder)
	var names []string
	for _, d := range s.List() {
		names = append(names, d.Name)
		require.NotEmpty(t, d.Version, d.Name)
		require.NotEmpty(t, d.Description, d.Name)
	}
	require.True(t, slices.IsSorted(names), names)
	require.Equal(t, dirs, names)

	for _, dir := range dirs {
		cases, err := guesttest.ReadCases(filepath.Join(dir, "testdata"))
		require.NoError(t, err)
		for _, c := range cases {
			t.Run(dir+"/"+c.Name, func(t *testing.T) {
				inv, err := c.Invocation()
				require.NoError(t, err)
				require.NoError(t, c.Check(s.Invoke(t.Context(), inv)))
			})
		}
		_, err = s.Invoke(t.Context(), abi.Invocation{
			Name: dir, Event: abi.ToolsCall, Phase: abi.Request, Payload: []byte(`{}`), Config: []byte(`{"no-such-option":1}`),
		})
		require.Equal(t, abi.ReasonConfig, abi.AsError(err, dir, abi.Request).Reason, dir)
	}
	t.Run("what a program asks a model", func(t *testing.T) { completions(t, s) })
}

// completions governs llm/completion, for which there is no relay, by the modules
// and the library's chain.
func completions(t *testing.T, s *moduletest.Sandbox) {
	c, err := gateway.NewChain(gateway.ChainOptions{
		Hosts:   hosts.NewSet([]*hosts.Host{hosts.InProcess("examples", s.Library, hosts.Options{})}, hosts.SetOptions{}),
		Events:  []string{abi.LLMCompletion},
		Timeout: time.Minute,
		Logger:  slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close(context.Background())) })
	ask := func(text string) gateway.Outcome {
		asked := abi.CompletionRequest{Model: "m-1", MaxTokens: 100,
			Messages: []abi.CompletionMessage{{Role: "user", Content: abi.TextContent(text)}},
			Other:    []abi.Member{{Name: "topP", Value: []byte("0.10")}}}
		return c.Execute(t.Context(), gateway.Operation{Event: abi.LLMCompletion, Payload: asked.AppendJSON(nil)})
	}

	out := ask("Write to jane.doe@example.com")
	require.True(t, out.Released(), "%+v", out.Aborted)
	asked, err := abi.ReadCompletionRequest(out.FinalPayload)
	require.NoError(t, err)
	require.NotContains(t, asked.Messages[0].Text(), "jane.doe")
	require.EqualValues(t, 100, asked.MaxTokens)
	require.Equal(t, []abi.Member{{Name: "topP", Value: []byte("0.10")}}, asked.Other, "as spelled")

	out = ask("Use AKIA" + "2E7GQ5RPWXNL4ZVT")
	require.Equal(t, abi.StatusValidationFailed, out.Status)
	require.Equal(t, "secret-scanner", out.Aborted.Interceptor)

	// What the types do not know survives as spelled, in a payload that changes.
	const answer = `{ "model":"m-1","message":{"role":"assistant","content":[{"type":"text","text":"%s","x":1.0}],"name":"b\u006ft"},` +
		`"stopReason":"end","usage":{"inputTokens":7,"outputTokens":2,"cached":1e0},"metadata":{"n":9007199254740993},"id":"\u0041" }`
	out = c.Execute(t.Context(), gateway.Operation{Event: abi.LLMCompletion, Phase: abi.Response, Direction: abi.Receiving,
		Payload: fmt.Appendf(nil, answer, "jane.doe@example.com"), Request: asked.AppendJSON(nil)})
	require.True(t, out.Released(), "%+v", out.Aborted)
	answered, err := abi.ReadCompletionResponse(out.FinalPayload)
	require.NoError(t, err)
	require.NotContains(t, answered.Message.Text(), "jane.doe")
	require.EqualValues(t, 2, answered.Usage.OutputTokens)
	require.Equal(t, fmt.Sprintf(answer, answered.Message.Text()), string(out.FinalPayload))
}
