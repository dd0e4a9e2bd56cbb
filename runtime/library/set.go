package library

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/weir-mcp/weir/abi"
)

// set is what is served at one moment. It never changes.
type set struct {
	list   []abi.Descriptor
	byName map[string]*member
}

// member is one served interceptor.
type member struct {
	descriptor abi.Descriptor // under its served name
	own        string         // the name its module or handler knows
	schema     *schema
	config     json.RawMessage // in force where an invocation brings none
	gate       *gate
	file       string // empty for a native one
	digest     string
	invoke     func(ctx context.Context, inv abi.Invocation) (abi.Result, error)
}

// served is a module whose interceptors are on the list.
type served struct {
	file        string
	module      Module
	signer      string // id of a key, or empty
	descriptors []abi.Descriptor
	schemas     []*schema
	gate        *gate
}

func (s *served) has(name string) bool {
	return slices.ContainsFunc(s.descriptors, func(d abi.Descriptor) bool { return d.Name == name })
}

// admit checks what a module says about itself, all or nothing (protocol.md §2).
func admit(file string, m Module) (*served, error) {
	s := &served{file: file, module: m, descriptors: m.Descriptors(), gate: newGate()}
	if len(s.descriptors) == 0 {
		return nil, errors.New("the module registers no interceptor")
	}
	seen := map[string]bool{}
	for i := range s.descriptors {
		d := &s.descriptors[i]
		if err := d.Validate(); err != nil {
			return nil, fmt.Errorf("the whole module is refused for one descriptor: %w", err)
		}
		if seen[d.Name] {
			return nil, fmt.Errorf("the whole module is refused: it names two interceptors %q", d.Name)
		}
		seen[d.Name] = true
		schema, err := newSchema(d.ConfigSchema)
		if err != nil {
			return nil, fmt.Errorf("the whole module is refused for one descriptor: %q: %w", d.Name, err)
		}
		s.schemas = append(s.schemas, schema)
	}
	return s, nil
}

// publish builds the next set and swaps it in. l.mu is held; the function that
// it returns tells the listeners and is called without.
func (l *Library) publish() (notify func()) {
	b := builder{l: l, taken: map[string]bool{}, set: &set{byName: map[string]*member{}}}
	for _, f := range l.files {
		for i, d := range f.descriptors {
			b.originals = append(b.originals, member{
				descriptor: d, own: d.Name, schema: f.schemas[i], gate: f.gate,
				file: f.file, digest: f.module.Digest(), invoke: f.module.Invoke,
			})
			b.taken[d.Name] = true
		}
	}
	for _, n := range l.natives {
		b.originals = append(b.originals, member{
			descriptor: n.descriptor, own: n.descriptor.Name, schema: n.schema, gate: n.gate, invoke: n.invoke,
		})
		b.taken[n.descriptor.Name] = true
	}
	for _, m := range b.originals {
		b.add(m)
	}
	before := l.set.Swap(b.set)
	if sameList(before.list, b.set.list) {
		return func() {}
	}
	listeners := make([]func(), 0, len(l.listeners))
	for _, f := range l.listeners {
		listeners = append(listeners, f)
	}
	return func() {
		for _, f := range listeners {
			f()
		}
	}
}

func sameList(a, b []abi.Descriptor) bool {
	return slices.EqualFunc(a, b, func(x, y abi.Descriptor) bool {
		return string(x.AppendJSON(nil)) == string(y.AppendJSON(nil))
	})
}

// builder applies the entries to the originals.
type builder struct {
	l         *Library
	originals []member
	taken     map[string]bool // own names of originals, then names of copies
	set       *set
}

func (b *builder) add(m member) {
	es := &b.l.entries
	exact, copies := es.exact[m.own], es.copies[m.own]
	if len(exact) > 0 || len(copies) == 0 {
		b.serve(m, settle(exact, es.all))
	}
	for _, c := range copies {
		if b.taken[c.As] {
			b.l.complain(c.Source, fmt.Errorf("as: %q is the name of another interceptor; the copy of %q is not served", c.As, m.own))
			continue
		}
		b.taken[c.As] = true
		alias := m
		alias.descriptor.Name = c.As
		b.serve(alias, settle([]Entry{c}, es.all))
	}
}

func (b *builder) serve(m member, s setting) {
	if !s.enabled {
		return
	}
	if s.config != nil {
		if err := m.schema.validate(m.own, s.config); err != nil {
			b.l.complain(s.source, fmt.Errorf("the config of interceptor %q is refused and it is not served: %w", m.descriptor.Name, err))
			return
		}
		m.config = s.config
	}
	b.set.list = append(b.set.list, m.descriptor)
	b.set.byName[m.descriptor.Name] = &m
}

// complain logs what is wrong with an entry, once. l.mu is held.
func (l *Library) complain(source string, err error) {
	text := source + err.Error()
	if !l.refused[text] {
		l.refused[text] = true
		l.o.Logger.Error("an entry of the configuration is refused", "source", source, "cause", err)
	}
}

// origin says for the log where a failure came from.
type origin struct {
	file, digest string
	err          error
}

func (o *origin) Error() string { return fmt.Sprintf("%s (sha256 %s): %v", o.file, o.digest, o.err) }
func (o *origin) Unwrap() error { return o.err }

// outward makes err one of the served name, its cause one that names the file.
func (m *member) outward(err error, inv *abi.Invocation) *abi.Error {
	e := *abi.AsError(err, inv.Name, inv.Phase)
	e.Interceptor = inv.Name
	if e.Phase == "" {
		e.Phase = inv.Phase
	}
	if e.Reason == abi.ReasonTimeout && e.Limit == 0 {
		e.Limit = inv.Timeout
	}
	if m.file != "" {
		cause := e.Cause
		if cause == nil {
			cause = errors.New(e.Message())
		}
		e.Cause = &origin{file: m.file, digest: m.digest, err: cause}
	}
	return &e
}
