package guest

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// MaxDepth is the deepest nesting that this package reads.
const MaxDepth = 1000

var errDepth = fmt.Errorf("JSON is nested deeper than %d", MaxDepth)

// scanner moves over JSON text. It checks everything it passes: a text that
// two readers could understand differently is not understood at all.
type scanner struct {
	b []byte
	i int
	// open holds the containers around the position, outermost first.
	open []container
}

// container is an object or array that has begun and not ended.
type container struct {
	object   bool
	nameFrom int // of an object: where the name of the current member is
	nameTo   int
	index    int // of an array: which element is the current one
}

func (s *scanner) fail(want string) error {
	if s.i >= len(s.b) {
		return fmt.Errorf("not JSON: it ends where %s should be", want)
	}
	return fmt.Errorf("not JSON: byte %d is not %s", s.i, want)
}

func (s *scanner) peek() byte {
	if s.i < len(s.b) {
		return s.b[s.i]
	}
	return 0
}

func (s *scanner) space() {
	for s.i < len(s.b) && (s.b[s.i] == ' ' || s.b[s.i] == '\n' || s.b[s.i] == '\r' || s.b[s.i] == '\t') {
		s.i++
	}
}

// end checks that nothing follows.
func (s *scanner) end() error {
	if s.space(); s.i != len(s.b) {
		return s.fail("the end")
	}
	return nil
}

// visitor is told of each string that a scanner passes, as the place of its
// token, quotes included. It stops the scanner by an error.
type visitor func(from, to int, kind textKind, name bool) error

// textKind says how a string is spelled.
type textKind uint8

const (
	textPlain   textKind = iota // the bytes between the quotes are the text
	textEscaped                 // it has escapes
)

// value moves past one value. A nil visitor is told nothing. It is iterative:
// how deep a stranger nests is a number, not a stack.
func (s *scanner) value(visit visitor) error {
	floor := len(s.open)
	for {
		s.space()
		switch c := s.peek(); c {
		case '{', '[':
			if len(s.open) == MaxDepth {
				return errDepth
			}
			s.open = append(s.open, container{object: c == '{'})
			s.i++
			if s.space(); s.peek() != c+2 { // ASCII keeps the closing bracket two further
				if c == '{' {
					if err := s.name(visit); err != nil {
						return err
					}
				}
				continue
			}
			s.i++
			s.open = s.open[:len(s.open)-1]
		case '"':
			from := s.i
			kind, err := s.text()
			if err != nil {
				return err
			}
			if visit != nil {
				if err := visit(from, s.i, kind, false); err != nil {
					return err
				}
			}
		case 't':
			if err := s.literal("true"); err != nil {
				return err
			}
		case 'f':
			if err := s.literal("false"); err != nil {
				return err
			}
		case 'n':
			if err := s.literal("null"); err != nil {
				return err
			}
		default:
			if err := s.number(); err != nil {
				return err
			}
		}
		more, err := s.after(floor, visit)
		if err != nil || !more {
			return err
		}
	}
}

// after moves from the end of a value to the beginning of the next, past all
// containers that end there. more is false when none is open above the floor.
func (s *scanner) after(floor int, visit visitor) (more bool, err error) {
	for len(s.open) > floor {
		top := &s.open[len(s.open)-1]
		s.space()
		switch c := s.peek(); {
		case c == ',':
			s.i++
			if top.object {
				s.space()
				return true, s.name(visit)
			}
			top.index++
			return true, nil
		case c == '}' && top.object, c == ']' && !top.object:
			s.i++
			s.open = s.open[:len(s.open)-1]
		default:
			return false, s.fail("a comma or the closing bracket")
		}
	}
	return false, nil
}

// name moves past a member's name and its colon.
func (s *scanner) name(visit visitor) error {
	from := s.i
	kind, err := s.text()
	if err != nil {
		return err
	}
	top := &s.open[len(s.open)-1]
	top.nameFrom, top.nameTo = from, s.i
	if visit != nil {
		if err := visit(from, s.i, kind, true); err != nil {
			return err
		}
	}
	if s.space(); s.peek() != ':' {
		return s.fail("a colon")
	}
	s.i++
	return nil
}

// ordinary marks the bytes of a string that need no second look.
var ordinary = func() (t [256]bool) {
	for c := 0x20; c < utf8.RuneSelf; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

var errUTF8 = errors.New("not JSON: a string is not UTF-8")

// text moves past a string.
func (s *scanner) text() (kind textKind, err error) {
	if s.peek() != '"' {
		return 0, s.fail("a string")
	}
	b, i := s.b, s.i+1
	ascii := true
	for ; i < len(b); i++ {
		c := b[i]
		switch {
		case ordinary[c]:
		case c == '"':
			if !ascii && !utf8.Valid(b[s.i:i]) {
				return 0, errUTF8
			}
			s.i = i + 1
			return kind, nil
		case c >= utf8.RuneSelf:
			ascii = false
		case c == '\\':
			kind = textEscaped
			n := escapeLen(b[i:])
			if n == 0 {
				s.i = i
				return 0, s.fail("an escape")
			}
			i += n - 1
		default:
			s.i = i
			return 0, s.fail("allowed in a string")
		}
	}
	s.i = len(b)
	return 0, s.fail("the end of a string")
}

// escapeLen is the length of the escape at the beginning of b, 0 if it is none.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(b) >= 6 && isHex(b[2]) && isHex(b[3]) && isHex(b[4]) && isHex(b[5]) {
			return 6
		}
	}
	return 0
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func (s *scanner) literal(word string) error {
	if len(s.b)-s.i < len(word) || string(s.b[s.i:s.i+len(word)]) != word {
		return s.fail("a value")
	}
	s.i += len(word)
	return nil
}

func (s *scanner) digits() bool {
	from := s.i
	for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
		s.i++
	}
	return s.i > from
}

func (s *scanner) number() error {
	if s.peek() == '-' {
		s.i++
	}
	if s.peek() == '0' {
		s.i++
	} else if !s.digits() {
		return s.fail("a value")
	}
	if s.peek() == '.' {
		if s.i++; !s.digits() {
			return s.fail("a digit")
		}
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.i++
		if c := s.peek(); c == '+' || c == '-' {
			s.i++
		}
		if !s.digits() {
			return s.fail("a digit")
		}
	}
	return nil
}
