package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/tracecontext"
	"github.com/weir-mcp/weir/internal/wire"
)

// ContextProvider fills in what an embedding program knows about who an
// operation runs for: c holds what the live request and the defaults say, and
// is the provider's to change. It runs once for each governed phase, before the
// resolver, from many goroutines, and should return when ctx ends. Its error
// blocks the operation (abi.StatusDiscoveryFailed): whom a guard is to judge
// must be known.
type ContextProvider func(ctx context.Context, op *Operation, c *abi.Context) error

// contextOf puts together what interceptors are told of an operation
// (protocol.md §3): what the operation says, else what its trace says, else the
// defaults, then what the provider makes of it. Claims are all there.
func (c *Chain) contextOf(ctx context.Context, op *Operation) (*abi.Context, error) {
	var v abi.Context
	if c.o.Context != nil {
		v = *c.o.Context
	}
	v.Timestamp = op.Arrived.UTC().Format(time.RFC3339Nano)
	live := op.Context
	if live == nil {
		live = &abi.Context{}
	}
	if live.Principal != nil {
		v.Principal = live.Principal
	}
	if live.SessionID != "" {
		v.SessionID = live.SessionID
	}
	if live.Timestamp != "" {
		v.Timestamp = live.Timestamp
	}
	if live.TraceID != "" {
		v.TraceID, v.SpanID = live.TraceID, live.SpanID
	} else if parent, ok := traceOf(op); ok {
		v.TraceID, v.SpanID = parent.TraceID, parent.SpanID
	}
	if c.o.Provider != nil {
		if v.Principal != nil {
			own := *v.Principal
			v.Principal = &own
		}
		if err := c.o.Provider(ctx, op, &v); err != nil {
			return nil, fmt.Errorf("the context provider failed: %w", err)
		}
	}
	return &v, nil
}

// traceOf reads the trace context of a request: of the message itself, else of
// the transport that brought it, which may know of its own hop only.
func traceOf(op *Operation) (tracecontext.Parent, bool) {
	if raw, ok := wire.Get(op.params(), "_meta", tracecontext.Name); ok {
		text, _ := wire.Unquote(raw)
		if parent, ok := tracecontext.Parse(text); ok {
			return parent, true
		}
	}
	if op.Traceparent == "" {
		return tracecontext.Parent{}, false
	}
	return tracecontext.Parse(op.Traceparent)
}

// travelling is the context as interceptors get it: with those claims of the
// principal that may travel.
func (c *Chain) travelling(v *abi.Context) *abi.Context {
	if v.Principal == nil || v.Principal.Claims == nil {
		return v
	}
	out, principal := *v, *v.Principal
	principal.Claims = allowedClaims(principal.Claims, c.o.Claims)
	out.Principal = &principal
	return &out
}

// allowedClaims keeps the named members of an object, as spelled. It is nil
// where none is left, and where claims is no object.
func allowedClaims(claims json.RawMessage, names []string) json.RawMessage {
	kept := []byte{'{'}
	err := wire.Members(claims, func(name string, rawName, value []byte) bool {
		if slices.Contains(names, name) {
			if len(kept) > 1 {
				kept = append(kept, ',')
			}
			kept = append(append(append(kept, rawName...), ':'), value...)
		}
		return true
	})
	if err != nil || len(kept) == 1 {
		return nil
	}
	return append(kept, '}')
}
