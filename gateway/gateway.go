package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/chain"
	"github.com/weir-mcp/weir/gateway/relay"
)

// The defaults of [Options], and how large messages may be by default, in
// bytes: config.md bounds what a client sends; what a backend answers is the
// operator's own choice of backend, and bounded for the memory's sake.
const (
	DefaultTimeout      = 10 * time.Second
	DefaultClientLimit  = 4 << 20
	DefaultBackendLimit = 16 << 20
)

// Hosts is where interceptors come from: a *hosts.Set.
type Hosts interface {
	// Listings gives one listing for each host in the configured order and a
	// version that changes whenever they do. Version 0 means that ctx ended
	// first and the listings are good for one operation only. It costs little
	// unless a host has to be asked.
	Listings(ctx context.Context) ([]chain.Listing, uint64)
	// Close ends all connections.
	Close(ctx context.Context) error
}

// Options of a [Gateway].
type Options struct {
	// Hosts is required. [Gateway.Close] closes it.
	Hosts Hosts
	// Policy may be nil: no overrides.
	Policy *chain.Policy
	// Boundary is the guarded side.
	Boundary relay.Boundary
	// Timeout is the aggregate deadline of one plan. 0 means [DefaultTimeout].
	Timeout time.Duration
	// Blocked and Limits are those of [relay.Options], for each session.
	Blocked relay.Blocked
	Limits  relay.Limits
	// Sinks bounds the sinks in flight. Its Observe is called besides the
	// gateway's own.
	Sinks chain.SinkOptions
	// Decided is told of each governed phase with its outcome, payloads included,
	// before the message goes on. It is called from many goroutines, must return
	// quickly, and must change nothing. It may be nil.
	Decided func(relay.Operation, *chain.Outcome)
	// Observer is told what the relay does. Nil counts discards and logs them to
	// Logger, see [relay.LogObserver].
	Observer relay.Observer
	// Logger gets the decisions and what operators should know. Nil is
	// slog.Default.
	Logger *slog.Logger
	// LogMessages lets interceptors' messages into the log, cut to 256 bytes.
	LogMessages bool
	// Grace and Drain are those of [relay.Options].
	Grace, Drain time.Duration
}

// Gateway governs by plans. It is safe for concurrent use; one serves any
// number of sessions.
type Gateway struct {
	o     Options
	log   *slog.Logger
	plans plans
	sinks *chain.Sinks
	exec  *chain.Executor
}

// New makes a gateway. [Gateway.Close] ends it.
func New(o Options) *Gateway {
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	g := &Gateway{o: o, log: o.Logger, plans: plans{policy: o.Policy}}
	if g.log == nil {
		g.log = slog.Default()
	}
	if o.Observer == nil {
		g.o.Observer = relay.NewLogObserver(g.log)
	}
	observe := o.Sinks.Observe
	o.Sinks.Observe = func(r chain.SinkReport) {
		g.logSink(r)
		if observe != nil {
			observe(r)
		}
	}
	g.sinks = chain.NewSinks(o.Sinks)
	g.exec = chain.NewExecutor(chain.Options{Sinks: g.sinks})
	return g
}

// Ready asks every host for its list and says which cannot be listed. Their
// events are blocked until they answer, unless they fail open; the gateway
// works all the same, and asks again.
func (g *Gateway) Ready(ctx context.Context) error {
	listings, _ := g.o.Hosts.Listings(ctx)
	var down []error
	for i := range listings {
		if listings[i].Err != nil {
			down = append(down, listings[i].Err)
		}
	}
	return errors.Join(down...)
}

// Close lets the sinks that run finish while ctx lasts and closes the hosts.
// Sessions should have ended before.
func (g *Gateway) Close(ctx context.Context) error {
	return errors.Join(g.sinks.Drain(ctx), g.o.Hosts.Close(ctx))
}

// Serve relays one session between a client and a backend until either ends,
// and closes both; see [relay.Run]. When a *[Backend] ends before it has said
// anything, the error names its command.
func (g *Gateway) Serve(ctx context.Context, client, backend relay.End) error {
	err := relay.Run(ctx, client, backend, relay.Options{
		Governor: g, Boundary: g.o.Boundary, Blocked: g.o.Blocked, Limits: g.o.Limits,
		Observer: g.o.Observer, Logger: g.log, Session: rand.Text(), Grace: g.o.Grace, Drain: g.o.Drain,
	})
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

// ended is a context for asking without waiting.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// Governs says whether the plan for the scope is anything but empty. While a
// host has to be asked first it says yes.
func (g *Gateway) Governs(s relay.Scope) bool {
	listings, version := g.o.Hosts.Listings(ended)
	if version == 0 {
		return true
	}
	return g.plans.of(version, listings).governs(s)
}

// Govern plans and executes.
func (g *Gateway) Govern(ctx context.Context, op relay.Operation) relay.Decision {
	plan := g.plan(ctx, &op)
	out := g.exec.Execute(ctx, plan, chain.Operation{
		Payload: op.Payload,
		Request: op.Request,
		Context: &abi.Context{Principal: op.Principal, SessionID: op.Session, Timestamp: op.Arrived.UTC().Format(time.RFC3339Nano)},
		Arrived: op.Arrived,
		Timeout: g.o.Timeout,
	})
	g.logDecision(&op, &out)
	if g.o.Decided != nil {
		g.o.Decided(op, &out)
	}
	uncacheable := op.Phase == abi.Response && strings.HasSuffix(op.Event, "/list") && plan.Mutates()
	switch {
	case !out.Released():
		b := &relay.Block{Reason: out.Status}
		if a := out.Aborted; a != nil {
			b.Interceptor, b.Messages = a.Interceptor, a.Messages
		}
		return relay.Decision{Block: b}
	case out.Modified:
		return relay.Decision{Payload: out.FinalPayload, Uncacheable: uncacheable}
	default:
		return relay.Decision{Uncacheable: uncacheable}
	}
}

// plan gives the plan for an operation. Waiting for hosts counts towards the
// aggregate deadline (protocol.md §5).
func (g *Gateway) plan(ctx context.Context, op *relay.Operation) *chain.Plan {
	ctx, cancel := context.WithDeadline(ctx, op.Arrived.Add(g.o.Timeout))
	defer cancel()
	listings, version := g.o.Hosts.Listings(ctx)
	if version == 0 {
		return newPlan(listings, g.o.Policy, op.Scope)
	}
	return g.plans.of(version, listings).plan(op.Scope)
}

var _ relay.Governor = (*Gateway)(nil)
