package guest

import (
	"errors"
	"fmt"

	"github.com/weir-mcp/weir/abi"
)

// Completion and CompletionAnswer are what goes to a model and what comes back.
// Their messages' texts are Text(); members that the types do not have are in
// Other.
type (
	Completion       = abi.CompletionRequest
	CompletionAnswer = abi.CompletionResponse
)

// Completion reads what llm/completion asks of a model: the payload in the request
// phase, the request that the payload answers in the response phase. It fails
// for any other event, for what is malformed, and in the response phase where the
// host does not have the request.
func (o *Operation) Completion() (Completion, error) {
	raw := o.Payload
	if o.Phase == Response {
		raw = o.Request
	}
	switch {
	case o.Event != LLMCompletion:
		return Completion{}, fmt.Errorf("%s asks no model", o.Event)
	case raw == nil:
		return Completion{}, errors.New("the host did not say which request this answers")
	}
	return abi.ReadCompletionRequest(raw)
}

// CompletionAnswer reads what a model answered. It fails for any other event, in
// the request phase, and for what is malformed.
func (o *Operation) CompletionAnswer() (CompletionAnswer, error) {
	if o.Event != LLMCompletion || o.Phase != Response {
		return CompletionAnswer{}, fmt.Errorf("the %s of %s has no answer of a model", o.Phase, o.Event)
	}
	return abi.ReadCompletionResponse(o.Payload)
}
