package abi

import (
	"errors"
	"fmt"
	"slices"
)

// Hook says for which events, in which phase, an interceptor runs. Events are
// exact names or patterns (see [MatchEvent]).
type Hook struct {
	Events []string
	Phase  Phase
}

// Hooks is the list of hooks of one interceptor. An empty list is legal and
// matches nothing (protocol.md §2).
type Hooks []Hook

// On returns one hook for the given phase and events.
func On(phase Phase, events ...string) Hooks { return Hooks{{Events: events, Phase: phase}} }

// OnBoth returns two hooks, request first, for the given events.
func OnBoth(events ...string) Hooks {
	return Hooks{{Events: events, Phase: Request}, {Events: events, Phase: Response}}
}

// Match reports whether any hook matches the event in the phase. The event is
// a concrete name: a pattern matches nothing.
func (hs Hooks) Match(event string, phase Phase) bool {
	for _, h := range hs {
		if h.Phase == phase && h.matchesEvent(event) {
			return true
		}
	}
	return false
}

// MatchEvent reports whether any hook matches the event in either phase, which
// is what the event filter of interceptors/list asks (protocol.md §2).
func (hs Hooks) MatchEvent(event string) bool {
	return slices.ContainsFunc(hs, func(h Hook) bool { return h.matchesEvent(event) })
}

func (h Hook) matchesEvent(event string) bool {
	return slices.ContainsFunc(h.Events, func(p string) bool { return MatchEvent(p, event) })
}

// Within reports whether hs matches nothing that outer does not match too,
// which is what "may only narrow" means for an override (protocol.md §5). A
// pattern of hs must be covered by one pattern of outer in the same phase;
// a union of several that happen to add up does not count.
func (hs Hooks) Within(outer Hooks) bool {
	for _, h := range hs {
		for _, pattern := range h.Events {
			if !outer.covers(pattern, h.Phase) {
				return false
			}
		}
	}
	return true
}

// covers relies on "*" never being a literal: run over another pattern, glob
// lets a star be consumed by a star only.
func (hs Hooks) covers(pattern string, phase Phase) bool {
	return slices.ContainsFunc(hs, func(h Hook) bool {
		return h.Phase == phase && slices.ContainsFunc(h.Events, func(p string) bool { return glob(p, pattern) })
	})
}

func (hs Hooks) validate() error {
	for i, h := range hs {
		if !h.Phase.Valid() {
			return fmt.Errorf("hooks[%d]: phase %q is neither %q nor %q", i, h.Phase, Request, Response)
		}
		if slices.Contains(h.Events, "") {
			return fmt.Errorf("hooks[%d]: an event has no name", i)
		}
	}
	return nil
}

// AppendJSON appends hs in its canonical spelling.
func (hs Hooks) AppendJSON(dst []byte) []byte {
	dst = append(dst, '[')
	for i, h := range hs {
		if i > 0 {
			dst = append(dst, ',')
		}
		o := openObject(dst)
		o.strings(keyEvents, h.Events)
		o.string(keyPhase, string(h.Phase))
		dst = o.close()
	}
	return append(dst, ']')
}

// MarshalJSON writes what [Hooks.AppendJSON] appends.
func (hs Hooks) MarshalJSON() ([]byte, error) { return hs.AppendJSON(nil), nil }

// readHooks reads the "hooks" array, or one of the older spellings: "hook"
// with one object, or "events" and "phase" beside the other members.
func readHooks(m object) (Hooks, error) {
	if raw, ok := m.get(keyHooks); ok {
		items, err := readArray(raw, keyHooks)
		if err != nil {
			return nil, err
		}
		hooks := Hooks{}
		for i, item := range items {
			if hooks, err = appendHook(hooks, item); err != nil {
				return nil, fmt.Errorf("hooks[%d]: %w", i, err)
			}
		}
		return hooks, nil
	}
	if raw, ok := m.get(keyHook); ok {
		hooks, err := appendHook(nil, raw)
		if err != nil {
			return nil, fmt.Errorf("hook: %w", err)
		}
		return hooks, nil
	}
	if m.has(keyEvents) || m.has(keyPhase) {
		return appendHookOf(nil, m)
	}
	return nil, errors.New(`"hooks" is missing`)
}

func appendHook(hooks Hooks, raw []byte) (Hooks, error) {
	m, err := readObject(raw)
	if err != nil {
		return nil, err
	}
	return appendHookOf(hooks, m)
}

func appendHookOf(hooks Hooks, m object) (Hooks, error) {
	events, ok, err := m.strings(keyEvents)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, errors.New(`"events" is missing`)
	}
	phase, _, err := m.string(keyPhase)
	if err != nil {
		return nil, err
	}
	if phase == phaseBoth {
		return append(hooks, OnBoth(events...)...), nil
	}
	return append(hooks, Hook{Events: events, Phase: Phase(phase)}), nil
}
