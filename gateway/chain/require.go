package chain

import (
	"errors"
	"fmt"
	"slices"

	"github.com/weir-mcp/weir/abi"
)

// DiscoveryReason says why a plan is blocked before it starts.
type DiscoveryReason string

// The reasons of discovery failures (protocol.md §5).
const (
	NotListed     DiscoveryReason = "not_listed" // a host has no list and may not fail open
	Missing       DiscoveryReason = "missing"    // a required interceptor is listed nowhere
	BadDescriptor DiscoveryReason = "malformed"  // a required one cannot be used
	RefusedByRule DiscoveryReason = "refused"    // a required one cannot run as policy wants
	Incompatible  DiscoveryReason = "compat"     // a required one is for other protocol versions
	Unserved      DiscoveryReason = "disabled"   // a required one is disabled on its host
)

// DiscoveryFailure is one reason why a plan blocks whatever goes through it.
type DiscoveryFailure struct {
	// Interceptor is the required one, empty when it is about a host.
	Interceptor string
	// Host is empty when a required interceptor is listed nowhere.
	Host   string
	Type   abi.Type
	Reason DiscoveryReason
	// Detail says more, for the operator only.
	Detail string
}

// requirement is one entry with `required`.
type requirement struct {
	name        string // as shown: the copy's name for an entry with `as`
	interceptor string
	host        string
	hooks       abi.Hooks // nil is everything
	alias       *alias
	source      string
}

// concerns reports whether the requirement holds for an event and phase.
func (r *requirement) concerns(event string, phase abi.Phase) bool {
	return r.hooks == nil || r.hooks.Match(event, phase)
}

// checkRequired refuses an entry that requires what policy takes away: on the
// host that it names, or, where it names none, on any host that an entry for
// the same interceptor names, and on all others.
func (p *Policy) checkRequired(e *Entry) error {
	hosts := []string{e.Host}
	if e.Host == "" && e.As == "" {
		for at := range p.rules {
			if at.interceptor == e.Interceptor && at.host != "" {
				hosts = append(hosts, at.host)
			}
		}
		slices.Sort(hosts)
	}
	wanted := e.Hooks
	if wanted == nil {
		wanted = abi.OnBoth("*")
	}
	var errs []error
	for _, host := range hosts {
		var rs rules
		if e.As != "" {
			rs = p.forCopy(p.names[e.As], host)
		} else {
			rs = p.forOriginal(e.Interceptor, host)
		}
		on := ""
		if host != "" && e.Host == "" {
			on = fmt.Sprintf(" on host %q (name the host that it is required on)", host)
		}
		if m := rs.enabled(); m.set && !m.value {
			errs = append(errs, e.errorf("required, but disabled%s by the entry at %s", on, m.source))
		}
		if m := rs.mode(e.Type); m.set && m.value == abi.Audit {
			errs = append(errs, e.errorf("required, but set to audit%s by the entry at %s", on, m.source))
		}
		if m := rs.hooks(); m.set && (len(wanted) == 0 || !wanted.Within(m.value)) {
			errs = append(errs, e.errorf("required, but its hooks are narrowed away%s by the entry at %s; name in this entry's hooks where it is required", on, m.source))
		}
	}
	return errors.Join(errs...)
}

// requires says whether an entry requires the candidate on an event and phase,
// and which: the first that does.
func (p *Policy) requires(c *candidate, event string, phase abi.Phase) Setting[bool] {
	if p != nil {
		for i := range p.required {
			r := &p.required[i]
			if r.interceptor == c.d.Name && r.alias == c.alias && (r.host == "" || r.host == c.hostName) && r.concerns(event, phase) {
				return Setting[bool]{true, From{FromPolicy, r.source}}
			}
		}
	}
	return Setting[bool]{}
}

// unmet gives a failure for each way in which the requirement is not met
// (protocol.md §5, Discovery failure).
func (r *requirement) unmet(listings []Listing, policy *Policy, protocolVersion string) (failures []DiscoveryFailure) {
	found := false
	for i := range listings {
		l := &listings[i]
		if l.unavailable() != nil || r.host != "" && r.host != l.Host.Name() {
			continue
		}
		for j := range l.Skipped {
			if s := &l.Skipped[j]; s.Name == r.interceptor {
				found = true
				failures = append(failures, r.failure(l.Host.Name(), "", BadDescriptor, errText(s.Err)))
			}
		}
		if d := l.find(r.interceptor); d != nil {
			found = true
			if reason, detail := r.lacks(policy, l.Host.Name(), d, protocolVersion); reason != "" {
				failures = append(failures, r.failure(l.Host.Name(), d.Type, reason, detail))
			}
		}
	}
	if !found {
		where := "no host lists it"
		if r.host != "" {
			where = "the host does not list it"
		}
		failures = append(failures, r.failure(r.host, "", Missing, where))
	}
	return failures
}

// find gives the descriptor of a name: the first, as the rest is left out.
func (l *Listing) find(name string) *abi.Descriptor {
	for i := range l.Interceptors {
		if l.Interceptors[i].Name == name {
			return &l.Interceptors[i]
		}
	}
	return nil
}

// lacks says why an interceptor that is listed does not meet the requirement, or
// nothing.
func (r *requirement) lacks(policy *Policy, host string, d *abi.Descriptor, protocolVersion string) (DiscoveryReason, string) {
	if err := wellFormed(d); err != nil {
		return BadDescriptor, err.Error()
	}
	c := candidate{d: d, name: r.name, configs: policy.configs}
	if r.alias != nil {
		c.rules = policy.forCopy(r.alias, host)
	} else {
		c.rules = policy.forOriginal(d.Name, host) // never a copy's name: NewPolicy refuses such an entry
	}
	if err := c.refuse(); err != nil {
		return RefusedByRule, err.Error()
	}
	if m := c.rules.enabled(); m.set && !m.value {
		return Unserved, From{FromPolicy, m.source}.String()
	}
	if !d.Compat.Includes(protocolVersion) {
		return Incompatible, compatText(d.Compat, protocolVersion)
	}
	return "", ""
}

func (r *requirement) failure(host string, typ abi.Type, reason DiscoveryReason, detail string) DiscoveryFailure {
	return DiscoveryFailure{
		Interceptor: r.name, Host: host, Type: typ, Reason: reason,
		Detail: fmt.Sprintf("required by %s: %s", From{FromPolicy, r.source}, detail),
	}
}
