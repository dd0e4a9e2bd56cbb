package chain

import (
	"fmt"
	"slices"

	"github.com/weir-mcp/weir/abi"
)

// UnmatchedReason says why an entry of policy, or what an author hooks, matches
// nothing that could run.
type UnmatchedReason string

// The reasons.
const (
	NoEvent      UnmatchedReason = "no_event"      // its hooks name nothing that is an event (protocol.md §1)
	Unusable     UnmatchedReason = "unusable"      // what it addresses is listed, with a descriptor that cannot be used
	Unlisted     UnmatchedReason = "unlisted"      // no host lists what it addresses
	Idle         UnmatchedReason = "idle"          // what it addresses is listed, and hooks nothing that is an event
	UnknownEvent UnmatchedReason = "unknown_event" // its hooks name an event that nothing known has
)

// Unmatched is an entry of policy that addresses nothing that is known and could
// run, or an interceptor of which the same is to be told.
type Unmatched struct {
	// Source is the [Entry.Source], or names the interceptor.
	Source string
	// Target says what the entry addresses.
	Target string
	Reason UnmatchedReason
	// Events are those that nothing known has, where that is the reason. They are
	// legal: a peer may have such a method.
	Events []string
	// Author says that it is about an interceptor as its author made it, and no
	// entry. The reason is then [UnknownEvent].
	Author bool
	// Pending says that a host that it may be waiting for has no list yet.
	Pending bool
}

// String says it in a sentence, for a warning.
func (u Unmatched) String() string {
	says := ""
	switch u.Reason {
	case NoEvent:
		says = "has hooks that match no event at all, so that what it addresses never runs"
	case Unusable:
		says = "matches only what is listed with a descriptor that cannot be used"
	case Idle:
		says = "matches only what hooks no event at all, so that it never runs"
	case UnknownEvent:
		says = "has hooks for what is no event of MCP, " + quoted(u.Events) + ": they match only where a peer has a method of that name"
	default:
		says = "matches nothing that any host lists"
	}
	if u.Pending {
		says += " so far"
	}
	if u.Author {
		return u.Source + " " + says
	}
	return fmt.Sprintf("%s: the entry for interceptor %s %s", u.Source, u.Target, says)
}

// Unmatched gives the entries that match no interceptor of the listings, or name
// an event that nothing known has, in their own order. A guard that is misspelled
// there never runs, or runs without what was meant for it, and nothing else would
// tell. Then come, in the order of hosts and lists, the interceptors whose
// authors hook what only looks like an event of MCP, unless policy says what they
// hook. Ask again when the listings have changed.
func (p *Policy) Unmatched(listings []Listing) []Unmatched {
	var list []Unmatched
	if p != nil {
		for i := range p.targets {
			t := &p.targets[i]
			u := t.unmatched(listings)
			if u.Reason == "" || u.Pending {
				if events, pending := t.unknown(listings); events != nil && (u.Reason == "" || !pending) {
					u = Unmatched{Reason: UnknownEvent, Events: events, Pending: pending}
				}
			}
			if u.Reason != "" {
				u.Source, u.Target = t.source, t.text
				list = append(list, u)
			}
		}
	}
	return append(list, p.misspelled(listings)...)
}

// mostJudged bounds how many custom events of authors are looked at: they may be
// a stranger's.
const mostJudged = 2000

// misspelled gives the interceptors that hook what looks like an event of MCP
// and is none.
func (p *Policy) misspelled(listings []Listing) (list []Unmatched) {
	judged := 0
	for i := range listings {
		l := &listings[i]
		if l.unavailable() != nil {
			continue
		}
		var last *abi.Descriptor
		p.offered(i, l, func(c *candidate) {
			if reason, _ := c.exclude(""); reason != "" || c.d == last || c.rules.hooks().set {
				return
			}
			last = c.d // one of its copies says it
			events := eventsIn(c.d.Hooks, func(pattern string) bool {
				if judged >= mostJudged || !custom(pattern) {
					return false
				}
				judged++
				_, looks := misspelt(pattern)
				return looks
			})
			if events != nil {
				target := fmt.Sprintf("%.100q on host %q", c.d.Name, c.hostName)
				list = append(list, Unmatched{Source: "interceptor " + target, Target: target, Reason: UnknownEvent, Events: events, Author: true})
			}
		}, func(LeftOut) {})
	}
	return list
}

// target is what one entry addresses.
type target struct {
	interceptor, host, text, source string
	hooks                           abi.Hooks
	eventless                       bool // its hooks name something, and no event
}

// unknown gives the events in the hooks of an entry that are custom, and that
// look like another or that none of the interceptors that it addresses has a
// name for, and whether a host that has no list may change that.
func (t *target) unknown(listings []Listing) (events []string, pending bool) {
	events = eventsIn(t.hooks, custom)
	if events == nil {
		return nil, false
	}
	var known []abi.Hooks
	for i := range listings {
		l := &listings[i]
		switch {
		case t.host != "" && t.host != l.hostName():
		case l.unavailable() != nil:
			pending = true
		default:
			for j := range l.Interceptors {
				if d := &l.Interceptors[j]; t.interceptor == AnyInterceptor || t.interceptor == d.Name {
					known = append(known, d.Hooks)
				}
			}
		}
	}
	events = slices.DeleteFunc(events, func(e string) bool {
		if _, looks := misspelt(e); looks {
			pending = false
			return false
		}
		return slices.ContainsFunc(known, func(hooks abi.Hooks) bool { return names(hooks, e) })
	})
	if len(events) == 0 {
		return nil, false
	}
	return events, pending
}

// names reports whether hooks have a name for a custom event, or for one that a
// pattern matches: one that matches everything is none.
func names(hooks abi.Hooks, event string) bool {
	of := abi.On(abi.Request, event)
	return slices.ContainsFunc(hooks, func(h abi.Hook) bool {
		return slices.ContainsFunc(h.Events, func(pattern string) bool {
			named := abi.On(abi.Request, pattern)
			return custom(pattern) && (of.Within(named) || named.Within(of))
		})
	})
}

// eventless reports whether hooks were meant to match and cannot.
func eventless(hooks abi.Hooks) bool {
	return slices.ContainsFunc(hooks, func(h abi.Hook) bool { return len(h.Events) > 0 }) && hooksNoEvent(hooks)
}

func hooksNoEvent(hooks abi.Hooks) bool {
	return !someEvent(hooks, abi.Request) && !someEvent(hooks, abi.Response)
}

// unmatched says why the target matches nothing that is listed, or nothing, and
// whether a host that has no list may change that.
func (t *target) unmatched(listings []Listing) Unmatched {
	if t.eventless {
		return Unmatched{Reason: NoEvent}
	}
	reason, pending := Unlisted, false
	for i := range listings {
		l := &listings[i]
		if t.host != "" && t.host != l.hostName() {
			continue
		}
		if l.unavailable() != nil {
			pending = true
			continue
		}
		for j := range l.Interceptors {
			d := &l.Interceptors[j]
			if t.interceptor != AnyInterceptor && t.interceptor != d.Name {
				continue
			}
			switch {
			case wellFormed(d) != nil:
				reason = Unusable
			case hooksNoEvent(d.Hooks):
				reason = Idle
			default:
				return Unmatched{}
			}
		}
		if slices.ContainsFunc(l.Skipped, func(s abi.Skipped) bool { return s.Name == t.interceptor && s.Name != "" }) {
			reason = Unusable
		}
	}
	return Unmatched{Reason: reason, Pending: pending}
}
