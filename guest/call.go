package guest

import (
	"encoding/json"

	"github.com/weir-mcp/weir/abi"
)

// Call is one invocation of an interceptor whose config has type C.
type Call[C any] struct {
	Operation
	// Config is the configuration in force, decoded; C's zero value, or what
	// [Defaulter] made of it, where there is none.
	Config C
}

// NoConfig is the config type of an interceptor that takes none.
type NoConfig = struct{}

// Operation is what an interceptor is asked about. Its bytes are shared with
// the caller: read them, keep them if you like, but never write to them.
type Operation struct {
	// Interceptor is the name under which the interceptor was registered.
	Interceptor string
	// Event is the MCP method, such as "tools/call".
	Event string
	Phase Phase
	// Payload is the method's params in the request phase and its result in the
	// response phase, as spelled. It is always bare: a host that sends
	// envelopes (protocol.md §3) gets one back, and the handler never sees it.
	Payload json.RawMessage
	// Request is, in the response phase, the params that the payload answers;
	// nil where the host does not have them.
	Request json.RawMessage
	// Context says on whose behalf the operation runs; zero where the host does
	// not say.
	Context Context
}

func operationOf(inv *abi.Invocation) Operation {
	o := Operation{Interceptor: inv.Name, Event: inv.Event, Phase: inv.Phase, Payload: inv.Payload, Request: inv.Request}
	if inv.Context != nil {
		o.Context = *inv.Context
	}
	return o
}
