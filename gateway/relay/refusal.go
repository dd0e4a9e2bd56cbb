package relay

import (
	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/wire"
)

// Refusal is a block as its requester is told of it: the error of protocol.md
// §6 "Blocked". The relay sends it on the wire; whoever governs without a relay
// makes an error of it.
type Refusal struct {
	*Block
	// Event is empty where the event of a message never came to be known.
	Event string
	Phase abi.Phase
	// Reference finds the record in the log.
	Reference string
	// MayHaveRun says that a tool may have done its work all the same.
	MayHaveRun bool
}

// The texts are generic: nothing in them comes from a payload, an interceptor
// or the other side.
const (
	textBlocked  = "blocked by an interceptor"
	textFailed   = "blocked because an interceptor could not decide"
	textUnlisted = "blocked because an interceptor that may have a say is not available"
)

// Code is the JSON-RPC code.
func (r *Refusal) Code() int {
	if r.Reason == abi.StatusValidationFailed {
		return codeInvalidParams
	}
	return codeInternal
}

// Text is the error's message.
func (r *Refusal) Text() string {
	switch r.Reason {
	case abi.StatusValidationFailed:
		return textBlocked
	case abi.StatusDiscoveryFailed:
		return textUnlisted
	default:
		return textFailed
	}
}

// Error is the text with the reference, so that a Refusal can be returned as an
// error within a program.
func (r *Refusal) Error() string { return r.Text() + " (reference " + r.Reference + ")" }

// AppendData appends error.data, a JSON object. With details it names the
// interceptor and what it said, see [Details.Reach].
func (r *Refusal) AppendData(dst []byte, details bool) []byte {
	w := wire.OpenObject(dst)
	w.String("reason", string(r.Reason))
	w.String("reference", r.Reference)
	w.String("event", r.Event)
	w.String("phase", string(r.Phase))
	if r.MayHaveRun {
		w.Bool("mayHaveRun", true)
	}
	if details {
		w.OptString("interceptor", r.Interceptor)
		if len(r.Messages) > 0 {
			w.List("messages", len(r.Messages), func(dst []byte, i int) []byte { return appendMessage(dst, &r.Messages[i]) })
		}
	}
	return w.Close()
}

func appendMessage(dst []byte, m *abi.Message) []byte {
	w := wire.OpenObject(dst)
	w.OptString("path", m.Path)
	w.String("message", m.Message)
	w.OptString("severity", string(m.Severity))
	return w.Close()
}
