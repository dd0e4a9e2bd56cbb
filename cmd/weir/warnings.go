package main

import (
	"fmt"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/chain"
	"github.com/weir-mcp/weir/internal/config"
	"github.com/weir-mcp/weir/runtime/library"
)

// warnings says what is wrong with the policy as far as the lists tell, besides
// entries that match nothing ([chain.Policy.Unmatched]): configurations that are
// not of their interceptor's schema, with which every call would fail.
func (a *assembly) warnings(listings []chain.Listing, boundary config.Boundary) []string {
	var all []string
	type interceptor struct{ host, name string }
	seen := map[interceptor]bool{}
	for _, event := range eventsToPlan(listings, "") {
		for _, phase := range []abi.Phase{abi.Request, abi.Response} {
			for _, s := range a.plan(listings, boundary, event, phase).Steps() {
				who := interceptor{s.Host, s.Name}
				if s.Config.Value == nil || seen[who] {
					continue
				}
				seen[who] = true
				if err := library.CheckConfig(descriptorOf(listings, &s), s.Config.Value); err != nil {
					all = append(all, fmt.Sprintf("%s: the config of %s on %s is refused, so each of its calls fails: %s: %v",
						s.Config.From.Source, s.Name, s.Host, err.Path, masked(a.mask, err.Cause)))
				}
			}
		}
	}
	return all
}

// descriptorOf is the descriptor that a step was made of.
func descriptorOf(listings []chain.Listing, s *chain.Step) *abi.Descriptor {
	for i := range listings {
		if listings[i].Host.Name() != s.Host {
			continue
		}
		for j := range listings[i].Interceptors {
			if d := &listings[i].Interceptors[j]; d.Name == s.Interceptor {
				return d
			}
		}
	}
	return &abi.Descriptor{Name: s.Interceptor}
}

func (a *assembly) plan(listings []chain.Listing, boundary config.Boundary, event string, phase abi.Phase) *chain.Plan {
	return chain.NewPlan(listings, a.policy, event, phase, directionOf(boundary, event, phase), "")
}
