package relay

import (
	"context"
	"encoding/json"
	"time"

	"github.com/weir-mcp/weir/abi"
)

// Boundary says which side is guarded (protocol.md §6).
type Boundary uint8

// The boundaries. GuardClient is the default.
const (
	GuardClient Boundary = iota
	GuardBackend
)

// guards says whether the side is the guarded one.
func (b Boundary) guards(s Side) bool { return (b == GuardClient) == (s == Client) }

// Direction gives the direction of a phase of an operation that the given side
// initiated: what leaves the guarded side is sent, what reaches it is received
// (protocol.md §6).
func (b Boundary) Direction(initiator Side, phase abi.Phase) abi.Direction {
	if b.guards(initiator) == (phase == abi.Request) {
		return abi.Sending
	}
	return abi.Receiving
}

// AnyEvent as the event of a [Scope] asks about all events together.
const AnyEvent = ""

// Scope is what a plan is chosen by.
type Scope struct {
	// Event is a concrete event, or [AnyEvent].
	Event string
	Phase abi.Phase
	// Direction follows from boundary, initiator and phase.
	Direction abi.Direction
	// ProtocolVersion is the negotiated one, a date, or empty while unknown.
	ProtocolVersion string
}

// Operation is one phase of one operation, to be decided about.
type Operation struct {
	Scope
	// Reference is a fresh random name for this decision: what a blocked
	// requester is told, and where the log has the record.
	Reference string
	// Initiator is the side that made the request.
	Initiator Side
	// Payload is the params or the result, a JSON object that the strict reader
	// has accepted. It must not be changed in place.
	Payload json.RawMessage
	// Request is the payload of the request that this response answers, as it
	// was passed on, where it is known.
	Request json.RawMessage
	// Session and Principal are those of [Options].
	Session   string
	Principal *abi.Principal
	// Traceparent is the W3C Trace Context that the transport brought the message
	// with, as it stands there and unchecked; empty where there is none. One in the
	// _meta of params goes before it, and is the governor's to read.
	Traceparent string
	// Arrived is when the message was read: where aggregate deadlines start
	// (protocol.md §5).
	Arrived time.Time
}

// Decision is what a governor says of an operation.
type Decision struct {
	// Payload replaces the operation's when it is not nil. It must be a JSON
	// object without duplicate names; anything else blocks.
	Payload json.RawMessage
	// Uncacheable says of a list's result that it is for this client alone: its
	// cacheScope becomes private and its ttlMs 0, where it has them
	// (protocol.md §6).
	Uncacheable bool
	// Block is nil when the operation is released.
	Block *Block
}

// Block says why an operation does not pass.
type Block struct {
	// Reason is how the operation ended, never [abi.StatusSuccess].
	Reason abi.Status
	// Interceptor and Messages cross only where protocol.md §6 "Blocked" and
	// [Blocked.Details] let them.
	Interceptor string
	Messages    []abi.Message
}

// Governor decides about operations. Its methods are called from many
// goroutines at once.
type Governor interface {
	// Governs says quickly, without I/O, whether Govern has to be asked. It
	// may say yes too often, never too rarely: what it says no to passes.
	Governs(Scope) bool
	// Govern decides. It returns soon after ctx ends, which happens when the
	// request is cancelled, its requester is gone, or the relay shuts down.
	Govern(ctx context.Context, op Operation) Decision
}

// openGate governs nothing.
type openGate struct{}

func (openGate) Governs(Scope) bool                         { return false }
func (openGate) Govern(context.Context, Operation) Decision { return Decision{} }
