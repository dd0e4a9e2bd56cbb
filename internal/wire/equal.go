package wire

import (
	"bytes"
	"cmp"
	"slices"
)

// Equal says that a and b are equal as JSON values (protocol.md §5, malformed
// results): members in any order, strings as the text they stand for, numbers
// by sign, digits and exponent (1, 1.0 and 10e-1 are equal, and so are 0 and
// -0; exponents are exact up to 10^15 and capped there), never through floats.
// Members of one name, which [Strict] refuses, are compared in their order.
//
// Identical bytes are equal, whatever they are. Otherwise text that is not JSON,
// or is nested deeper than [MaxDepth], equals nothing. The cost is linear in the
// input, and n log n in the members of an object whose order differs.
func Equal(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var e comparison
	return e.x.open(a) && e.y.open(b) && e.values(cursor{at: space(a, 0)}, cursor{at: space(b, 0)})
}

// container says of an array or object where its text ends and how many
// containers it holds, itself included. They lie in the order in which they
// open. With them a comparison steps over a value it does not look into at no
// cost; without them, unordered members nested deeply would make it quadratic.
type container struct{ end, inside int }

// document is one side of a comparison.
type document struct {
	scanner
	containers []container
	// properties of the objects being compared without order, innermost last.
	properties []property
}

// open checks the text and finds its containers.
func (d *document) open(b []byte) bool {
	d.b, d.index = b, &d.containers
	d.document()
	d.index = nil
	return d.verdict() == nil
}

// cursor is a place in a document, and the number of containers opened so far.
type cursor struct{ at, opened int }

// after steps over the value at c.
func (d *document) after(c cursor) cursor {
	switch d.b[c.at] {
	case '{', '[':
		k := d.containers[c.opened]
		return cursor{k.end, c.opened + k.inside}
	default:
		return cursor{d.value(c.at), c.opened}
	}
}

// enter steps into the array or object at c: to its first name or element, or
// to its closing bracket.
func (d *document) enter(c cursor) cursor { return cursor{space(d.b, c.at+1), c.opened + 1} }

// step steps from behind an element or member to the next, or to the closing
// bracket.
func (d *document) step(c cursor) cursor {
	c.at = space(d.b, c.at)
	if d.b[c.at] == ',' {
		c.at = space(d.b, c.at+1)
	}
	return c
}

func (d *document) closed(c cursor) bool { return d.b[c.at] == '}' || d.b[c.at] == ']' }

// member reads the name at c and stops at its value.
func (d *document) member(c cursor) (name, cursor) {
	n, at := d.name(c.at)
	return n, cursor{at, c.opened}
}

type comparison struct{ x, y document }

func (e *comparison) values(p, q cursor) bool {
	a, b := e.x.b[p.at], e.y.b[q.at]
	switch {
	case isNumber(a) && isNumber(b):
		return parseDecimal(e.x.scalar(p)).equal(parseDecimal(e.y.scalar(q)))
	case a != b:
		return false
	case a == '"':
		return equalText(e.x.scalar(p), e.y.scalar(q))
	case a == '[':
		return e.arrays(p, q)
	case a == '{':
		return e.objects(p, q)
	default:
		return true // the same literal
	}
}

func isNumber(c byte) bool { return c == '-' || c-'0' <= 9 }

func (d *document) scalar(c cursor) []byte { return d.b[c.at:d.after(c).at] }

// equalText compares two JSON strings, quotes included, as the text they stand
// for.
func equalText(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, y := bytes.IndexByte(a, '\\') >= 0, bytes.IndexByte(b, '\\') >= 0
	if !x && !y {
		return false
	}
	return bytes.Equal(appendUnescaped(nil, a[1:len(a)-1]), appendUnescaped(nil, b[1:len(b)-1]))
}

func (e *comparison) arrays(p, q cursor) bool {
	p, q = e.x.enter(p), e.y.enter(q)
	for !e.x.closed(p) && !e.y.closed(q) {
		if !e.values(p, q) {
			return false
		}
		p, q = e.x.step(e.x.after(p)), e.y.step(e.y.after(q))
	}
	return e.x.closed(p) && e.y.closed(q)
}

// objects walks both in step as long as the names agree, which is the common
// case, and sorts what is left when they do not.
func (e *comparison) objects(p, q cursor) bool {
	p, q = e.x.enter(p), e.y.enter(q)
	for !e.x.closed(p) && !e.y.closed(q) {
		m, pv := e.x.member(p)
		n, qv := e.y.member(q)
		if !m.same(n) {
			return e.unordered(p, q)
		}
		if !e.values(pv, qv) {
			return false
		}
		p, q = e.x.step(e.x.after(pv)), e.y.step(e.y.after(qv))
	}
	return e.x.closed(p) && e.y.closed(q)
}

func (n name) same(o name) bool {
	if !n.escaped && !o.escaped {
		return bytes.Equal(n.raw, o.raw)
	}
	return bytes.Equal(appendUnescaped(nil, n.raw), appendUnescaped(nil, o.raw))
}

type property struct {
	name  []byte
	value cursor
}

// collect gives the members from c on, sorted by name, those of one name in
// their order.
func (d *document) collect(c cursor) []property {
	base := len(d.properties)
	for !d.closed(c) {
		n, v := d.member(c)
		text := n.raw
		if n.escaped {
			text = appendUnescaped(nil, text)
		}
		d.properties = append(d.properties, property{text, v})
		c = d.step(d.after(v))
	}
	all := d.properties[base:]
	slices.SortFunc(all, func(a, b property) int {
		return cmp.Or(bytes.Compare(a.name, b.name), cmp.Compare(a.value.at, b.value.at))
	})
	return all
}

func (e *comparison) unordered(p, q cursor) bool {
	a, b := e.x.collect(p), e.y.collect(q)
	equal := len(a) == len(b)
	for i := 0; equal && i < len(a); i++ {
		equal = bytes.Equal(a[i].name, b[i].name) && e.values(a[i].value, b[i].value)
	}
	e.x.properties = e.x.properties[:len(e.x.properties)-len(a)]
	e.y.properties = e.y.properties[:len(e.y.properties)-len(b)]
	return equal
}
