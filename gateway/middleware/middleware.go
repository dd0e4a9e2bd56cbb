package middleware

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway"
	"github.com/weir-mcp/weir/gateway/relay"
)

// Options of [NewClient] and [GovernServer].
type Options struct {
	// Details says to whom the error of a blocked operation names the interceptor
	// and what it said. By default to a requester on this side only (protocol.md
	// §6 "Blocked"): the program itself, never the peer.
	Details relay.Details
	// Principal gives the caller of a message, or nil for nobody that is known.
	// Without it a server takes the user of the request's bearer token, if the
	// token names one, also for what the request's handler asks the client for, and
	// a client nobody.
	Principal func(ctx context.Context, req mcp.Request) *abi.Principal
}

// NewClient is mcp.NewClient for a client that is governed. It takes the place
// of mcp.NewClient because the SDK answers the requests inside input-required
// results beneath all middleware, where nothing could be governed: here the
// governed client does that itself, unless opts.MultiRoundTrip disables it, and
// then the caller's own retries are governed.
//
// Middleware that is added later sees what was not governed yet, and may change
// what was. opts may be nil, and is not changed.
func NewClient(impl *mcp.Implementation, opts *mcp.ClientOptions, c *gateway.Chain, o Options) *mcp.Client {
	own := mcp.ClientOptions{}
	if opts != nil {
		own = *opts
	}
	loop := own.MultiRoundTrip == nil || !own.MultiRoundTrip.Disabled
	own.MultiRoundTrip = &mcp.MultiRoundTripOptions{Disabled: true}
	client := mcp.NewClient(impl, &own)
	g := newGovernor(c, relay.GuardClient, o)
	var handler mcp.MethodHandler
	client.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		handler = next
		return g.middleware(relay.Backend)(next)
	})
	client.AddSendingMiddleware(g.middleware(relay.Client))
	if loop {
		client.AddSendingMiddleware(rounds(handler))
	}
	return client
}

// GovernServer has a server's operations governed. Call it once, after all other
// middleware of the server has been added and before the first session:
// middleware that is added later sees what was not governed yet, and may change
// what was.
func GovernServer(s *mcp.Server, c *gateway.Chain, o Options) {
	g := newGovernor(c, relay.GuardBackend, o)
	s.AddReceivingMiddleware(g.middleware(relay.Client))
	s.AddSendingMiddleware(g.middleware(relay.Backend))
}

// governor governs the sessions of one client or server.
type governor struct {
	Options
	chain    *gateway.Chain
	boundary relay.Boundary
	sessions sessions
}

func newGovernor(c *gateway.Chain, b relay.Boundary, o Options) *governor {
	return &governor{Options: o, chain: c, boundary: b, sessions: sessions{known: map[any]facts{}}}
}

// middleware governs what the given side asks for.
func (g *governor) middleware(initiator relay.Side) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if !abi.IsEvent(method) {
				res, err := next(ctx, method, req)
				g.sessions.observe(req.GetSession(), res)
				return res, err
			}
			e := g.exchange(ctx, initiator, method, req)
			req, err := e.request(ctx, req)
			if err != nil {
				return nil, err
			}
			res, err := next(e.within(ctx, req), method, req)
			if err != nil || isNil(res) {
				return res, err
			}
			return e.response(ctx, res)
		}
	}
}
