package chain

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/weir-mcp/weir/abi"
)

// Origin says who decided a setting.
type Origin uint8

// The origins, from the weakest to the strongest.
const (
	FromDefault Origin = iota // protocol.md §5
	FromAuthor                // the descriptor
	FromPolicy                // an entry of the `interceptors:` list
)

// From says where a setting came from.
type From struct {
	Origin Origin
	// Source is the [Entry.Source] of a setting that came from policy.
	Source string
}

// String is "default", "author", "policy" or such as "policy weir.yaml:12:3".
func (f From) String() string {
	switch f.Origin {
	case FromDefault:
		return "default"
	case FromAuthor:
		return "author"
	}
	if f.Source == "" {
		return "policy"
	}
	return "policy " + f.Source
}

// Setting is a value in force and where it came from.
type Setting[T any] struct {
	Value T
	From  From
}

// Settings is what holds for one interceptor in one plan, member by member.
// Policy wins over the author and the author over the default (protocol.md §5).
type Settings struct {
	Mode     Setting[abi.Mode]
	FailOpen Setting[bool]
	// Priority is the effective priority in the plan's phase.
	Priority Setting[int32]
	// Timeout bounds one invocation; 0 is none.
	Timeout Setting[time.Duration]
	// Config is what the interceptor is given, an object, or nil.
	Config Setting[json.RawMessage]
	// ConfigShown is what to print in place of Config.
	ConfigShown json.RawMessage
	Hooks       Setting[abi.Hooks]
	// Required says that the plan's event and phase are blocked while the
	// interceptor is not there.
	Required Setting[bool]
}

// rules are what applies to one interceptor, the strongest first; some are nil.
type rules struct {
	own [2]*rule // that address it by name, or its own `as` entry
	any [2]*rule // `*` entries
}

// forOriginal gives the rules of an interceptor that is no copy.
func (p *Policy) forOriginal(name, host string) rules {
	if p == nil {
		return rules{}
	}
	r := rules{any: p.forAny(host)}
	r.own[1] = p.rules[address{name, ""}]
	if host != "" {
		r.own[0] = p.rules[address{name, host}]
	}
	return r
}

// forCopy gives the rules of a copy: beneath its own entry only `*` entries
// apply (config.md).
func (p *Policy) forCopy(a *alias, host string) rules {
	return rules{own: [2]*rule{a.rule}, any: p.forAny(host)}
}

func (p *Policy) forAny(host string) (r [2]*rule) {
	r[1] = p.rules[address{AnyInterceptor, ""}]
	if host != "" {
		r[0] = p.rules[address{AnyInterceptor, host}]
	}
	return r
}

// pick gives the member of the strongest rule that sets it.
func pick[T any](lists [2][2]*rule, of func(*rule) *member[T]) (m member[T]) {
	for _, list := range lists {
		for _, r := range list {
			if r == nil {
				continue
			}
			if m := of(r); m.set {
				return *m
			}
		}
	}
	return m
}

func (rs *rules) all() [2][2]*rule { return [2][2]*rule{rs.own, rs.any} }

func (rs *rules) enabled() member[bool] {
	return pick(rs.all(), func(r *rule) *member[bool] { return &r.enabled })
}

func (rs *rules) hooks() member[abi.Hooks] {
	return pick(rs.all(), func(r *rule) *member[abi.Hooks] { return &r.hooks })
}

func (rs *rules) config() member[config] {
	return pick(rs.all(), func(r *rule) *member[config] { return &r.config })
}

// mode leaves out what a `*` entry says where the interceptor is a sink: sinks
// have no mode, and "audit everything" is no reason to refuse them.
func (rs *rules) mode(typ abi.Type) member[abi.Mode] {
	lists := rs.all()
	if typ == abi.Sink {
		lists[1] = [2]*rule{}
	}
	return pick(lists, func(r *rule) *member[abi.Mode] { return &r.mode })
}

// resolve settles every member for d in a phase.
func (rs *rules) resolve(d *abi.Descriptor, phase abi.Phase) Settings {
	all := rs.all()
	s := Settings{
		Mode:  Setting[abi.Mode]{Value: abi.Active},
		Hooks: Setting[abi.Hooks]{d.Hooks, From{Origin: FromAuthor}},
	}
	if d.Mode == abi.Audit {
		s.Mode = Setting[abi.Mode]{abi.Audit, From{Origin: FromAuthor}}
	}
	override(&s.Mode, rs.mode(d.Type))
	if d.FailOpen {
		s.FailOpen = Setting[bool]{true, From{Origin: FromAuthor}}
	}
	override(&s.FailOpen, pick(all, func(r *rule) *member[bool] { return &r.failOpen }))
	if d.PriorityHint.IsSet() {
		s.Priority = Setting[int32]{d.PriorityHint.For(phase), From{Origin: FromAuthor}}
	}
	if m := pick(all, func(r *rule) *member[abi.PriorityHint] { return &r.priority }); m.set {
		s.Priority = Setting[int32]{m.value.For(phase), From{FromPolicy, m.source}}
	}
	override(&s.Timeout, pick(all, func(r *rule) *member[time.Duration] { return &r.timeout }))
	if m := rs.config(); m.set {
		s.Config = Setting[json.RawMessage]{m.value.value, From{FromPolicy, m.source}}
		s.ConfigShown = m.value.shown
	}
	override(&s.Hooks, rs.hooks())
	return s
}

func override[T any](s *Setting[T], m member[T]) {
	if m.set {
		*s = Setting[T]{m.value, From{FromPolicy, m.source}}
	}
}

// refuse says why the interceptor cannot run as policy wants, or nil. Such an
// interceptor is never left out in silence: it fails under its own mode and
// failOpen on all the hooks that its author declared (protocol.md §5).
func (rs *rules) refuse(d *abi.Descriptor) error {
	if err := rs.refuseHooks(d); err != nil {
		return err
	}
	if m := pick(rs.all(), func(r *rule) *member[abi.Type] { return &r.typ }); m.set && m.value != d.Type {
		return fmt.Errorf("it is listed as %s, and the entry at %s says %s", d.Type, m.source, m.value)
	}
	if m := rs.mode(d.Type); d.Type == abi.Sink && m.set && m.value == abi.Audit {
		return fmt.Errorf("the entry at %s sets a sink to audit, and a sink has no audit mode", m.source)
	}
	return nil
}

// refuseHooks says that policy would widen the hooks of the interceptor, or nil.
func (rs *rules) refuseHooks(d *abi.Descriptor) error {
	if m := rs.hooks(); m.set && !m.value.Within(d.Hooks) {
		return fmt.Errorf("the hooks in the entry at %s reach beyond those of the interceptor; an override may only narrow them", m.source)
	}
	return nil
}
