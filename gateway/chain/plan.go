package chain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-mcp/weir/abi"
)

// Step is one interceptor in a plan.
type Step struct {
	// Name is the name that it is shown and ordered by: a copy's own.
	Name string
	// Interceptor is the name that its host knows it by.
	Interceptor string
	// Host is the name of the host that runs it.
	Host    string
	Type    abi.Type
	Version string
	// Compat is the range of protocol versions that the author made it for, or nil.
	Compat *abi.Compat
	Settings
	// Refused says why the interceptor cannot run as policy wants. Such a step
	// is never invoked: it fails under its own mode and failOpen.
	Refused error

	host      Host
	hostIndex int
}

// active reports whether what the step answers counts.
func (s *Step) active() bool { return s.Mode.Value != abi.Audit }

// blocksOnFailure reports whether a failure of the step blocks the operation.
func (s *Step) blocksOnFailure() bool {
	return s.Type != abi.Sink && s.active() && !s.FailOpen.Value
}

// LeftOutReason says why an interceptor or a host has no part in a plan.
type LeftOutReason string

// The reasons for leaving out.
const (
	NotHooked       LeftOutReason = "not_hooked"       // its author's hooks do not match
	IncompatVersion LeftOutReason = "compat"           // made for other protocol versions
	Narrowed        LeftOutReason = "narrowed"         // policy's hooks do not match
	Disabled        LeftOutReason = "disabled"         // by policy
	Replaced        LeftOutReason = "replaced"         // only copies of it are served
	Duplicate       LeftOutReason = "duplicate"        // its host lists the name twice
	Malformed       LeftOutReason = "malformed"        // its descriptor cannot be used
	HostUnavailable LeftOutReason = "host_unavailable" // a host that may fail open has no list
)

// LeftOut is an interceptor that has no part in a plan, or a whole host, whose
// Name is then empty.
type LeftOut struct {
	Name   string
	Host   string
	Type   abi.Type // empty when it could not be read
	Reason LeftOutReason
	// Detail says more, such as which entry of policy did it. It may be empty,
	// and may hold a remote host's own words: it is for the operator only.
	Detail string
}

// Plan is the ordered chain for one event, phase, direction and protocol
// version. It is immutable and safe for concurrent use.
type Plan struct {
	event           string
	phase           abi.Phase
	direction       abi.Direction
	protocolVersion string

	steps                         []Step // in the order of passes
	mutations, validations, sinks []Step // parts of steps
	leftOut                       []LeftOut
	failures                      []DiscoveryFailure
}

// NewPlan merges what the hosts list, given in configured order, into the plan
// for one event and phase (protocol.md §5, steps 2 to 6). policy may be nil.
// protocolVersion is the negotiated one; "" is unknown and excludes nothing.
// The plan of what is no event (see [abi.IsEvent]) is empty.
//
// NewPlan is pure: equal arguments give equal plans, whatever the order of the
// descriptors within a list. It keeps parts of the descriptors; do not change
// them afterwards.
func NewPlan(listings []Listing, policy *Policy, event string, phase abi.Phase, direction abi.Direction, protocolVersion string) *Plan {
	p := &Plan{event: event, phase: phase, direction: direction, protocolVersion: protocolVersion}
	if !abi.IsEvent(event) || !phase.Valid() {
		return p
	}
	p.steps = make([]Step, 0, hooked(listings, event, phase)) // steps are large: growing moves them
	for i := range listings {
		l := &listings[i]
		if err := l.unavailable(); err != nil {
			p.addUnavailable(l, err)
			continue
		}
		own := len(p.leftOut)
		for _, s := range l.Skipped {
			p.leaveOut(LeftOut{Name: s.Name, Host: l.Host.Name(), Reason: Malformed, Detail: errText(s.Err)})
		}
		policy.offered(i, l, func(c *candidate) { p.consider(c, policy) }, p.leaveOut)
		// Of one host and name there may be two, a copy and its refused namesake.
		slices.SortFunc(p.leftOut[own:], func(a, b LeftOut) int {
			return cmp.Or(cmp.Compare(a.Type, b.Type), strings.Compare(a.Detail, b.Detail))
		})
	}
	p.order()
	if policy != nil {
		for i := range policy.required {
			if r := &policy.required[i]; r.concerns(event, phase) {
				p.failures = append(p.failures, r.unmet(listings, policy, protocolVersion)...)
			}
		}
	}
	return p
}

// hooked counts the interceptors that hook an event.
func hooked(listings []Listing, event string, phase abi.Phase) (n int) {
	for i := range listings {
		for j := range listings[i].Interceptors {
			if listings[i].Interceptors[j].Hooks.Match(event, phase) {
				n++
			}
		}
	}
	return n
}

// offered goes through what a host lists: it calls take with each interceptor,
// and each copy of one, that policy knows by a name, and leave with the others.
// take must not keep the candidate.
func (p *Policy) offered(index int, l *Listing, take func(*candidate), leave func(LeftOut)) {
	c := candidate{host: l.Host, hostName: l.Host.Name(), hostIndex: index}
	if p != nil {
		c.configs = p.configs
	}
	seen := make(map[string]struct{}, len(l.Interceptors))
	for j := range l.Interceptors {
		d := &l.Interceptors[j]
		out := LeftOut{Name: d.Name, Host: c.hostName, Type: d.Type}
		if err := wellFormed(d); err != nil {
			out.Reason, out.Detail = Malformed, err.Error()
			leave(out)
			continue
		}
		if _, ok := seen[d.Name]; ok {
			out.Reason = Duplicate
			leave(out)
			continue
		}
		seen[d.Name] = struct{}{}
		copies := p.copiesOf(d.Name, c.hostName)
		if len(copies) > 0 && !p.servesOriginal(d.Name, c.hostName) {
			out.Reason, out.Detail = Replaced, "only copies of it are served; an entry with its own name and no `as` would serve it too"
			leave(out)
		} else {
			c.d, c.name, c.rules, c.alias = d, d.Name, p.forOriginal(d.Name, c.hostName), nil
			if p != nil {
				c.clash = p.names[d.Name]
			}
			take(&c)
		}
		for _, a := range copies {
			c.d, c.name, c.rules, c.alias, c.clash = d, a.as, p.forCopy(a, c.hostName), a, nil
			take(&c)
		}
	}
}

// unavailable says why nothing can be taken from a listing, or nil.
func (l *Listing) unavailable() error {
	if l.Err == nil && l.Host == nil {
		return fmt.Errorf("the listing names no host")
	}
	return l.Err
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// wellFormed checks what the rest of this package relies on. Discovery has
// read descriptors strictly, but natives never passed a reader.
func wellFormed(d *abi.Descriptor) error {
	switch {
	case d.Name == "":
		return fmt.Errorf("it has no name")
	case !d.Type.Valid():
		return fmt.Errorf("type %q is none of validation, mutation and sink", d.Type)
	case d.Mode != "" && d.Mode != abi.Active && d.Mode != abi.Audit:
		return fmt.Errorf("mode %q is neither active nor audit", d.Mode)
	case d.Mode == abi.Audit && d.Type == abi.Sink:
		return fmt.Errorf("a sink has no audit mode")
	}
	return nil
}

// copiesOf gives the entries with `as` that copy an interceptor of a host.
func (p *Policy) copiesOf(name, host string) []*alias {
	if p == nil {
		return nil
	}
	all := p.aliases[name]
	if !slices.ContainsFunc(all, func(a *alias) bool { return !a.on(host) }) {
		return all
	}
	var on []*alias
	for _, a := range all {
		if a.on(host) {
			on = append(on, a)
		}
	}
	return on
}

func (a *alias) on(host string) bool { return a.host == "" || a.host == host }

// servesOriginal reports whether an entry without `as` names the interceptor.
func (p *Policy) servesOriginal(name, host string) bool {
	return p.rules[address{name, ""}] != nil || p.rules[address{name, host}] != nil
}

// candidate is an interceptor, or a copy of one, under consideration.
type candidate struct {
	d         *abi.Descriptor
	host      Host
	hostName  string
	hostIndex int
	name      string
	rules     rules
	alias     *alias // the entry that makes the copy, nil for an original
	clash     *alias // a copy that bears the name of this listed interceptor
	configs   *configCheck
}

// refuse says why the candidate cannot run as policy wants, or nil.
func (c *candidate) refuse() error {
	if c.clash != nil {
		return fmt.Errorf("the entry at %s gives its name to a copy; rename one of them", c.clash.source)
	}
	if err := c.rules.refuse(c.d); err != nil {
		return err
	}
	return c.configs.refuse(c.d, c.rules.config())
}

// exclude says why the candidate has no part in the plan of any event, or
// nothing. What is refused is not left out.
func (c *candidate) exclude(protocolVersion string) (LeftOutReason, string) {
	if !c.d.Compat.Includes(protocolVersion) {
		return IncompatVersion, compatText(c.d.Compat, protocolVersion)
	}
	if m := c.rules.enabled(); m.set && !m.value {
		return Disabled, From{FromPolicy, m.source}.String()
	}
	return "", ""
}

// consider selects the candidate for the plan or leaves it out.
func (p *Plan) consider(c *candidate, policy *Policy) {
	out := LeftOut{Name: c.name, Host: c.hostName, Type: c.d.Type}
	if !c.d.Hooks.Match(p.event, p.phase) {
		out.Reason = NotHooked
		p.leaveOut(out)
		return
	}
	if out.Reason, out.Detail = c.exclude(p.protocolVersion); out.Reason != "" {
		p.leaveOut(out)
		return
	}
	refused := c.refuse()
	if m := c.rules.hooks(); refused == nil && m.set && !m.value.Match(p.event, p.phase) {
		out.Reason, out.Detail = Narrowed, From{FromPolicy, m.source}.String()
		p.leaveOut(out)
		return
	}
	p.steps = append(p.steps, Step{
		Name: c.name, Interceptor: c.d.Name, Host: c.hostName, Type: c.d.Type, Version: c.d.Version, Compat: c.d.Compat,
		Settings: c.rules.resolve(c.d, p.phase), Refused: refused, host: c.host, hostIndex: c.hostIndex,
	})
	s := &p.steps[len(p.steps)-1]
	s.Required = policy.requires(c, p.event, p.phase)
	if refused != nil {
		s.Hooks = Setting[abi.Hooks]{c.d.Hooks, From{Origin: FromAuthor}} // it fails on all that its author declared
	}
}

func compatText(c *abi.Compat, version string) string {
	if c.MaxProtocol == "" {
		return fmt.Sprintf("%s is negotiated, it is for %s and later", version, c.MinProtocol)
	}
	return fmt.Sprintf("%s is negotiated, it is for %s to %s", version, c.MinProtocol, c.MaxProtocol)
}

func (p *Plan) leaveOut(l LeftOut) { p.leftOut = append(p.leftOut, l) }

// addUnavailable records a host without a list.
func (p *Plan) addUnavailable(l *Listing, err error) {
	if l.FailOpen {
		p.leaveOut(LeftOut{Host: l.hostName(), Reason: HostUnavailable, Detail: err.Error()})
		return
	}
	p.failures = append(p.failures, DiscoveryFailure{Host: l.hostName(), Reason: NotListed, Detail: err.Error()})
}

// order sorts the steps into passes. Names compare byte by byte, which for
// UTF-8 is the order of Unicode scalar values; only mutations have a priority.
func (p *Plan) order() {
	pass := [...]abi.Type{abi.Mutation, abi.Validation, abi.Sink}
	if p.direction == abi.Receiving {
		pass = [...]abi.Type{abi.Validation, abi.Sink, abi.Mutation}
	}
	rank := func(t abi.Type) int { return slices.Index(pass[:], t) }
	sorted := make([]int, len(p.steps)) // of indices: steps are large, and sorting moves them often
	for i := range sorted {
		sorted[i] = i
	}
	slices.SortFunc(sorted, func(i, j int) int {
		a, b := &p.steps[i], &p.steps[j]
		if c := cmp.Compare(rank(a.Type), rank(b.Type)); c != 0 {
			return c
		}
		if a.Type == abi.Mutation {
			if c := cmp.Compare(a.Priority.Value, b.Priority.Value); c != 0 {
				return c
			}
		}
		// A copy and a listed interceptor of its name, which is refused, may
		// stand on one host.
		return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.hostIndex, b.hostIndex), strings.Compare(a.Interceptor, b.Interceptor))
	})
	permute(p.steps, sorted)
	for from := 0; from < len(p.steps); {
		to := from
		for to < len(p.steps) && p.steps[to].Type == p.steps[from].Type {
			to++
		}
		part := p.steps[from:to:to]
		switch p.steps[from].Type {
		case abi.Mutation:
			p.mutations = part
		case abi.Validation:
			p.validations = part
		case abi.Sink:
			p.sinks = part
		}
		from = to
	}
	slices.SortStableFunc(p.leftOut, func(a, b LeftOut) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(string(a.Reason), string(b.Reason)))
	})
}

// permute puts list[order[i]] at i, for each i, and leaves order the identity.
func permute(list []Step, order []int) {
	for start := range order {
		if order[start] == start {
			continue
		}
		first := list[start]
		at := start
		for order[at] != start {
			from := order[at]
			list[at], order[at] = list[from], at
			at = from
		}
		list[at], order[at] = first, at
	}
}

// Event is the event that the plan is for.
func (p *Plan) Event() string { return p.event }

// Phase is the phase that the plan is for.
func (p *Plan) Phase() abi.Phase { return p.phase }

// Direction is the direction that the plan is for.
func (p *Plan) Direction() abi.Direction { return p.direction }

// ProtocolVersion is the negotiated version that the plan is for, "" if unknown.
func (p *Plan) ProtocolVersion() string { return p.protocolVersion }

// Steps gives the steps in plan order: pass by pass, in the order in which
// results are reported. The slice is the caller's, what it refers to is not.
func (p *Plan) Steps() []Step { return slices.Clone(p.steps) }

// LeftOut gives what has no part in the plan and why, by name, then reason,
// then host order.
func (p *Plan) LeftOut() []LeftOut { return slices.Clone(p.leftOut) }

// Failures gives the reasons why the plan blocks everything: hosts in
// configured order, then required interceptors in the order of their entries.
// There are none in a plan that runs.
func (p *Plan) Failures() []DiscoveryFailure { return slices.Clone(p.failures) }

// Blocked reports whether discovery failed, so that the plan releases nothing.
func (p *Plan) Blocked() bool { return len(p.failures) > 0 }

// Empty reports whether the plan releases every payload as it is without
// calling anyone.
func (p *Plan) Empty() bool { return len(p.steps) == 0 && len(p.failures) == 0 }

// Mutates reports whether an active mutation is in the plan, so that what is
// released may depend on it (protocol.md §6: such a list is not cacheable by
// others).
func (p *Plan) Mutates() bool {
	return slices.ContainsFunc(p.mutations, func(s Step) bool { return s.active() && s.Refused == nil })
}
