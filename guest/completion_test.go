package guest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/guest/internal/module"
)

func TestCompletion(t *testing.T) {
	asked := json.RawMessage(`{"model":"m","messages":[{"role":"user","content":"my card is 4111"}],"maxTokens":9}`)
	answered := json.RawMessage(`{"message":{"role":"assistant","content":[{"type":"text","text":"ok"}]},"usage":{"inputTokens":3,"outputTokens":1}}`)

	request := Operation{Event: LLMCompletion, Phase: Request, Payload: asked}
	c, err := request.Completion()
	require.NoError(t, err)
	require.Equal(t, "my card is 4111", c.Messages[0].Text())
	require.EqualValues(t, 9, c.MaxTokens)
	_, err = request.CompletionAnswer()
	require.ErrorContains(t, err, "the request of llm/completion has no answer")

	response := Operation{Event: LLMCompletion, Phase: Response, Payload: answered, Request: asked}
	a, err := response.CompletionAnswer()
	require.NoError(t, err)
	require.Equal(t, "ok", a.Message.Text())
	require.EqualValues(t, 3, a.Usage.InputTokens)
	c, err = response.Completion()
	require.NoError(t, err)
	require.Equal(t, "m", c.Model, "what it answers")

	response.Request = nil
	_, err = response.Completion()
	require.ErrorContains(t, err, "did not say which request")
	other := Operation{Event: ToolsCall, Phase: Response, Payload: answered, Request: asked}
	_, err = other.Completion()
	require.ErrorContains(t, err, "tools/call asks no model")
	_, err = other.CompletionAnswer()
	require.ErrorContains(t, err, "has no answer of a model")
	response.Payload = json.RawMessage(`{"message":"hi"}`)
	_, err = response.CompletionAnswer()
	require.ErrorContains(t, err, "llm/completion response")
}

// A validator of prompts over the border of the ABI: it bounds what a model may
// be asked to write.
func TestCompletionOverTheBorder(t *testing.T) {
	var m module.Module
	register(&m, abi.Validation, Descriptor{Name: "budget", Hooks: OnRequest(LLMCompletion)}, func(o *Call[struct{}]) (abi.Result, error) {
		c, err := o.Completion()
		switch {
		case err != nil:
			return Deny("%v", err).result()
		case c.MaxTokens == 0 || c.MaxTokens > 100:
			return Deny("too long an answer").result()
		}
		return Allow().result()
	})
	for payload, valid := range map[string]bool{
		`{"messages":[],"maxTokens":100}`: true,
		`{"messages":[],"maxTokens":101}`: false,
		`{"messages":[]}`:                 false,
		`{"messages":7}`:                  false,
	} {
		answer := string(m.Invoke(abi.AppendCall(nil, &abi.Invocation{Name: "budget", Event: LLMCompletion, Phase: Request, Payload: json.RawMessage(payload)})))
		require.Equal(t, valid, strings.Contains(answer, `"valid":true`), "%s: %s", payload, answer)
	}
}
