package abi

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"unicode/utf8"
)

// member is one member of an object, its value as spelled.
type member struct {
	name  string
	value json.RawMessage
}

// object is the members of a JSON object in order. The objects of this package
// have about ten members, so a search beats a map.
type object []member

// maxDepth bounds the nesting of a document that did not pass a strict reader
// first.
const maxDepth = 1000

var errSyntax = errors.New("is not well-formed JSON")

// readObject splits an object into its members without looking inside their
// values further than it must to find their ends. Of two members with one name
// it refuses both: which one counts would be anyone's guess.
func readObject(raw []byte) (object, error) {
	s := scanner{b: raw}
	s.space()
	if s.peek() != '{' {
		return nil, errors.New("is not a JSON object")
	}
	s.i++
	var o object
	for s.space(); s.peek() != '}'; s.space() {
		if len(o) > 0 {
			if s.peek() != ',' {
				return nil, errSyntax
			}
			s.i++
			s.space()
		}
		start := s.i
		if !s.str() {
			return nil, errSyntax
		}
		name, err := readString(s.b[start:s.i])
		if err != nil {
			return nil, err
		}
		s.space()
		if s.peek() != ':' {
			return nil, errSyntax
		}
		s.i++
		s.space()
		start = s.i
		if !s.value() {
			return nil, errSyntax
		}
		if o.has(name) {
			return nil, fmt.Errorf("has two members %q", name)
		}
		if o = append(o, member{name, s.b[start:s.i:s.i]}); len(o) > maxMembers {
			return nil, fmt.Errorf("has more than %d members", maxMembers)
		}
	}
	s.i++
	if s.space(); s.i != len(raw) {
		return nil, errSyntax
	}
	return o, nil
}

// maxMembers bounds the quadratic search for duplicates.
const maxMembers = 1000

// readArray splits an array into its elements; what names it in errors.
func readArray(raw []byte, what string) ([]json.RawMessage, error) {
	s := scanner{b: raw}
	s.space()
	if s.peek() != '[' {
		return nil, fmt.Errorf("%s is not an array", what)
	}
	s.i++
	var items []json.RawMessage
	for s.space(); s.peek() != ']'; s.space() {
		if len(items) > 0 {
			if s.peek() != ',' {
				return nil, fmt.Errorf("%s %w", what, errSyntax)
			}
			s.i++
			s.space()
		}
		start := s.i
		if !s.value() {
			return nil, fmt.Errorf("%s %w", what, errSyntax)
		}
		items = append(items, s.b[start:s.i:s.i])
	}
	s.i++
	if s.space(); s.i != len(raw) {
		return nil, fmt.Errorf("%s %w", what, errSyntax)
	}
	return items, nil
}

// readString decodes a JSON string.
func readString(raw []byte) (string, error) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", errors.New("is not a string")
	}
	plain := true
	for _, c := range raw[1 : len(raw)-1] {
		if c == '\\' || c == '"' || c < 0x20 || c >= utf8.RuneSelf {
			plain = false
			break
		}
	}
	if plain {
		return string(raw[1 : len(raw)-1]), nil
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", errSyntax
	}
	return s, nil
}

// kindOf names the kind of a JSON value by a character: { [ " t f n, and 0 for
// a number. It is 0 for none.
func kindOf(raw []byte) byte {
	if len(raw) == 0 {
		return 0
	}
	switch c := raw[0]; {
	case c == '-' || c >= '0' && c <= '9':
		return '0'
	default:
		return c
	}
}

// raw returns a member's value, null included.
func (o object) raw(name string) (json.RawMessage, bool) {
	for _, m := range o {
		if m.name == name {
			return m.value, true
		}
	}
	return nil, false
}

// get returns a member's value; null counts as absent.
func (o object) get(name string) (json.RawMessage, bool) {
	v, ok := o.raw(name)
	if !ok || kindOf(v) == 'n' {
		return nil, false
	}
	return v, true
}

func (o object) has(name string) bool {
	_, ok := o.raw(name)
	return ok
}

func (o object) string(name string) (string, bool, error) {
	v, ok := o.get(name)
	if !ok {
		return "", false, nil
	}
	s, err := readString(v)
	if err != nil {
		return "", false, fmt.Errorf("%q %w", name, err)
	}
	return s, true, nil
}

func (o object) bool(name string) (value, ok bool, err error) {
	v, ok := o.get(name)
	if !ok {
		return false, false, nil
	}
	switch string(v) {
	case "true":
		return true, true, nil
	case "false":
		return false, true, nil
	}
	return false, false, fmt.Errorf("%q is not a boolean", name)
}

func (o object) mustBool(name string) (bool, error) {
	v, ok, err := o.bool(name)
	if err == nil && !ok {
		err = fmt.Errorf("%q is missing", name)
	}
	return v, err
}

func (o object) strings(name string) ([]string, bool, error) {
	v, ok := o.get(name)
	if !ok {
		return nil, false, nil
	}
	items, err := readArray(v, strconv.Quote(name))
	if err != nil {
		return nil, false, err
	}
	list := make([]string, 0, len(items))
	for _, item := range items {
		s, err := readString(item)
		if err != nil {
			return nil, false, fmt.Errorf("%q: an element %w", name, err)
		}
		list = append(list, s)
	}
	return list, true, nil
}

// scanner finds the ends of JSON values.
type scanner struct {
	b []byte
	i int
}

func (s *scanner) peek() byte {
	if s.i < len(s.b) {
		return s.b[s.i]
	}
	return 0
}

func (s *scanner) space() {
	for s.i < len(s.b) && (s.b[s.i] == ' ' || s.b[s.i] == '\t' || s.b[s.i] == '\n' || s.b[s.i] == '\r') {
		s.i++
	}
}

func (s *scanner) str() bool {
	if s.peek() != '"' {
		return false
	}
	for i := s.i + 1; ; {
		i = special(s.b, i)
		switch {
		case i >= len(s.b) || s.b[i] < 0x20:
			return false
		case s.b[i] == '"':
			s.i = i + 1
			return true
		}
		i += 2 // an escape
	}
}

// special is the place of the first byte from i on that is a quote, a backslash
// or a control character; len(b) or more if there is none. It looks at eight
// bytes at a time: in each byte the highest bit tells, and the lowest one that is
// set is never another's carry.
func special(b []byte, i int) int {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		quote, escape := w^ones*'"', w^ones*'\\'
		if hit := ((quote-ones)&^quote | (escape-ones)&^escape | (w-ones*0x20)&^w) & high; hit != 0 {
			return i + bits.TrailingZeros64(hit)/8
		}
	}
	for ; i < len(b) && b[i] != '"' && b[i] != '\\' && b[i] >= 0x20; i++ {
	}
	return i
}

// value moves past one value. Brackets and strings must match; inside them it
// is lenient, since what it skips is read by whoever needs it.
func (s *scanner) value() bool {
	var open [maxDepth]byte
	depth := 0
	for {
		switch c := s.peek(); {
		case c == '"':
			if !s.str() {
				return false
			}
		case c == '{' || c == '[':
			if depth == maxDepth {
				return false
			}
			open[depth] = c + 2 // the closing bracket
			depth++
			s.i++
		case c == '}' || c == ']':
			if depth == 0 || open[depth-1] != c {
				return false
			}
			depth--
			s.i++
		case c == ',' || c == ':' || c == ' ' || c == '\t' || c == '\n' || c == '\r':
			if depth == 0 {
				return false
			}
			s.i++
			continue
		default:
			if !s.scalar() {
				return false
			}
		}
		if depth == 0 {
			return true
		}
	}
}

// scalar moves past a number or a literal.
func (s *scanner) scalar() bool {
	start := s.i
	for s.i < len(s.b) {
		switch c := s.b[s.i]; c {
		case ',', '}', ']', ' ', '\t', '\n', '\r', ':', '"', '{', '[':
			return isScalar(s.b[start:s.i])
		}
		s.i++
	}
	return isScalar(s.b[start:s.i])
}

// isScalar reports whether b is a literal or a number of JSON and nothing else.
// json.Valid would say the same, but costs as much as the rest of a payload's walk.
func isScalar(b []byte) bool {
	switch string(b) {
	case "true", "false", "null":
		return true
	}
	digits := func() bool {
		n := 0
		for n < len(b) && b[n]-'0' <= 9 {
			n++
		}
		b = b[n:]
		return n > 0
	}
	if len(b) > 0 && b[0] == '-' {
		b = b[1:]
	}
	if len(b) > 0 && b[0] == '0' {
		b = b[1:]
	} else if !digits() {
		return false
	}
	if len(b) > 0 && b[0] == '.' {
		if b = b[1:]; !digits() {
			return false
		}
	}
	if len(b) > 0 && b[0]|0x20 == 'e' {
		if b = b[1:]; len(b) > 0 && (b[0] == '+' || b[0] == '-') {
			b = b[1:]
		}
		return digits() && len(b) == 0
	}
	return len(b) == 0
}

// objectWriter appends an object member by member.
type objectWriter struct {
	b     []byte
	first bool
}

func openObject(dst []byte) objectWriter { return objectWriter{append(dst, '{'), true} }

func (o *objectWriter) close() []byte { return append(o.b, '}') }

// key appends a member's name and returns the buffer, for a value that the
// caller appends and hands back in o.b.
func (o *objectWriter) key(name string) []byte {
	if !o.first {
		o.b = append(o.b, ',')
	}
	o.first = false
	o.b = AppendString(o.b, name)
	o.b = append(o.b, ':')
	return o.b
}

func (o *objectWriter) string(name, v string) { o.b = AppendString(o.key(name), v) }

func (o *objectWriter) optString(name, v string) {
	if v != "" {
		o.string(name, v)
	}
}

func (o *objectWriter) bool(name string, v bool) { o.b = strconv.AppendBool(o.key(name), v) }

func (o *objectWriter) int(name string, v int64) { o.b = strconv.AppendInt(o.key(name), v, 10) }

func (o *objectWriter) float(name string, v float64) {
	o.b = strconv.AppendFloat(o.key(name), v, 'f', -1, 64)
}

func (o *objectWriter) raw(name string, v []byte) { o.b = append(o.key(name), v...) }

func (o *objectWriter) optRaw(name string, v []byte) {
	if v != nil {
		o.raw(name, v)
	}
}

func (o *objectWriter) strings(name string, list []string) {
	b := append(o.key(name), '[')
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = AppendString(b, s)
	}
	o.b = append(b, ']')
}
