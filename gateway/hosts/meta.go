package hosts

import (
	"encoding/json"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/tracecontext"
	"github.com/weir-mcp/weir/internal/wire"
)

// meta is what goes along with an invocation in "_meta", as members of an object
// without its braces, or nil: the trace that the operation belongs to, and the
// request that a response answers where the host is to get it.
func (r *remote) meta(inv abi.Invocation) []byte {
	var w wire.ObjectWriter
	begun := false
	member := func(name string, value []byte) {
		if !begun {
			w, begun = wire.OpenObject(nil), true
		}
		w.Raw(name, value)
	}
	if c := inv.Context; c != nil {
		// Whoever wrote the ids asked for the trace, so it is marked as sampled.
		parent := tracecontext.Parent{TraceID: c.TraceID, SpanID: c.SpanID, Sampled: true}.String()
		if _, ok := tracecontext.Parse(parent); ok {
			member(tracecontext.Name, wire.AppendString(nil, parent))
		}
	}
	if r.request && inv.Phase == abi.Response && len(inv.Request) > 0 && len(inv.Request)+len(inv.Payload) <= maxWithRequest {
		member(abi.MetaRequest, inv.Request)
	}
	if !begun {
		return nil
	}
	whole := w.Close()
	return whole[1 : len(whole)-1]
}

// rawParams and rawResult carry JSON through the SDK as it is: what an
// interceptor sees and answers keeps its spelling.
type rawParams struct {
	mcp.ParamsBase
	raw  json.RawMessage
	meta []byte // of ours, see [remote.meta]
}

// MarshalJSON is the params with our "_meta" and what the protocol version wants
// in it (2026-07-28 says in each request who speaks which version).
func (p *rawParams) MarshalJSON() ([]byte, error) {
	meta := p.meta
	if len(p.Meta) > 0 {
		sdk, err := json.Marshal(p.Meta)
		if err != nil {
			return nil, err
		}
		if len(meta) > 0 {
			meta = append(slices.Clip(meta), ',')
		}
		meta = append(meta, sdk[1:len(sdk)-1]...)
	}
	if len(meta) == 0 {
		return p.raw, nil
	}
	out := slices.Grow([]byte(nil), len(p.raw)+len(meta)+16)
	out = append(out, p.raw[:len(p.raw)-1]...)
	if len(p.raw) > len("{}") {
		out = append(out, ',')
	}
	out = append(append(out, `"_meta":{`...), meta...)
	return append(out, "}}"...), nil
}

type rawResult struct {
	mcp.ResultBase
	raw json.RawMessage
}

// UnmarshalJSON only keeps the bytes; [remote.read] judges them.
func (r *rawResult) UnmarshalJSON(b []byte) error {
	r.raw = append(json.RawMessage(nil), b...)
	return nil
}
