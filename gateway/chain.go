package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/chain"
	"github.com/weir-mcp/weir/gateway/relay"
)

// DefaultTimeout is the [ChainOptions.Timeout] in force when it is 0.
const DefaultTimeout = 10 * time.Second

// ChainOptions are the options of [NewChain].
type ChainOptions struct {
	// Hosts is required. [Chain.Close] closes it.
	Hosts Hosts
	// Policy may be nil: no overrides.
	Policy *chain.Policy
	// Events limits what is governed to these events: names, or patterns as in
	// hooks. All others pass, whatever hooks them or is required for them. Nil is
	// every event.
	Events []string
	// Timeout is the aggregate deadline of one plan (protocol.md §5). 0 means
	// [DefaultTimeout].
	Timeout time.Duration

	// Context is the default context, for what the live request leaves open. Its
	// timestamp is not used: that is the operation's.
	Context *abi.Context
	// Provider fills in the context. It may be nil.
	Provider ContextProvider
	// Claims are the names of the principal's claims that interceptors get to see.
	// Nil is none: claims may say more about a person than a guard, or another
	// team's server, has to know. The resolver sees all.
	Claims []string
	// Server is the identity of the MCP server, in place of what an operation
	// says. See [Operation.Server].
	Server string

	// Resolver adds hosts by operation, behind the configured ones. It may be nil.
	Resolver Resolver
	// ResolvedSets is how many sets that the resolver chose are open at most. For
	// one more, the one that has not been used for the longest time is closed; when
	// all are in use, the operation is blocked. 0 means [DefaultResolvedSets].
	ResolvedSets int
	// ResolvedIdle is how long a set stays open that no operation and no sink
	// uses. 0 means [DefaultResolvedIdle].
	ResolvedIdle time.Duration

	// Sinks bounds the sinks in flight. Its Observe is called besides the
	// observers.
	Sinks chain.SinkOptions
	// Observers are told what happens, in this order.
	Observers []Observer
	// Logger gets one record of each decision, under its reference, and what
	// operators should know. Nil is slog.Default.
	Logger *slog.Logger
	// LogMessages lets interceptors' messages into the log, cut to 256 bytes.
	LogMessages bool
}

// Observer is told what a chain does. A member may be nil. They are called from
// many goroutines, must return quickly and change nothing.
type Observer struct {
	// Decided is told of each governed phase with its outcome, payloads included,
	// before the message goes on.
	Decided func(*Operation, *Outcome)
	// Sunk is told of each sink, when it is done or lost.
	Sunk func(chain.SinkReport)
}

// Chain is what any number of hosts offer, as one chain: it discovers, plans
// and executes (protocol.md §5). Plans are kept for as long as the hosts' lists
// stay the same. It is safe for concurrent use; one serves a whole process.
type Chain struct {
	o     ChainOptions
	log   *slog.Logger
	sinks *chain.Sinks
	exec  *chain.Executor
	// configured is what there is without the resolver, which may be nil.
	configured source
	resolver   *resolver
}

// source is hosts with the plans made over their lists.
type source struct {
	hosts Hosts
	plans plans
}

// NewChain makes a chain. It refuses options that cannot mean anything.
// [Chain.Close] ends it.
func NewChain(o ChainOptions) (*Chain, error) {
	if o.Hosts == nil {
		return nil, errors.New("gateway: a chain needs hosts; give it a *hosts.Set, or Fixed() for none")
	}
	for _, e := range o.Events {
		// A pattern with something that it may stand for.
		if !abi.IsEvent(e) && !(abi.IsPattern(e) && abi.IsEvent(strings.ReplaceAll(e, "*", "x/y"))) {
			return nil, fmt.Errorf("gateway: %q in the list of events is no event and no pattern of any: nothing would ever match it", e)
		}
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	o.Events, o.Claims, o.Observers = slices.Clone(o.Events), slices.Clone(o.Claims), slices.Clone(o.Observers)
	c := &Chain{o: o, log: o.Logger, configured: source{hosts: o.Hosts, plans: plans{policy: o.Policy}}}
	if c.log == nil {
		c.log = slog.Default()
	}
	if o.Resolver == nil { // which may add what an entry is for
		c.configured.plans.log = c.log
	}
	if o.Resolver != nil {
		c.resolver = newResolver(&c.o)
	}
	observe := o.Sinks.Observe
	o.Sinks.Observe = func(r chain.SinkReport) {
		c.logSink(r)
		if observe != nil {
			observe(r)
		}
		for i := range c.o.Observers {
			if sunk := c.o.Observers[i].Sunk; sunk != nil {
				sunk(r)
			}
		}
	}
	c.sinks = chain.NewSinks(o.Sinks)
	c.exec = chain.NewExecutor(chain.Options{Sinks: c.sinks})
	return c, nil
}

// Listings is what the configured hosts offer, in their order. It waits for
// those that have to be asked as long as ctx allows. The slice is shared: do not
// change it.
func (c *Chain) Listings(ctx context.Context) []chain.Listing {
	listings, version := c.o.Hosts.Listings(ctx)
	if version > 0 {
		c.configured.plans.of(version, listings) // where what is wrong with the policy is told of
	}
	return listings
}

// Ready asks every configured host for its list and says which cannot be
// listed. Their events are blocked until they answer, unless they fail open; the
// chain works all the same, and asks again.
func (c *Chain) Ready(ctx context.Context) error {
	var down []error
	for _, l := range c.Listings(ctx) {
		if l.Err != nil {
			down = append(down, l.Err)
		}
	}
	return errors.Join(down...)
}

// Close lets the sinks that run finish while ctx lasts and closes all hosts,
// the configured ones and those that were resolved. Operations should have ended
// before.
func (c *Chain) Close(ctx context.Context) error {
	err := c.sinks.Drain(ctx)
	if c.resolver != nil {
		err = errors.Join(err, c.resolver.closeAll(ctx))
	}
	return errors.Join(err, c.o.Hosts.Close(ctx))
}

// mayGovern says whether an event is on the list of events.
func (c *Chain) mayGovern(event string) bool {
	return c.o.Events == nil || slices.ContainsFunc(c.o.Events, func(pattern string) bool { return abi.MatchEvent(pattern, event) })
}

// Governs says quickly, without I/O, whether the scope's plan is anything but
// empty. While a host has to be asked first, and wherever a resolver may add
// one, it says yes. Of [relay.AnyEvent] it says yes too often where the list of
// events leaves out what is hooked.
func (c *Chain) Governs(s relay.Scope) bool {
	if s.Event != relay.AnyEvent && (!abi.IsEvent(s.Event) || !c.mayGovern(s.Event)) || c.o.Events != nil && len(c.o.Events) == 0 {
		return false
	}
	if c.resolver != nil {
		return true
	}
	listings, version := c.o.Hosts.Listings(ended)
	if version == 0 {
		return true
	}
	return c.configured.plans.of(version, listings).governs(s)
}

// Plan is the plan over the configured hosts for a scope with a concrete event,
// as far as they can be listed before ctx ends.
func (c *Chain) Plan(ctx context.Context, s relay.Scope) *chain.Plan {
	if !c.mayGovern(s.Event) {
		return chain.NewPlan(nil, nil, s.Event, s.Phase, s.Direction, s.ProtocolVersion)
	}
	return c.configured.plan(ctx, s)
}

// plan waits for hosts as long as ctx lasts.
func (s *source) plan(ctx context.Context, scope relay.Scope) *chain.Plan {
	listings, version := s.hosts.Listings(ctx)
	if version == 0 {
		return newPlan(listings, s.plans.policy, scope)
	}
	return s.plans.of(version, listings).plan(scope)
}

// Execute discovers as far as need be, plans, and runs the operation through the
// plan. It returns when all that decides is known, at the latest when the
// aggregate deadline passes or ctx ends; sinks go on behind it. ctx is the
// requester's.
func (c *Chain) Execute(ctx context.Context, op Operation) Outcome {
	c.complete(&op)
	if !abi.IsEvent(op.Event) || !c.mayGovern(op.Event) {
		return Outcome{Reference: op.Reference, Outcome: chain.Outcome{Status: abi.StatusSuccess, Event: op.Event, Phase: op.Phase,
			Direction: op.Direction, FinalPayload: op.Payload}}
	}
	run := chain.Operation{Payload: op.Payload, Request: op.Request, Arrived: op.Arrived, Timeout: c.o.Timeout}
	plan, release := c.prepare(ctx, &op, &run)
	out := Outcome{Reference: op.Reference, Outcome: c.exec.Execute(ctx, plan, run)}
	release()
	out.Uncacheable = op.Phase == abi.Response && strings.HasSuffix(op.Event, "/list") && plan.Mutates()
	c.logDecision(&op, &out)
	for i := range c.o.Observers {
		if decided := c.o.Observers[i].Decided; decided != nil {
			decided(&op, &out)
		}
	}
	return out
}

// complete fills in what a caller may leave open.
func (c *Chain) complete(op *Operation) {
	if op.Phase == "" {
		op.Phase = abi.Request
	}
	if op.Arrived.IsZero() {
		op.Arrived = time.Now()
	}
	if op.Reference == "" {
		op.Reference = rand.Text()
	}
	if c.o.Server != "" {
		op.Server = c.o.Server
	}
}

// prepare finds out about whom and by whom the operation is governed. Waiting
// for that counts towards the aggregate deadline (protocol.md §5). What cannot
// be found out is a plan that blocks.
func (c *Chain) prepare(ctx context.Context, op *Operation, run *chain.Operation) (plan *chain.Plan, release func()) {
	ctx, cancel := context.WithDeadline(ctx, op.Arrived.Add(c.o.Timeout))
	defer cancel()
	scope := relay.Scope{Event: op.Event, Phase: op.Phase, Direction: op.Direction, ProtocolVersion: op.ProtocolVersion}
	release = func() {}
	known, err := c.contextOf(ctx, op)
	if err != nil {
		return blocked("context", err, scope), release
	}
	from := &c.configured
	if c.resolver != nil {
		set, err := c.resolver.hold(ctx, op, known)
		if err != nil {
			return blocked("resolver", err, scope), release
		}
		if set != nil {
			r := c.resolver
			from, release = &set.source, func() { r.release(set) }
			run.Hold = func() func() {
				r.again(set)
				return func() { r.release(set) }
			}
		}
	}
	run.Context = c.travelling(known)
	op.Context = known
	return from.plan(ctx, scope), release
}

// blocked is the plan that says why there is none.
func blocked(who string, err error, s relay.Scope) *chain.Plan {
	return newPlan([]chain.Listing{{Host: nobody(who), Err: err}}, nil, s)
}

// ExecuteOnce is one operation through a chain of its own: it discovers, decides
// and closes what the options hold. Sinks get as long as the aggregate deadline
// lasts, at least a second. The error is about the options or about closing; the
// outcome counts all the same where it is not zero.
func ExecuteOnce(ctx context.Context, o ChainOptions, op Operation) (Outcome, error) {
	c, err := NewChain(o)
	if err != nil {
		return Outcome{}, err
	}
	c.complete(&op)
	out := c.Execute(ctx, op)
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), max(time.Second, time.Until(op.Arrived.Add(c.o.Timeout))))
	defer cancel()
	return out, c.Close(last)
}
