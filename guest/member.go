package guest

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
)

// Members ranges over the members of an object in their order, with each name
// decoded and each value as spelled. Names are compared by nobody: duplicates
// come up as often as they stand there. It ends at the first byte that is not
// JSON; of what is not an object it yields nothing. Payloads have passed the
// host's strict reader, so neither happens with them.
func Members(raw json.RawMessage) iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		_ = readMembers(raw, func(_ span, name string, value span) error {
			if !yield(name, value.of(raw)) {
				return errStop
			}
			return nil
		})
	}
}

// Elements ranges over the elements of an array as spelled. It ends as
// [Members] does.
func Elements(raw json.RawMessage) iter.Seq2[int, json.RawMessage] {
	return func(yield func(int, json.RawMessage) bool) {
		s := scanner{b: raw}
		if s.space(); s.peek() != '[' {
			return
		}
		s.i++
		if s.space(); s.peek() == ']' {
			return
		}
		for i := 0; ; i++ {
			s.space()
			from := s.i
			if s.value(nil) != nil || !yield(i, span{from, s.i}.of(raw)) {
				return
			}
			if s.space(); s.peek() != ',' {
				return
			}
			s.i++
		}
	}
}

// Get returns the value, as spelled, that lies at a path of member names. It is
// false when it is not there, when something on the way is not an object, and
// when a name on the way stands there twice, since readers differ in which one
// counts. Names are compared byte for byte, unlike encoding/json's: to a
// validator "Name" must not pass for "name".
func Get(raw json.RawMessage, path ...string) (json.RawMessage, bool) {
	for _, name := range path {
		at, err := findMember(raw, name)
		if err != nil || at == nil {
			return nil, false
		}
		raw = at.of(raw)
	}
	return raw, true
}

// GetText returns the string at a path of member names, decoded. It is false
// where [Get] is and where the value is not a string.
func GetText(raw json.RawMessage, path ...string) (string, bool) {
	v, ok := Get(raw, path...)
	if !ok {
		return "", false
	}
	return Text(v)
}

// Set returns raw with a value, any JSON, at a path of member names. What lies
// there is replaced byte for byte; a member that is missing becomes the last
// one of its object, objects that are missing on the way included. All other
// bytes stay. It fails where something on the way is not an object or stands
// there twice, and where the value is not JSON.
func Set(raw, value json.RawMessage, path ...string) (json.RawMessage, error) {
	if err := checkValue(value); err != nil {
		return nil, fmt.Errorf("the new value is %w", err)
	}
	at := span{0, len(raw)}
	for i, name := range path {
		next, err := findMember(at.of(raw), name)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", name, err)
		}
		if next == nil {
			return insertMember(raw, at, value, path[i:])
		}
		at = span{at.from + next.from, at.from + next.to}
	}
	return splice(raw, at, value), nil
}

// Remove returns raw without the member at a path of member names. All other
// bytes stay, a comma beside it excepted. Where there is no such member it
// returns raw itself. It fails as [Set] does.
func Remove(raw json.RawMessage, path ...string) (json.RawMessage, error) {
	if len(path) == 0 {
		return nil, errors.New("no member is named")
	}
	last := len(path) - 1
	at := span{0, len(raw)}
	for _, name := range path[:last] {
		next, err := findMember(at.of(raw), name)
		if err != nil || next == nil {
			return raw, wrapName(name, err)
		}
		at = span{at.from + next.from, at.from + next.to}
	}
	object := at.of(raw)
	gone, err := memberSpan(object, path[last])
	if err != nil || gone == nil {
		return raw, wrapName(path[last], err)
	}
	return splice(raw, span{at.from + gone.from, at.from + gone.to}, nil), nil
}

func wrapName(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%q: %w", name, err)
}

// span is a place in a text.
type span struct{ from, to int }

// of cuts the span out, with no room to append into what follows.
func (p span) of(b []byte) []byte { return b[p.from:p.to:p.to] }

func splice(b []byte, at span, with []byte) []byte {
	out := make([]byte, 0, len(b)-(at.to-at.from)+len(with))
	out = append(out, b[:at.from]...)
	out = append(out, with...)
	return append(out, b[at.to:]...)
}

var (
	errNotObject = errors.New("not a JSON object")
	errTwice     = errors.New("stands there twice")
)

func checkValue(raw []byte) error {
	s := scanner{b: raw}
	if err := s.value(nil); err != nil {
		return err
	}
	return s.end()
}

// readMembers calls each for the members of an object. nameAt includes the
// quotes.
func readMembers(raw []byte, each func(nameAt span, name string, value span) error) error {
	s := scanner{b: raw}
	if s.space(); s.peek() != '{' {
		return errNotObject
	}
	s.i++
	if s.space(); s.peek() == '}' {
		s.i++
		return s.end()
	}
	for {
		s.space()
		nameAt := span{from: s.i}
		kind, err := s.text()
		if err != nil {
			return err
		}
		nameAt.to = s.i
		if s.space(); s.peek() != ':' {
			return s.fail("a colon")
		}
		s.i++
		s.space()
		value := span{from: s.i}
		if err := s.value(nil); err != nil {
			return err
		}
		value.to = s.i
		name := decodeText(string(raw[nameAt.from+1:nameAt.to-1]), kind)
		if err := each(nameAt, name, value); err != nil {
			return err
		}
		s.space()
		switch s.peek() {
		case ',':
			s.i++
		case '}':
			s.i++
			return s.end()
		default:
			return s.fail("a comma or the closing bracket")
		}
	}
}

// findMember returns where the value of the named member lies, nil when there
// is none.
func findMember(object []byte, name string) (at *span, err error) {
	err = readMembers(object, func(_ span, n string, value span) error {
		if n != name {
			return nil
		}
		if at != nil {
			return errTwice
		}
		at = &value
		return nil
	})
	if err != nil {
		return nil, err
	}
	return at, nil
}

// memberSpan returns what to cut out of an object to remove the named member:
// it and the comma before it, or after it when it is the first.
func memberSpan(object []byte, name string) (at *span, err error) {
	before, cutNext := 0, false
	err = readMembers(object, func(nameAt span, n string, value span) error {
		if cutNext {
			at.to, cutNext = nameAt.from, false
		}
		if n == name {
			if at != nil {
				return errTwice
			}
			if at = (&span{nameAt.from, value.to}); before > 0 {
				at.from = before
			} else {
				cutNext = true
			}
		}
		before = value.to
		return nil
	})
	if err != nil {
		return nil, err
	}
	return at, nil
}

// insertMember adds a member as the last one of the object at a place in raw,
// with an object for each further name of the path around the value.
func insertMember(raw []byte, object span, value []byte, path []string) (json.RawMessage, error) {
	empty, end := true, 0
	err := readMembers(object.of(raw), func(_ span, _ string, v span) error {
		empty, end = false, v.to
		return nil
	})
	if err != nil {
		return nil, err
	}
	var b []byte
	at := object.from + end
	if empty {
		for at = object.from; raw[at] != '{'; at++ {
		}
		at++
	} else {
		b = append(b, ',')
	}
	for i, name := range path {
		if i > 0 {
			b = append(b, '{')
		}
		b = append(AppendText(b, name), ':')
	}
	b = append(b, value...)
	for range path[1:] {
		b = append(b, '}')
	}
	return splice(raw, span{at, at}, b), nil
}
