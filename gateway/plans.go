package gateway

import (
	"sync"
	"sync/atomic"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/chain"
	"github.com/weir-mcp/weir/gateway/relay"
)

// plans keeps the plans made for the lists in force.
type plans struct {
	policy  *chain.Policy
	current atomic.Pointer[generation]
}

// generation holds the plans for one version of the lists.
type generation struct {
	version  uint64
	listings []chain.Listing
	policy   *chain.Policy
	number   atomic.Int64
	made     sync.Map // relay.Scope → *chain.Plan
	any      sync.Map // relay.Scope of AnyEvent → bool
}

// mostPlans bounds the plans that are kept: events and protocol versions are a
// peer's words. A plan beyond it is made anew each time.
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
			return next
		}
	}
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
	s.ProtocolVersion = "" // of which every interceptor makes sense
	if governs, ok := g.any.Load(s); ok {
		return governs.(bool)
	}
	governs := g.governsAny(s)
	g.any.Store(s, governs)
	return governs
}

// unhooked is an event that only patterns hook: what blocks it besides blocks
// every event.
const unhooked = "weir/any"

// governsAny says whether anything at all may be governed in a phase.
func (g *generation) governsAny(s relay.Scope) bool {
	for i := range g.listings {
		for _, d := range g.listings[i].Interceptors {
			for _, h := range d.Hooks {
				if h.Phase == s.Phase && len(h.Events) > 0 {
					return true
				}
			}
		}
	}
	// No interceptor hooks the phase; but a host that cannot be listed, or a
	// required interceptor that is missing, may still block events.
	for _, event := range []string{unhooked, abi.SamplingCreate, abi.ElicitationCreate, abi.RootsList, abi.ToolsCall} {
		s.Event = event
		if !newPlan(g.listings, g.policy, s).Empty() {
			return true
		}
	}
	return false
}

func newPlan(listings []chain.Listing, policy *chain.Policy, s relay.Scope) *chain.Plan {
	return chain.NewPlan(listings, policy, s.Event, s.Phase, s.Direction, s.ProtocolVersion)
}
