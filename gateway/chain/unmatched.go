package chain

import "fmt"

// Unmatched is an entry of policy that addresses nothing that is known.
type Unmatched struct {
	// Source is the [Entry.Source].
	Source string
	// Target says what the entry addresses.
	Target string
	// Pending says that a host that it may be waiting for has no list yet.
	Pending bool
}

// String says it in a sentence, for a warning.
func (u Unmatched) String() string {
	s := fmt.Sprintf("%s: the entry for interceptor %s matches nothing that any host lists", u.Source, u.Target)
	if u.Pending {
		s += " so far"
	}
	return s
}

// Unmatched gives the entries that match no interceptor of the listings, in
// their own order. A guard that is misspelled there never runs, or runs without
// what was meant for it, and nothing else would tell.
func (p *Policy) Unmatched(listings []Listing) []Unmatched {
	if p == nil {
		return nil
	}
	var list []Unmatched
	for _, t := range p.targets {
		matches, pending := false, false
		for i := range listings {
			l := &listings[i]
			if t.host != "" && t.host != l.hostName() {
				continue
			}
			if l.unavailable() != nil {
				pending = true
				continue
			}
			if t.interceptor == AnyInterceptor || l.find(t.interceptor) != nil {
				matches = true
				break
			}
		}
		if !matches {
			list = append(list, Unmatched{Source: t.source, Target: t.text, Pending: pending})
		}
	}
	return list
}

// target is what one entry addresses.
type target struct{ interceptor, host, text, source string }
