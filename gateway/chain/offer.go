package chain

import (
	"encoding/json"
	"time"

	"github.com/weir-mcp/weir/abi"
)

// Offer is an interceptor, or a copy of one, as policy has it, apart from any
// event: for whoever lists what all hosts offer together.
type Offer struct {
	// Descriptor is what to list: under the name that policy gives it, with the
	// hooks that policy leaves it. Do not change what it points to.
	Descriptor abi.Descriptor
	// Host serves it under the name Interceptor.
	Host        Host
	Interceptor string
	// Config and Timeout are what policy sets; nil and 0 are none.
	Config  json.RawMessage
	Timeout time.Duration
}

// Offers gives what the hosts offer, in configured order and each list's own.
// What policy disables or serves under no name is not in it, and neither is what
// cannot run as policy wants, or is not listed: a plan says of those why.
func Offers(listings []Listing, policy *Policy) []Offer {
	var offers []Offer
	for i := range listings {
		l := &listings[i]
		if l.unavailable() != nil {
			continue
		}
		policy.offered(i, l, func(c *candidate) {
			if m := c.rules.enabled(); m.set && !m.value || c.refuse() != nil {
				return
			}
			s := c.rules.resolve(c.d, abi.Request) // the members below are the same in both phases
			o := Offer{Descriptor: *c.d, Host: c.host, Interceptor: c.d.Name, Config: s.Config.Value, Timeout: s.Timeout.Value}
			o.Descriptor.Name, o.Descriptor.Hooks = c.name, s.Hooks.Value
			offers = append(offers, o)
		}, func(LeftOut) {})
	}
	return offers
}
