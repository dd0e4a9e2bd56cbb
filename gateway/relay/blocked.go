package relay

import (
	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/wire"
)

// JSON-RPC codes of what the relay answers itself (protocol.md §6).
const (
	codeInvalidRequest = wire.CodeInvalid
	codeInvalidParams  = abi.CodeInvalidParams
	codeInternal       = abi.CodeInternal
)

// The texts are generic: nothing in them comes from a payload, an interceptor
// or the other side.
const (
	textReused      = "a request with this id is in flight"
	textFull        = "too many requests in flight"
	textClosing     = "the gateway is shutting down"
	textBackendGone = "the backend is gone; the request may or may not have been carried out"
	textClientGone  = "the client is gone"
	textBadAnswer   = "the answer to this request was malformed and has been withheld"
	textTooLarge    = "the message is larger than the gateway accepts"
	textUnknownTask = "unknown task"
	textBadAnswers  = "an answer in inputResponses is malformed or fits no request that was made"
	textDuplicates  = "a governed message must not have duplicate member names"
	textBlocked     = "blocked by an interceptor"
	textFailed      = "blocked because an interceptor could not decide"
	textUnlisted    = "blocked because an interceptor that may have a say is not available"
)

func appendError(dst, id []byte, code int, text string) []byte {
	return wire.AppendFailure(dst, id, code, text, nil)
}

// blocking is a block with what the answer to the requester says of it.
type blocking struct {
	*Block
	event     string
	phase     abi.Phase
	reference string
	// mayHaveRun says that a tool may have done its work all the same.
	mayHaveRun bool
}

// blockedAnswer is what the requester gets in place of what was blocked
// (protocol.md §6 "Blocked").
func (s *Session) blockedAnswer(requester Side, f *flight, b blocking) []byte {
	details := s.Blocked.Details == DetailsAlways || s.Blocked.Details == DetailsAuto && s.Boundary.guards(requester)
	data := b.appendData(nil, details)
	code, text := codeInternal, textFailed
	switch b.Reason {
	case abi.StatusValidationFailed:
		code, text = codeInvalidParams, textBlocked
	case abi.StatusDiscoveryFailed:
		text = textUnlisted
	}
	if s.Blocked.ToolResult && f.isToolCall() && !f.asTask {
		return wire.AppendResult(nil, f.id(), b.appendToolResult(nil, text, data, details))
	}
	return wire.AppendFailure(nil, f.id(), code, text, data)
}

// isToolCall says that the requester waits for the result of a tool.
func (f *flight) isToolCall() bool { return f.method == abi.ToolsCall || f.governedAs == abi.ToolsCall }

// appendData appends error.data. An empty event is that of a message whose own
// event never came to be known.
func (b *blocking) appendData(dst []byte, details bool) []byte {
	w := wire.OpenObject(dst)
	w.String("reason", string(b.Reason))
	w.String("reference", b.reference)
	w.String("event", b.event)
	w.String("phase", string(b.phase))
	if b.mayHaveRun {
		w.Bool("mayHaveRun", true)
	}
	if details {
		w.OptString("interceptor", b.Interceptor)
		if len(b.Messages) > 0 {
			w.List("messages", len(b.Messages), func(dst []byte, i int) []byte { return appendMessage(dst, &b.Messages[i]) })
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

// appendToolResult appends the alternative for tools/call: a result that a
// model can read, with the same data under _meta.
func (b *blocking) appendToolResult(dst []byte, text string, data []byte, details bool) []byte {
	text += " (reference " + b.reference + ")"
	if b.mayHaveRun {
		text += "; the tool may have run all the same"
	}
	if details {
		for _, m := range b.Messages {
			text += "\n" + m.Message
		}
	}
	w := wire.OpenObject(dst)
	w.List("content", 1, func(dst []byte, _ int) []byte {
		block := wire.OpenObject(dst)
		block.String("type", "text")
		block.String("text", text)
		return block.Close()
	})
	w.Bool("isError", true)
	w.Object("_meta", func(w *wire.ObjectWriter) { w.Raw(abi.ExtensionKey, data) })
	return w.Close()
}
