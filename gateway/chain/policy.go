package chain

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/wire"
)

// AnyInterceptor is the [Entry.Interceptor] that addresses all of them.
const AnyInterceptor = "*"

// Entry is one entry of the `interceptors:` list (config.md). Members that are
// nil or zero are not set and leave the choice to entries of lower precedence,
// to the author and to the defaults of protocol.md §5.
type Entry struct {
	// Interceptor is an exact name or [AnyInterceptor].
	Interceptor string
	// Host limits the entry to one host; empty means every host.
	Host string
	// As makes the entry one more copy of the interceptor under this name.
	As string

	Enabled      *bool
	Mode         *abi.Mode
	FailOpen     *bool
	PriorityHint *abi.PriorityHint // the whole hint, never one phase of it
	Timeout      *time.Duration    // of one invocation, above 0
	Config       json.RawMessage   // an object; replaces, never merges
	// ConfigShown is what is printed in place of Config, with the values of
	// expanded variables hidden (config.md). nil prints Config itself.
	ConfigShown json.RawMessage
	Hooks       abi.Hooks // nil is not set; empty hooks nothing

	// Required blocks with [abi.StatusDiscoveryFailed] each event and phase that
	// Hooks name (every one when Hooks is nil) while the interceptor is not
	// there.
	Required bool
	// Type is the type that the interceptor must be listed with.
	Type abi.Type

	// Source says where the entry stands, such as "weir.yaml:12:3", for errors
	// and provenance.
	Source string
}

// target names what an entry addresses, for errors.
func (e *Entry) target() string {
	s := fmt.Sprintf("%q", e.Interceptor)
	if e.Interceptor == AnyInterceptor {
		s = `"*"`
	}
	if e.Host != "" {
		s += fmt.Sprintf(" on host %q", e.Host)
	}
	if e.As != "" {
		s += fmt.Sprintf(" as %q", e.As)
	}
	return s
}

// errorf is an error about e that says where e stands.
func (e *Entry) errorf(format string, args ...any) error {
	where := e.Source
	if where == "" {
		where = "interceptors"
	}
	return fmt.Errorf("%s: interceptor %s: %w", where, e.target(), fmt.Errorf(format, args...))
}

// member is one member of policy with the entry that set it.
type member[T any] struct {
	set    bool
	value  T
	source string
}

// rule is what the entries of one rank say about one target, or what one entry
// with `as` says about its copy.
type rule struct {
	enabled  member[bool]
	mode     member[abi.Mode]
	failOpen member[bool]
	priority member[abi.PriorityHint]
	timeout  member[time.Duration]
	config   member[config]
	hooks    member[abi.Hooks]
	typ      member[abi.Type]
	required member[bool]
}

// set sets one member, unless another entry of the same rank did.
func set[T any](m *member[T], name string, value T, e *Entry) error {
	if m.set {
		return e.errorf("%s is set already, by the entry at %s; of two entries for the same interceptor and host only one can set it", name, m.source)
	}
	*m = member[T]{true, value, e.Source}
	return nil
}

// add merges e into r.
func (r *rule) add(e *Entry) error {
	var errs []error
	if e.Enabled != nil {
		errs = append(errs, set(&r.enabled, "enabled", *e.Enabled, e))
	}
	if e.Mode != nil {
		errs = append(errs, set(&r.mode, "mode", *e.Mode, e))
	}
	if e.FailOpen != nil {
		errs = append(errs, set(&r.failOpen, "failOpen", *e.FailOpen, e))
	}
	if e.PriorityHint != nil && e.PriorityHint.IsSet() {
		errs = append(errs, set(&r.priority, "priorityHint", *e.PriorityHint, e))
	}
	if e.Timeout != nil {
		errs = append(errs, set(&r.timeout, "timeout", *e.Timeout, e))
	}
	if e.Config != nil {
		errs = append(errs, set(&r.config, "config", e.config(), e))
	}
	if e.Hooks != nil {
		errs = append(errs, set(&r.hooks, "hooks", cloneHooks(e.Hooks), e))
	}
	if e.Type != "" {
		errs = append(errs, set(&r.typ, "type", e.Type, e))
	}
	if e.Required {
		errs = append(errs, set(&r.required, "required", true, e))
	}
	return errors.Join(errs...)
}

// config is a configuration, as given to the interceptor and as printed.
type config struct{ value, shown json.RawMessage }

func (e *Entry) config() config {
	c := config{slices.Clone(e.Config), slices.Clone(e.ConfigShown)}
	if c.shown == nil {
		c.shown = c.value
	}
	return c
}

func cloneHooks(hooks abi.Hooks) abi.Hooks {
	c := make(abi.Hooks, len(hooks))
	for i, h := range hooks {
		c[i] = abi.Hook{Events: slices.Clone(h.Events), Phase: h.Phase}
	}
	return c
}

// address is what an entry without `as` addresses.
type address struct{ interceptor, host string }

// alias is one entry with `as`.
type alias struct {
	interceptor, host, as string
	rule                  *rule
	source                string
}

// Policy is the operator's `interceptors:` list, checked. It is immutable and
// safe for concurrent use. A nil Policy overrides nothing.
type Policy struct {
	rules    map[address]*rule
	aliases  map[string][]*alias // by original name, in the order of entries
	names    map[string]*alias   // by the copy's name
	required []requirement
	targets  []target // of all entries, in their order
	configs  *configCheck
}

// NewPolicy checks entries and makes a policy of them. It refuses all that can
// be refused without knowing what hosts list (config.md, protocol.md §5): an
// entry that makes no sense by itself, two entries of the same rank that set
// the same member, a copy whose name is not its own, and requiring what policy
// disables, audits or narrows away. The error names the source of every entry
// concerned and joins everything that is wrong.
func NewPolicy(entries []Entry) (*Policy, error) {
	p := &Policy{rules: map[address]*rule{}, aliases: map[string][]*alias{}, names: map[string]*alias{}}
	var errs []error
	for i := range entries {
		e := &entries[i]
		if err := e.check(); err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, p.add(e))
	}
	for i := range entries {
		e := &entries[i]
		if a := p.names[e.Interceptor]; a != nil {
			errs = append(errs, e.errorf("the entry at %s makes a copy of that name, which no other entry addresses; set the copy's policy there, or rename it", a.source))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for i := range entries {
		if entries[i].Required {
			errs = append(errs, p.checkRequired(&entries[i]))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return p, nil
}

// check reports what is wrong with an entry by itself.
func (e *Entry) check() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, e.errorf(format, args...)) }
	any := e.Interceptor == AnyInterceptor
	switch {
	case e.Interceptor == "":
		bad("interceptor is missing; it is an exact name or *")
	case !any && strings.Contains(e.Interceptor, "*"):
		bad("interceptor is an exact name or *, never a pattern")
	}
	switch {
	case e.As == "":
	case any:
		bad("as makes a copy of one interceptor; name it")
	case strings.Contains(e.As, "*"):
		bad("as is a name, never a pattern")
	case e.As == e.Interceptor:
		bad("as is the interceptor's own name; a copy needs one of its own")
	}
	if any && e.Required {
		bad("required needs the name of an interceptor")
	}
	if any && e.Type != "" {
		bad("type needs the name of an interceptor")
	}
	if e.Type != "" && !e.Type.Valid() {
		bad("type %q is none of validation, mutation and sink", e.Type)
	}
	if e.Mode != nil {
		switch {
		case *e.Mode != abi.Active && *e.Mode != abi.Audit:
			bad("mode %q is neither active nor audit", *e.Mode)
		case *e.Mode == abi.Audit && e.Type == abi.Sink:
			bad("a sink has no audit mode, since it never blocks or changes anything")
		}
	}
	if e.Timeout != nil && *e.Timeout <= 0 {
		bad("timeout %v is not above 0; leave it out for none", *e.Timeout)
	}
	if e.Config != nil {
		if err := wire.Strict(e.Config); err != nil {
			bad("config: %w", err)
		} else if kindOf(e.Config) != '{' {
			bad("config is not an object")
		}
	}
	for i, h := range e.Hooks {
		if !h.Phase.Valid() {
			bad("hooks[%d]: phase %q is neither %q nor %q", i, h.Phase, abi.Request, abi.Response)
		}
		if slices.Contains(h.Events, "") {
			bad("hooks[%d]: an event has no name", i)
		}
	}
	return errors.Join(errs...)
}

// add files e under what it addresses.
func (p *Policy) add(e *Entry) error {
	p.targets = append(p.targets, target{e.Interceptor, e.Host, e.target(), e.Source, cloneHooks(e.Hooks), eventless(e.Hooks)})
	var a *alias
	if e.As == "" {
		at := address{e.Interceptor, e.Host}
		r := p.rules[at]
		if r == nil {
			r = &rule{}
			p.rules[at] = r
		}
		if err := r.add(e); err != nil {
			return err
		}
	} else {
		if first := p.names[e.As]; first != nil {
			return e.errorf("the entry at %s makes a copy of that name already", first.source)
		}
		a = &alias{interceptor: e.Interceptor, host: e.Host, as: e.As, rule: &rule{}, source: e.Source}
		if err := a.rule.add(e); err != nil {
			return err
		}
		p.names[e.As] = a
		p.aliases[e.Interceptor] = append(p.aliases[e.Interceptor], a)
	}
	if e.Required {
		r := requirement{name: e.Interceptor, interceptor: e.Interceptor, host: e.Host, alias: a, source: e.Source}
		if a != nil {
			r.name = a.as
		}
		if e.Hooks != nil {
			r.hooks = cloneHooks(e.Hooks)
		}
		p.required = append(p.required, r)
	}
	return nil
}
