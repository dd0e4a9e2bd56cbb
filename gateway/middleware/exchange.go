package middleware

import (
	"context"
	"encoding/json"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway"
	"github.com/weir-mcp/weir/gateway/relay"
	"github.com/weir-mcp/weir/internal/tracecontext"
	"github.com/weir-mcp/weir/internal/wire"
)

// exchange is one request with its response.
type exchange struct {
	g         *governor
	method    string
	initiator relay.Side
	version   string
	context   abi.Context
	trace     string // as [traceOf] gives it, or of the call that it is made in
	server    string
	// sent is the params as they were passed on, where a plan of the response
	// will want to see them.
	sent json.RawMessage
}

func (g *governor) exchange(ctx context.Context, initiator relay.Side, method string, req mcp.Request) *exchange {
	session := req.GetSession()
	known := g.sessions.of(session)
	e := &exchange{g: g, method: method, initiator: initiator, version: version(known, req), server: serverName(session)}
	e.context.SessionID = known.name
	within := callOf(ctx, session)
	switch {
	case g.Principal != nil:
		e.context.Principal = g.Principal(ctx, req)
	case within != nil:
		e.context.Principal = within.principal
	default:
		e.context.Principal = tokenPrincipal(req.GetExtra())
	}
	if e.trace = traceOf(req); e.trace == "" && within != nil {
		e.trace = within.trace
	}
	return e
}

// traceOf is the trace context of a request: of its _meta, else of the HTTP
// request that brought it.
func traceOf(req mcp.Request) string {
	if p := req.GetParams(); !isNil(p) {
		if v, ok := p.GetMeta()[tracecontext.Name].(string); ok {
			if _, ok := tracecontext.Parse(v); ok {
				return v
			}
		}
	}
	if extra := req.GetExtra(); extra != nil {
		// Two of them are as good as none (W3C Trace Context).
		if all := extra.Header.Values(tracecontext.Name); len(all) == 1 {
			return all[0]
		}
	}
	return ""
}

// call is what is known of a request for what its handler asks the peer for in
// turn, such as sampling: it runs for the same caller, in the same trace.
type call struct {
	session   mcp.Session
	principal *abi.Principal
	trace     string
}

type callKey struct{}

// within is the context for the handler of e's request.
func (e *exchange) within(ctx context.Context, req mcp.Request) context.Context {
	return context.WithValue(ctx, callKey{}, &call{req.GetSession(), e.context.Principal, e.trace})
}

// callOf is the call in whose handler ctx is, nil where it is none of this
// session.
func callOf(ctx context.Context, session mcp.Session) *call {
	if c, ok := ctx.Value(callKey{}).(*call); ok && c.session == session {
		return c
	}
	return nil
}

// outgoing says that a phase's payload goes to the peer and not to the program.
func (e *exchange) outgoing(phase abi.Phase) bool {
	ours := (e.g.boundary == relay.GuardClient) == (e.initiator == relay.Client)
	return ours == (phase == abi.Request)
}

func (e *exchange) governs(event string, phase abi.Phase, initiator relay.Side) bool {
	return e.g.chain.Governs(relay.Scope{Event: event, Phase: phase, Direction: e.g.boundary.Direction(initiator, phase), ProtocolVersion: e.version})
}

// JSON-RPC errors of this package's own (protocol.md §6 "What is refused").
var (
	errBadRequest = &jsonrpc.Error{Code: wire.CodeInvalid, Message: "a governed message must not have duplicate member names"}
	errBadAnswer  = &jsonrpc.Error{Code: abi.CodeInternal, Message: "the answer to this request was malformed and has been withheld"}
)

// request governs a request and gives the one to pass on.
func (e *exchange) request(ctx context.Context, req mcp.Request) (mcp.Request, error) {
	at := time.Now()
	decide, wanted := e.governs(e.method, abi.Request, e.initiator), e.governs(e.method, abi.Response, e.initiator)
	params := req.GetParams()
	if decide || wanted {
		payload, err := payloadOf(params)
		if err != nil {
			return nil, err
		}
		if wire.Strict(payload) != nil {
			return nil, errBadRequest
		}
		if decide {
			now, err := e.decide(ctx, at, e.method, abi.Request, e.initiator, payload, nil)
			if err != nil {
				return nil, err
			}
			if now.modified {
				if req, err = withParams(req, e.method, payload, now.payload, e.outgoing(abi.Request)); err != nil {
					return nil, e.unfit(&now)
				}
			}
			payload = now.payload
		}
		e.sent = payload
	}
	req, changed, err := e.answers(ctx, at, req)
	if err == nil && changed && wanted {
		e.sent, err = payloadOf(req.GetParams())
	}
	return req, err
}

// response governs a result and gives the one to pass on.
func (e *exchange) response(ctx context.Context, res mcp.Result) (mcp.Result, error) {
	at := time.Now()
	if e.governs(e.method, abi.Response, e.initiator) {
		payload, err := payloadOf(res)
		if err != nil {
			return nil, err
		}
		if wire.Strict(payload) != nil {
			return nil, errBadAnswer
		}
		now, err := e.decide(ctx, at, e.method, abi.Response, e.initiator, payload, e.sent)
		if err != nil {
			return nil, err
		}
		if now.modified {
			if res, err = merged(res, payload, now.payload, e.outgoing(abi.Response)); err != nil {
				return nil, e.unfit(&now)
			}
		}
		if now.uncacheable {
			res = uncached(res)
		}
	}
	if e.initiator == relay.Client {
		return e.questions(ctx, at, res)
	}
	return res, nil
}

// decision is what the chain made of one payload.
type decision struct {
	payload     json.RawMessage
	modified    bool
	uncacheable bool
	refusal     relay.Refusal // for what follows from the decision
}

// decide asks the chain. The error is the block, as the requester of the whole
// exchange is told.
func (e *exchange) decide(ctx context.Context, at time.Time, event string, phase abi.Phase, initiator relay.Side, payload, request json.RawMessage) (decision, error) {
	out := e.g.chain.Execute(ctx, gateway.Operation{
		Event: event, Phase: phase, Direction: e.g.boundary.Direction(initiator, phase), ProtocolVersion: e.version,
		Payload: payload, Request: request, Context: &e.context, Traceparent: e.trace, Server: e.server, Initiator: initiator, Arrived: at,
	})
	if refusal := out.Refusal(); refusal != nil {
		return decision{}, e.refused(refusal)
	}
	return decision{
		payload: out.FinalPayload, modified: out.Modified, uncacheable: out.Uncacheable,
		refusal: relay.Refusal{Block: &relay.Block{Reason: abi.StatusMutationFailed}, Event: event, Phase: phase, Reference: out.Reference, MayHaveRun: mayHaveRun(event, phase)},
	}, nil
}

func mayHaveRun(event string, phase abi.Phase) bool {
	return event == abi.ToolsCall && phase == abi.Response
}

func (e *exchange) refused(r *relay.Refusal) error {
	return &jsonrpc.Error{Code: int64(r.Code()), Message: r.Text(), Data: r.AppendData(nil, e.g.Details.Reach(e.g.boundary, e.initiator))}
}

// unfit is the block of a mutation whose payload does not fit the SDK's type.
func (e *exchange) unfit(d *decision) error { return e.refused(&d.refusal) }
