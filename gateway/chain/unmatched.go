package chain

import (
	"fmt"
	"slices"

	"github.com/weir-mcp/weir/abi"
)

// UnmatchedReason says why an entry of policy matches nothing that could run.
type UnmatchedReason string

// The reasons.
const (
	NoEvent  UnmatchedReason = "no_event" // its hooks name nothing that is an event (protocol.md §1)
	Unusable UnmatchedReason = "unusable" // what it addresses is listed, with a descriptor that cannot be used
	Unlisted UnmatchedReason = "unlisted" // no host lists what it addresses
	Idle     UnmatchedReason = "idle"     // what it addresses is listed, and hooks nothing that is an event
)

// Unmatched is an entry of policy that addresses nothing that is known and could
// run.
type Unmatched struct {
	// Source is the [Entry.Source].
	Source string
	// Target says what the entry addresses.
	Target string
	Reason UnmatchedReason
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
	default:
		says = "matches nothing that any host lists"
	}
	if u.Pending {
		says += " so far"
	}
	return fmt.Sprintf("%s: the entry for interceptor %s %s", u.Source, u.Target, says)
}

// Unmatched gives the entries that match no interceptor of the listings, in
// their own order. A guard that is misspelled there never runs, or runs without
// what was meant for it, and nothing else would tell. Ask again when the
// listings have changed.
func (p *Policy) Unmatched(listings []Listing) []Unmatched {
	if p == nil {
		return nil
	}
	var list []Unmatched
	for i := range p.targets {
		if reason, pending := p.targets[i].unmatched(listings); reason != "" {
			list = append(list, Unmatched{Source: p.targets[i].source, Target: p.targets[i].text, Reason: reason, Pending: pending})
		}
	}
	return list
}

// target is what one entry addresses.
type target struct {
	interceptor, host, text, source string
	eventless                       bool // its hooks name something, and no event
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
func (t *target) unmatched(listings []Listing) (reason UnmatchedReason, pending bool) {
	if t.eventless {
		return NoEvent, false
	}
	reason = Unlisted
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
				return "", false
			}
		}
		if slices.ContainsFunc(l.Skipped, func(s abi.Skipped) bool { return s.Name == t.interceptor && s.Name != "" }) {
			reason = Unusable
		}
	}
	return reason, pending
}
