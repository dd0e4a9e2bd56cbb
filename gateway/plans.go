package gateway

import (
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weir-mcp/weir/gateway/chain"
	"github.com/weir-mcp/weir/gateway/relay"
)

// plans keeps the plans made for the lists in force.
type plans struct {
	policy *chain.Policy
	// log is told which entries of policy match nothing; nil is nobody.
	log     *slog.Logger
	current atomic.Pointer[generation]
}

// generation holds the plans for one version of the lists.
type generation struct {
	version  uint64
	listings []chain.Listing
	policy   *chain.Policy
	number   atomic.Int64 // of what is kept in the two
	made     sync.Map     // relay.Scope → *chain.Plan
	any      sync.Map     // relay.Scope of AnyEvent → bool
}

// mostPlans bounds the plans and answers that are kept: events and protocol
// versions are a peer's words. One beyond it is made anew each time.
const mostPlans = 1024

func (p *plans) of(version uint64, listings []chain.Listing) *generation {
	for {
		now := p.current.Load()
		if now != nil && now.version >= version {
			if now.version == version {
				return now
			}
			// Somebody who asked before the lists changed, and goes on later.
			return &generation{version: version, listings: listings, policy: p.policy}
		}
		next := &generation{version: version, listings: listings, policy: p.policy}
		if p.current.CompareAndSwap(now, next) {
			p.tell(now, next)
			return next
		}
	}
}

// tell logs what a change of the lists did to the entries of policy: a guard that
// silently never runs is the worst there is. What waits for a host that is down
// is told of at first only, as the host is told of by itself. was is nil at
// first.
func (p *plans) tell(was, is *generation) {
	if p.log == nil {
		return
	}
	var before, after []chain.Unmatched
	if was != nil {
		before = p.policy.Unmatched(was.listings)
	}
	after = p.policy.Unmatched(is.listings)
	said := func(u chain.Unmatched) bool {
		return slices.ContainsFunc(before, func(o chain.Unmatched) bool { return !o.Pending && o.String() == u.String() })
	}
	still := func(u chain.Unmatched) bool {
		return slices.ContainsFunc(after, func(o chain.Unmatched) bool { return o.Source == u.Source && o.Target == u.Target })
	}
	for _, u := range after {
		if was == nil || !u.Pending && !said(u) {
			p.log.Warn(u.String())
		}
	}
	for _, u := range before {
		switch {
		case still(u):
		case u.Author:
			p.log.Info("an interceptor no longer hooks what is no event of MCP", "interceptor", u.Target)
		default:
			p.log.Info("an entry of policy matches now", "entry", u.Source, "interceptor", u.Target)
		}
	}
}

// Unmatched gives the entries of policy that match nothing that the configured
// hosts list now, without asking any (protocol.md §5): for a metric, a page, a
// check. They change with the lists, and each change is logged. Where a resolver
// may add hosts, all that are not listed are pending.
func (c *Chain) Unmatched() []chain.Unmatched {
	listings, version := c.o.Hosts.Listings(ended)
	if last := c.configured.plans.current.Load(); version == 0 && last != nil {
		listings = last.listings // some are being asked: what was known before says more
	}
	list := c.o.Policy.Unmatched(listings)
	for i := range list {
		list[i].Pending = list[i].Pending || c.resolver != nil && list[i].Reason != chain.NoEvent && !list[i].Author
	}
	return list
}

func (g *generation) plan(s relay.Scope) *chain.Plan {
	if plan, ok := g.made.Load(s); ok {
		return plan.(*chain.Plan)
	}
	plan := newPlan(g.listings, g.policy, s)
	if g.number.Load() >= mostPlans {
		return plan
	}
	kept, loaded := g.made.LoadOrStore(s, plan)
	if !loaded {
		g.number.Add(1)
	}
	return kept.(*chain.Plan)
}

func (g *generation) governs(s relay.Scope) bool {
	if s.Event != relay.AnyEvent {
		return !g.plan(s).Empty()
	}
	s.Direction = 0 // which decides nothing but the order
	if governs, ok := g.any.Load(s); ok {
		return governs.(bool)
	}
	governs := chain.Governs(g.listings, g.policy, s.Phase, s.ProtocolVersion)
	if g.number.Load() < mostPlans {
		if _, loaded := g.any.LoadOrStore(s, governs); !loaded {
			g.number.Add(1)
		}
	}
	return governs
}

func newPlan(listings []chain.Listing, policy *chain.Policy, s relay.Scope) *chain.Plan {
	return chain.NewPlan(listings, policy, s.Event, s.Phase, s.Direction, s.ProtocolVersion)
}
