package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/relay"
)

// How large messages may be by default, in bytes: config.md bounds what a client
// sends; what a backend answers is the operator's own choice of backend, and
// bounded for the memory's sake.
const (
	DefaultClientLimit  = 4 << 20
	DefaultBackendLimit = 16 << 20
)

// Options of a [Gateway].
type Options struct {
	ChainOptions
	// Relay are the options of each session. Governor, Session, Principal and
	// Logger are the gateway's to fill in. An Observer of nil counts discards and
	// logs them, see [relay.LogObserver].
	Relay relay.Options
}

// Gateway governs what relays move by a [Chain]. It is safe for concurrent use;
// one serves any number of sessions.
type Gateway struct {
	*Chain
	relay relay.Options
}

// New makes a gateway. It refuses what [NewChain] refuses. Close ends it.
func New(o Options) (*Gateway, error) {
	c, err := NewChain(o.ChainOptions)
	if err != nil {
		return nil, err
	}
	g := &Gateway{Chain: c, relay: o.Relay}
	g.relay.Governor, g.relay.Logger = g, c.log
	if g.relay.Observer == nil {
		g.relay.Observer = relay.NewLogObserver(c.log)
	}
	return g, nil
}

// SessionOptions gives the options of one relay session, for whoever runs one
// itself. id is what interceptors are told as context.sessionId; empty makes a
// random one. principal is the authenticated caller, or nil.
func (g *Gateway) SessionOptions(id string, principal *abi.Principal) relay.Options {
	o := g.relay
	if o.Session, o.Principal = id, principal; id == "" {
		o.Session = rand.Text()
	}
	return o
}

// Serve relays one session between a client and a backend until either ends,
// and closes both; see [relay.Run]. When a *[Backend] ends before it has said
// anything, the error names its command.
func (g *Gateway) Serve(ctx context.Context, client, backend relay.End) error {
	err := relay.Run(ctx, client, backend, g.SessionOptions("", nil))
	gone, ok := errors.AsType[*relay.BackendGone](err)
	process, own := backend.(*Backend)
	switch {
	case !ok || !own:
		return err
	case !gone.Spoke:
		return fmt.Errorf("backend %s ended before it had sent a message (%s): run it by itself to see why: %w", process, process.status(), err)
	default:
		return fmt.Errorf("backend %s ended (%s): %w", process, process.status(), err)
	}
}

// Govern executes what the relay asks about.
func (g *Gateway) Govern(ctx context.Context, op relay.Operation) relay.Decision {
	out := g.Execute(ctx, Operation{
		Event: op.Event, Phase: op.Phase, Direction: op.Direction, ProtocolVersion: op.ProtocolVersion,
		Payload: op.Payload, Request: op.Request, Context: &abi.Context{Principal: op.Principal, SessionID: op.Session},
		Traceparent: op.Traceparent, Initiator: op.Initiator, Reference: op.Reference, Arrived: op.Arrived,
	})
	d := relay.Decision{Block: out.Block()}
	if d.Block == nil {
		d.Uncacheable = out.Uncacheable
		if out.Modified {
			d.Payload = out.FinalPayload
		}
	}
	return d
}

var _ relay.Governor = (*Gateway)(nil)
