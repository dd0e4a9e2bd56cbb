package server

import (
	"bytes"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/tracecontext"
	"github.com/weir-mcp/weir/internal/wire"
)

const keyMeta = "_meta"

// readMeta fills in what comes along with an invocation in the _meta of its
// params: the request that a response answers, where the caller sends it, and
// the trace, where the context names none.
func readMeta(inv *abi.Invocation, params []byte) {
	if inv.Phase == abi.Response {
		if request, ok := wire.Get(params, keyMeta, abi.MetaRequest); ok {
			inv.Request = bytes.Clone(request)
		}
	}
	if inv.Context != nil && inv.Context.TraceID != "" {
		return
	}
	raw, ok := wire.Get(params, keyMeta, tracecontext.Name)
	if !ok {
		return
	}
	text, _ := wire.Unquote(raw)
	if parent, ok := tracecontext.Parse(text); ok {
		if inv.Context == nil {
			inv.Context = &abi.Context{}
		}
		inv.Context.TraceID, inv.Context.SpanID = parent.TraceID, parent.SpanID
	}
}
