package gateway

import (
	"github.com/weir-mcp/weir/gateway/chain"
	"github.com/weir-mcp/weir/gateway/relay"
)

// ResolvedPlan is the plan that is kept for a scope over the resolved set of a
// key and the configured hosts, nil where none is.
func (c *Chain) ResolvedPlan(key string, s relay.Scope) *chain.Plan {
	c.resolver.mu.Lock()
	defer c.resolver.mu.Unlock()
	set := c.resolver.sets[key]
	if set == nil {
		return nil
	}
	kept := set.plans.current.Load()
	if kept == nil {
		return nil
	}
	plan, _ := kept.made.Load(s)
	p, _ := plan.(*chain.Plan)
	return p
}
