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
	// textBackendError stands in for the text of a backend's own error.
	textBackendError = "the backend answered with an error"
	textBadAnswer    = "the answer to this request was malformed and has been withheld"
	textTooLarge     = "the message is larger than the gateway accepts"
	textUnknownTask  = "unknown task"
	textBadAnswers   = "an answer in inputResponses is malformed or fits no request that was made"
	textDuplicates   = "a governed message must not have duplicate member names"
)

func appendError(dst, id []byte, code int, text string) []byte {
	return wire.AppendFailure(dst, id, code, text, nil)
}

// blockedAnswer is what the requester gets in place of what was blocked
// (protocol.md §6 "Blocked").
func (s *Session) blockedAnswer(requester Side, f *flight, r Refusal) []byte {
	details := s.Blocked.Details.Reach(s.Boundary, requester)
	data := r.AppendData(nil, details)
	if s.Blocked.ToolResult && f.isToolCall() && !f.asTask {
		return wire.AppendResult(nil, f.id(), r.appendToolResult(nil, data, details))
	}
	return wire.AppendFailure(nil, f.id(), r.Code(), r.Text(), data)
}

// isToolCall says that the requester waits for the result of a tool.
func (f *flight) isToolCall() bool { return f.method == abi.ToolsCall || f.governedAs == abi.ToolsCall }

// appendToolResult appends the alternative for tools/call: a result that a
// model can read, with the same data under _meta.
func (r *Refusal) appendToolResult(dst []byte, data []byte, details bool) []byte {
	text := r.Error()
	if r.MayHaveRun {
		text += "; the tool may have run all the same"
	}
	if details {
		for _, m := range r.Messages {
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
