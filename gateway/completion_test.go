package gateway_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway"
	"github.com/weir-mcp/weir/gateway/chain"
	"github.com/weir-mcp/weir/gateway/hosts"
	"github.com/weir-mcp/weir/internal/guestbuild"
	"github.com/weir-mcp/weir/runtime"
	"github.com/weir-mcp/weir/runtime/library"
	"github.com/weir-mcp/weir/runtime/wazero"
)

// A program that calls a model governs that, too: by a real module here, of which
// "replace" edits the payload as JSON and "prompts" reads it by its types.
func TestCompletionsAreGovernedByAModule(t *testing.T) {
	ctx := t.Context()
	folder := t.TempDir()
	_, err := guestbuild.Copy(ctx, guestbuild.Module+"/guest/internal/fixture", folder+"/")
	require.NoError(t, err)
	quiet := slog.New(slog.DiscardHandler)
	engine, err := wazero.New(wazero.Options{Logger: quiet})
	require.NoError(t, err)
	rt := runtime.New(engine, runtime.WithLogger(quiet))
	t.Cleanup(func() { require.NoError(t, rt.Close(context.Background())) })
	lib, err := library.OpenFolder(ctx, folder, library.Options{
		Loader: library.Sandbox(rt, func(string) runtime.ModuleOptions {
			return runtime.ModuleOptions{Limits: runtime.Limits{CallTime: time.Minute, LoadTime: time.Minute}} // tests run beside it
		}),
		FirstLoad: 2 * time.Minute, Logger: quiet,
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, lib.Close(context.Background())) })
	require.NoError(t, lib.Ready(ctx))

	policy, err := chain.NewPolicy([]chain.Entry{{Interceptor: "replace", Config: []byte(`{"from":"Ada","to":"[name]"}`)}})
	require.NoError(t, err)
	c := newChain(t, gateway.ChainOptions{
		Hosts:   hosts.NewSet([]*hosts.Host{hosts.InProcess("local", lib, hosts.Options{})}, hosts.SetOptions{}),
		Policy:  policy,
		Timeout: 2 * time.Minute,
	})
	asked := abi.CompletionRequest{Model: "m-1", MaxTokens: 100,
		Messages: []abi.CompletionMessage{{Role: "user", Content: abi.TextContent("Who is Ada?")}},
		Other:    []abi.Member{{Name: "topP", Value: []byte("0.10")}}}
	out := c.Execute(ctx, gateway.Operation{Event: abi.LLMCompletion, Payload: asked.AppendJSON(nil)})
	require.True(t, out.Released(), "%+v", out.Aborted)
	require.Equal(t, `{"model":"m-1","messages":[{"role":"user","content":"Who is [name]?"}],"maxTokens":100,"topP":0.10}`, string(out.FinalPayload))
	sent := out.FinalPayload

	// What the types do not know survives as spelled, in a payload that is changed.
	const answer = `{ "model":"m-1","message":{"role":"assistant","content":[{"type":"text","text":"Ada was","x":1.0}],"name":"b\u006ft"},` +
		`"stopReason":"end","usage":{"inputTokens":7,"outputTokens":2,"cached":1e0},"metadata":{"n":9007199254740993},"id":"\u0041" }`
	out = c.Execute(ctx, gateway.Operation{Event: abi.LLMCompletion, Phase: abi.Response, Direction: abi.Receiving, Payload: []byte(answer), Request: sent})
	require.True(t, out.Released(), "%+v", out.Aborted)
	require.Equal(t, `{ "model":"m-1","message":{"role":"assistant","content":[{"type":"text","text":"[name] was","x":1.0}],"name":"b\u006ft"},`+
		`"stopReason":"end","usage":{"inputTokens":7,"outputTokens":2,"cached":1e0},"metadata":{"n":9007199254740993},"id":"\u0041" }`, string(out.FinalPayload))
	got, err := abi.ReadCompletionResponse(out.FinalPayload)
	require.NoError(t, err)
	require.Equal(t, "[name] was", got.Message.Text())
	require.EqualValues(t, 2, got.Usage.OutputTokens)

	asked.MaxTokens = 101
	out = c.Execute(ctx, gateway.Operation{Event: abi.LLMCompletion, Payload: asked.AppendJSON(nil)})
	require.Equal(t, abi.StatusValidationFailed, out.Status)
	require.Equal(t, "101 tokens are too many", out.Aborted.Messages[0].Message)
	out = c.Execute(ctx, gateway.Operation{Event: abi.LLMCompletion, Phase: abi.Response, Direction: abi.Receiving,
		Payload: []byte(`{"model":"m-2","message":{"role":"assistant","content":"hi"}}`), Request: sent})
	require.Equal(t, abi.StatusValidationFailed, out.Status)
	require.Equal(t, "asked m-1, and m-2 answered", out.Aborted.Messages[0].Message)
}
