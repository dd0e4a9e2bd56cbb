package main

import (
	"encoding/json"
	"fmt"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/chain"
	"github.com/weir-mcp/weir/internal/config"
	"github.com/weir-mcp/weir/runtime/library"
)

// warnings says what is wrong with the policy as far as the lists tell, besides
// entries that match nothing ([chain.Policy.Unmatched]): what cannot run as it
// says, hooks that widen or a config that is not of its schema, so that each call
// fails.
func (a *assembly) warnings(listings []chain.Listing, boundary config.Boundary) []string {
	var all []string
	type interceptor struct{ host, name string }
	seen := map[interceptor]bool{}
	events, _ := eventsToPlan(listings, "")
	for _, event := range events {
		for _, phase := range []abi.Phase{abi.Request, abi.Response} {
			for _, s := range a.plan(listings, boundary, event, phase).Steps() {
				who := interceptor{s.Host, s.Name}
				if s.Refused == nil || seen[who] {
					continue
				}
				seen[who] = true
				all = append(all, fmt.Sprintf("%s on %s is refused, so each of its calls fails: %v", s.Name, s.Host, s.Refused))
			}
		}
	}
	return all
}

// checkConfig holds a config against the schema of its interceptor.
func (a *assembly) checkConfig(d *abi.Descriptor, config json.RawMessage) error {
	if err := library.CheckConfig(d, config); err != nil {
		return masked(a.mask, err)
	}
	return nil
}

func (a *assembly) plan(listings []chain.Listing, boundary config.Boundary, event string, phase abi.Phase) *chain.Plan {
	return chain.NewPlan(listings, a.policy, event, phase, directionOf(boundary, event, phase), "")
}

// downHosts says of each host without a list why, what to do, and what follows
// from it.
func downHosts(listings []chain.Listing) []string {
	var all []string
	for i := range listings {
		switch l := &listings[i]; {
		case l.Err == nil:
		case l.FailOpen:
			all = append(all, fmt.Sprintf("%v (it fails open: operations go on without it)", l.Err))
		default:
			all = append(all, fmt.Sprintf("%v (what it may guard is blocked until it answers)", l.Err))
		}
	}
	return all
}
