package chain

import (
	"slices"
	"strings"

	"github.com/weir-mcp/weir/abi"
)

// Governs reports whether any event at all has a plan that is not empty in the
// phase: whether there is an event for which [NewPlan], given the same
// arguments, makes a plan that calls somebody or blocks. It is exact, in either
// direction of travel, and for one protocol version only: a version may leave
// interceptors out, and, where those are required, block what no other blocks.
func Governs(listings []Listing, policy *Policy, phase abi.Phase, protocolVersion string) bool {
	if !phase.Valid() {
		return false
	}
	for i := range listings {
		l := &listings[i]
		if l.unavailable() != nil {
			if !l.FailOpen {
				return true
			}
			continue
		}
		runs := false
		policy.offered(i, l, func(c *candidate) {
			if reason, _ := c.exclude(protocolVersion); !runs && reason == "" {
				runs = someEvent(c.hooks(), phase)
			}
		}, func(LeftOut) {})
		if runs {
			return true
		}
	}
	return policy != nil && slices.ContainsFunc(policy.required, func(r requirement) bool {
		return (r.hooks == nil || someEvent(r.hooks, phase)) && len(r.unmet(listings, policy, protocolVersion)) > 0
	})
}

// hooks are the hooks in force: those that narrow the author's, which widen
// nothing, unless the candidate is refused, which fails on all of its author's.
func (c *candidate) hooks() abi.Hooks {
	if m := c.rules.hooks(); m.set && c.refuse() == nil {
		return m.value
	}
	return c.d.Hooks
}

// someEvent reports whether there is an event that hooks match in a phase.
func someEvent(hooks abi.Hooks, phase abi.Phase) bool {
	return slices.ContainsFunc(hooks, func(h abi.Hook) bool {
		return h.Phase == phase && slices.ContainsFunc(h.Events, matchesSome)
	})
}

// matchesSome reports whether there is an event that a pattern matches, by
// trying the likeliest one: what protocol.md §1 leaves out are names, which none
// with "zz" in it is, and two namespaces, which only a pattern that begins with
// them up to the slash cannot get away from.
func matchesSome(pattern string) bool {
	before, after, ok := strings.Cut(pattern, "*")
	if !ok {
		return abi.IsEvent(pattern)
	}
	filling := "zz"
	if !strings.Contains(before, "/") {
		filling = "zz/zz"
	}
	return abi.MatchEvent(pattern, before+filling+strings.ReplaceAll(after, "*", ""))
}
