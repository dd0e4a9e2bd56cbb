package gateway

import (
	"encoding/json"
	"time"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/chain"
	"github.com/weir-mcp/weir/gateway/relay"
)

// Operation is one phase of one operation that a [Chain] is to decide about.
// Event and Payload are what it takes; what else is not known may stay zero.
type Operation struct {
	// Event is an MCP method, llm/completion or a custom "namespace/operation"
	// (protocol.md §1). What is no event passes.
	Event string
	// Phase is empty for the request phase.
	Phase abi.Phase
	// Direction belongs to the point of interception (protocol.md §1). Zero is
	// sending.
	Direction abi.Direction
	// ProtocolVersion is the negotiated one, a date, or empty while unknown.
	ProtocolVersion string
	// Payload is the params or the result as spelled, a JSON object in which no
	// object has two members of one name; {} where it is empty. Sinks may hold it
	// after Execute has returned: do not reuse its memory.
	Payload json.RawMessage
	// Request is, in the response phase, the params that are answered, or nil.
	Request json.RawMessage
	// Context is what is known of the live request. Its members go before those
	// of [ChainOptions.Context].
	Context *abi.Context
	// Traceparent is the W3C Trace Context that a transport brought the message
	// with, unchecked. It counts where neither Context nor the _meta of the params
	// names a trace.
	Traceparent string
	// Server is the identity of the MCP server that the operation goes to or comes
	// from, for the resolver, observers and the log. [ChainOptions.Server] goes
	// before it.
	Server string
	// Initiator is the side that made the request, for the log.
	Initiator relay.Side
	// Reference names the decision: what a blocked requester is told, and where
	// the log has the record. Empty makes a random one.
	Reference string
	// Arrived is when the message was read: where the aggregate deadline starts
	// (protocol.md §5). Zero is now.
	Arrived time.Time
}

// params are those of the request, in either phase; nil where not known.
func (op *Operation) params() json.RawMessage {
	if op.Phase == abi.Response {
		return op.Request
	}
	return op.Payload
}

// Outcome is what a [Chain] made of an operation.
type Outcome struct {
	chain.Outcome
	// Reference is that of the operation, or the one that was made for it.
	Reference string
	// Uncacheable says of a list's result that what was released depends on an
	// active mutation, so that no cache may keep it for others (protocol.md §6).
	Uncacheable bool
}

// Block says why the operation does not pass, nil where it is released.
func (o *Outcome) Block() *relay.Block {
	if o.Released() {
		return nil
	}
	b := &relay.Block{Reason: o.Status}
	if a := o.Aborted; a != nil {
		b.Interceptor, b.Messages = a.Interceptor, a.Messages
	}
	return b
}

// Refusal is what the requester of a blocked operation is told (protocol.md §6
// "Blocked"), nil where it is released.
func (o *Outcome) Refusal() *relay.Refusal {
	b := o.Block()
	if b == nil {
		return nil
	}
	return &relay.Refusal{Block: b, Event: o.Event, Phase: o.Phase, Reference: o.Reference,
		MayHaveRun: o.Event == abi.ToolsCall && o.Phase == abi.Response}
}
