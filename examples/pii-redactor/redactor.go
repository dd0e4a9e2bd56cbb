package main

import "strings"

// A finder returns the first match in s, or ok false. Whatever it decides about
// a place depends only on s, the text between two earlier matches or the ends,
// so that a text which was redacted once has nothing left to find: the marks
// put in place of matches cut it at the same places.
//
// Each finder is linear: it looks at a bounded number of bytes around each
// place, or at runs of bytes that no other place makes it look at again.
type finder func(s string, wanted *[kinds]bool) (m match, ok bool)

// match is a place in a text and what is there.
type match struct {
	from, to int
	kind     kind
}

// finders run one inside the gaps of the other. Addresses come first since they
// may contain digits, and phone numbers last since almost everything with
// enough digits looks like one.
var finders = [...]finder{findEmail, findChecked, findPhone}

// redactor redacts the strings of one payload.
type redactor struct {
	config *config
	out    strings.Builder
	found  [kinds]int // in the last string
	total  [kinds]int // in all strings that were changed
}

// redact returns s with marks in place of what the operator wants redacted.
func (r *redactor) redact(s string) string {
	r.found = [kinds]int{}
	if !worthLooking(s) {
		return s
	}
	r.out.Reset()
	r.split(s, finders[:])
	if r.found == [kinds]int{} {
		return s
	}
	return r.out.String()
}

// split writes s, with what the finders find replaced.
func (r *redactor) split(s string, with []finder) {
	if len(with) == 0 || !worthLooking(s) {
		r.out.WriteString(s)
		return
	}
	for s != "" {
		m, ok := with[0](s, &r.config.wanted)
		if !ok {
			r.split(s, with[1:])
			return
		}
		r.split(s[:m.from], with[1:])
		r.out.WriteString(r.config.marks[m.kind])
		r.found[m.kind]++
		s = s[m.to:]
	}
}

// note counts what was found in the last string.
func (r *redactor) note() {
	for k, n := range r.found {
		r.total[k] += n
	}
}

// worthLooking is false for most strings: those with no "@" and fewer digits
// than the shortest number that is redacted.
func worthLooking(s string) bool {
	digits := 0
	for i := range len(s) {
		if c := s[i]; isDigit(c) {
			if digits++; digits == minPhoneDigits {
				return true
			}
		} else if c == '@' {
			return true
		}
	}
	return false
}
