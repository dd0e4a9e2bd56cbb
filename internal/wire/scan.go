package wire

import (
	"encoding/binary"
	"math/bits"
	"sync"
)

// MaxDepth is how many arrays and objects may be open at once, the envelope
// included; one more is refused with [CodeInvalid]. It is far above what any
// MCP payload needs and far below where a recursive decoder behind the gateway
// would run out of stack.
const MaxDepth = 1000

// scanner walks JSON once. Its methods take an offset and return the offset
// after what they read, or -1 after setting err: the shape that keeps the hot
// loop in registers and free of allocation.
type scanner struct {
	b []byte
	// err is the first reason to stop; refusal the first reason to refuse text
	// that is JSON all the same. A syntax error outranks a refusal, because
	// nothing read from text that is no JSON means anything.
	err, refusal *Error

	depth int
	// kinds has one bit an open container, set for an object.
	kinds [(MaxDepth + 63) / 64]uint64

	// strict collects the names of every object that value reads.
	strict bool
	names  nameSet

	// index collects where containers end, when wanted (see Equal).
	index   *[]container
	parents []int
}

// pooled lends scanners that collect names, whose tables are worth keeping.
var pooled = sync.Pool{New: func() any { return new(scanner) }}

func borrow(b []byte, strict bool) *scanner {
	s := pooled.Get().(*scanner)
	s.b, s.names.b, s.strict = b, b, strict
	return s
}

// keepNames and keepArena are how large tables may be that wait for their next
// use: enough for any ordinary message, nothing for a hostile one.
const (
	keepNames = 1 << 10
	keepArena = 16 << 10
)

func (s *scanner) giveBack() {
	n := s.names
	if cap(n.all) > keepNames || cap(n.hashes) > keepNames || cap(n.arena) > keepArena {
		n = nameSet{}
	}
	n.b, n.all, n.open, n.arena, n.hashes = nil, n.all[:0], n.open[:0], n.arena[:0], n.hashes[:0]
	*s = scanner{names: n}
	pooled.Put(s)
}

func (s *scanner) fail(code int, at int, reason string) int {
	if s.err == nil {
		s.err = &Error{Code: code, Reason: reason, Offset: at}
	}
	return -1
}

func (s *scanner) syntax(at int, reason string) int {
	if at >= len(s.b) {
		at, reason = len(s.b), reasonEnd
	}
	return s.fail(CodeParse, at, reason)
}

// refuse notes why text that so far is JSON will not be accepted, and lets the
// scan go on.
func (s *scanner) refuse(at int, reason string) {
	if s.refusal == nil {
		s.refusal = &Error{Code: CodeInvalid, Reason: reason, Offset: at}
	}
}

// verdict is nil when nothing was found against the text.
func (s *scanner) verdict() *Error {
	if s.err != nil {
		return s.err
	}
	return s.refusal
}

// document reads the one value that the input must consist of.
func (s *scanner) document() {
	if i := s.value(space(s.b, 0)); i >= 0 {
		s.end(i)
	}
}

// end checks that only white space follows.
func (s *scanner) end(i int) {
	if i = space(s.b, i); i != len(s.b) {
		s.syntax(i, reasonTrailing)
	}
}

// space skips JSON white space.
func space(b []byte, i int) int {
	if i < len(b) && b[i] > ' ' {
		return i
	}
	return spaceSlow(b, i)
}

func spaceSlow(b []byte, i int) int {
	for i < len(b) && isSpace(b[i]) {
		i++
	}
	return i
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// push opens a container.
func (s *scanner) push(i int, object bool) bool {
	if s.depth == MaxDepth {
		s.fail(CodeInvalid, i, reasonDepth)
		return false
	}
	word, bit := s.depth>>6, uint64(1)<<(s.depth&63)
	if object {
		s.kinds[word] |= bit
		if s.strict {
			s.names.push()
		}
	} else {
		s.kinds[word] &^= bit
	}
	s.depth++
	if s.index != nil {
		s.parents = append(s.parents, len(*s.index))
		*s.index = append(*s.index, container{})
	}
	return true
}

// pop closes the innermost container, whose text ends before offset end.
func (s *scanner) pop(end int) {
	if s.strict && s.inObject() {
		if at := s.names.pop(); at >= 0 {
			s.refuse(at, reasonDuplicate)
		}
	}
	s.depth--
	if s.index != nil {
		me := s.parents[len(s.parents)-1]
		s.parents = s.parents[:len(s.parents)-1]
		(*s.index)[me] = container{end: end, inside: len(*s.index) - me}
	}
}

func (s *scanner) inObject() bool {
	d := s.depth - 1
	return s.kinds[d>>6]>>(d&63)&1 != 0
}

// value reads the value that starts at i, whatever is in it.
func (s *scanner) value(i int) int {
	b, base := s.b, s.depth
next:
	for {
		if i >= len(b) {
			return s.syntax(i, reasonEnd)
		}
		switch c := b[i]; c {
		case '"':
			if i, _ = s.text(i); i < 0 {
				return i
			}
		case '{':
			if !s.push(i, true) {
				return -1
			}
			i = space(b, i+1)
			if i < len(b) && b[i] == '}' {
				i++
				s.pop(i)
				break
			}
			if i = s.key(i); i < 0 {
				return i
			}
			continue next
		case '[':
			if !s.push(i, false) {
				return -1
			}
			i = space(b, i+1)
			if i < len(b) && b[i] == ']' {
				i++
				s.pop(i)
				break
			}
			continue next
		case 't':
			i = s.literal(i, "true")
		case 'f':
			i = s.literal(i, "false")
		case 'n':
			i = s.literal(i, "null")
		case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			i = s.number(i)
		default:
			return s.unexpected(i)
		}
		if i < 0 {
			return i
		}
		for s.depth > base {
			i = space(b, i)
			if i >= len(b) {
				return s.syntax(i, reasonEnd)
			}
			object := s.inObject()
			switch c := b[i]; {
			case c == ',':
				i = space(b, i+1)
				if object {
					if i = s.key(i); i < 0 {
						return i
					}
				}
				continue next
			case c == '}' && object, c == ']' && !object:
				i++
				s.pop(i)
			default:
				return s.unexpected(i)
			}
		}
		return i
	}
}

// unexpected refuses the byte at i, which is outside any string.
func (s *scanner) unexpected(i int) int {
	if i < len(s.b) && s.b[i] >= 0x80 && utf8Len(s.b, i) == 0 {
		return s.syntax(i, reasonUTF8)
	}
	return s.syntax(i, reasonToken)
}

// key reads a member name and its colon, and stops at the value.
func (s *scanner) key(i int) int {
	end, escaped, value := s.label(i)
	if s.strict && value >= 0 {
		s.names.add(i+1, end, escaped, false)
	}
	return value
}

// label reads the member name whose opening quote is at i and its colon. It
// returns where the name ends, before its closing quote, and where the value
// begins. It returns numbers only, which stay in registers: half of the time on
// messages of many small members goes by here.
func (s *scanner) label(i int) (end int, escaped bool, value int) {
	b := s.b
	if i >= len(b) || b[i] != '"' {
		return -1, false, s.unexpected(i)
	}
	i, escaped = s.text(i)
	if i < 0 {
		return -1, escaped, -1
	}
	end = i - 1
	i = space(b, i)
	if i >= len(b) || b[i] != ':' {
		return -1, escaped, s.unexpected(i)
	}
	return end, escaped, space(b, i+1)
}

// A name is a member name as spelled: the content between the quotes.
type name struct {
	raw     []byte
	at      int // offset of the opening quote
	escaped bool
}

// name is label for those who want the name.
func (s *scanner) name(i int) (name, int) {
	end, escaped, value := s.label(i)
	if value < 0 {
		return name{}, -1
	}
	return name{raw: s.b[i+1 : end], at: i, escaped: escaped}, value
}

// first steps into the object that starts at i: to its first name, or behind
// its end.
func (s *scanner) first(i int) (at int, more bool) {
	if !s.push(i, true) {
		return -1, false
	}
	i = space(s.b, i+1)
	if i < len(s.b) && s.b[i] == '}' {
		s.pop(i + 1)
		return i + 1, false
	}
	return i, true
}

// next steps from behind a member's value to the next name, or behind the end
// of the object.
func (s *scanner) next(i int) (at int, more bool) {
	i = space(s.b, i)
	if i < len(s.b) {
		switch s.b[i] {
		case ',':
			return space(s.b, i+1), true
		case '}':
			s.pop(i + 1)
			return i + 1, false
		}
	}
	return s.unexpected(i), false
}

func (s *scanner) literal(i int, word string) int {
	for j := range len(word) {
		if i+j >= len(s.b) || s.b[i+j] != word[j] {
			return s.syntax(i+j, reasonLiteral)
		}
	}
	return i + len(word)
}

// number reads a number by the grammar of RFC 8259 §6.
func (s *scanner) number(i int) int {
	b := s.b
	if b[i] == '-' {
		i++
	}
	switch {
	case i >= len(b):
		return s.syntax(i, reasonEnd)
	case b[i] == '0':
		i++
	case b[i]-'1' <= 8:
		i = digits(b, i+1)
	default:
		return s.syntax(i, reasonNumber)
	}
	if i < len(b) && b[i] == '.' {
		j := digits(b, i+1)
		if j == i+1 {
			return s.syntax(j, reasonNumber)
		}
		i = j
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		j := digits(b, i)
		if j == i {
			return s.syntax(j, reasonNumber)
		}
		i = j
	}
	return i
}

func digits(b []byte, i int) int {
	for i < len(b) && b[i]-'0' <= 9 {
		i++
	}
	return i
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// text reads the string whose opening quote is at i.
func (s *scanner) text(i int) (end int, escaped bool) {
	b := s.b
	i++
	for {
		// Eight bytes at a time: a high bit of stop is set at the first byte
		// that is a quote, a backslash, a control or not ASCII. Borrows can set
		// false bits only above a true one, and only the lowest is used. A text
		// that is JSON itself has an escape in every second word: those of two
		// bytes are passed here.
		for len(b)-i >= 8 {
			w := binary.LittleEndian.Uint64(b[i:])
			stop := ((w - ' '*ones) | ((w ^ '"'*ones) - ones) | ((w ^ '\\'*ones) - ones) | w) & highs
			if stop == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(stop) >> 3
			if b[i] == '"' {
				return i + 1, escaped
			}
			if b[i] != '\\' || i+1 >= len(b) || !short[b[i+1]] {
				break
			}
			escaped = true
			i += 2
		}
		for i < len(b) && plain[b[i]] {
			i++
		}
		if i >= len(b) {
			return s.syntax(i, reasonEnd), escaped
		}
		switch c := b[i]; {
		case c == '"':
			return i + 1, escaped
		case c == '\\':
			escaped = true
			if i = s.escape(i); i < 0 {
				return i, escaped
			}
		case c < 0x20:
			return s.syntax(i, reasonControl), escaped
		default:
			for i < len(b) && b[i] >= 0x80 {
				n := utf8Len(b, i)
				if n == 0 {
					// Never "unexpected end": cut off in the middle of a
					// character, the text is no UTF-8.
					return s.fail(CodeParse, i, reasonUTF8), escaped
				}
				i += n
			}
		}
	}
}

// plain says which bytes stand for themselves in a string and are ASCII.
var plain = func() (t [256]bool) {
	for c := 0x20; c < 0x80; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

// short says which bytes make an escape of two bytes with the backslash before.
var short = [256]bool{'"': true, '\\': true, '/': true, 'b': true, 'f': true, 'n': true, 'r': true, 't': true}

// escape checks the escape whose backslash is at i. A lone surrogate is
// accepted, as RFC 8259 §8.2 has it: it crosses as spelled.
func (s *scanner) escape(i int) int {
	b := s.b
	if i+1 >= len(b) {
		return s.syntax(i+1, reasonEnd)
	}
	switch c := b[i+1]; {
	case short[c]:
		return i + 2
	case c == 'u':
		for j := i + 2; j < i+6; j++ {
			if j >= len(b) || !isHex(b[j]) {
				return s.syntax(j, reasonEscape)
			}
		}
		return i + 6
	}
	return s.syntax(i+1, reasonEscape)
}

func isHex(c byte) bool { return c-'0' <= 9 || (c|0x20)-'a' <= 5 }

// utf8Len is the length of the well-formed UTF-8 sequence at i, which starts
// with a byte of 0x80 or above, and 0 when it is not well-formed.
func utf8Len(b []byte, i int) int {
	c := b[i]
	rest := b[i+1:]
	switch {
	case c < 0xC2:
		return 0
	case c < 0xE0:
		if len(rest) >= 1 && rest[0]&0xC0 == 0x80 {
			return 2
		}
	case c < 0xF0:
		if len(rest) >= 2 && rest[0]&0xC0 == 0x80 && rest[1]&0xC0 == 0x80 &&
			(c != 0xE0 || rest[0] >= 0xA0) && (c != 0xED || rest[0] < 0xA0) {
			return 3
		}
	case c < 0xF5:
		if len(rest) >= 3 && rest[0]&0xC0 == 0x80 && rest[1]&0xC0 == 0x80 && rest[2]&0xC0 == 0x80 &&
			(c != 0xF0 || rest[0] >= 0x90) && (c != 0xF4 || rest[0] < 0x90) {
			return 4
		}
	}
	return 0
}
