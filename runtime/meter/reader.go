package meter

import (
	"fmt"
	"unicode/utf8"
)

// reader walks the bytes of a module. Its first failure sticks: from then on
// every read gives zero and moves nothing, so that callers check r.err where a
// loop or an allocation depends on what they read, not after each byte.
//
// Offsets are those of the whole file. end is where the part being read stops:
// the file, a section or a function body.
type reader struct {
	b        []byte
	pos, end int
	part     bool // end is that of a section or a body, which the file holds whole
	section  string
	function int // see Error.Function
	err      *Error
}

// fail records the first failure, found at the offset at.
func (r *reader) fail(kind error, at int, format string, args ...any) {
	if r.err != nil {
		return
	}
	r.err = &Error{Kind: kind, Section: r.section, Function: r.function, Offset: at, Reason: fmt.Sprintf(format, args...)}
}

// short records a read past the end. A section is known to lie within the file
// before its contents are read, so only what is between sections can be
// truncated.
func (r *reader) short(what string) {
	if r.part {
		r.fail(ErrMalformed, r.pos, "%s passes the end of what holds it, at %#x", what, r.end)
		return
	}
	r.fail(ErrTruncated, r.pos, "the file ends inside %s", what)
}

func (r *reader) left() int { return r.end - r.pos }

func (r *reader) byte(what string) byte {
	if r.err != nil {
		return 0
	}
	if r.pos >= r.end {
		r.short(what)
		return 0
	}
	c := r.b[r.pos]
	r.pos++
	return c
}

// bytes gives the next n bytes as a view of the file.
func (r *reader) bytes(n uint32, what string) []byte {
	if r.err != nil {
		return nil
	}
	if uint64(n) > uint64(r.left()) {
		r.short(what)
		return nil
	}
	b := r.b[r.pos : r.pos+int(n)]
	r.pos += int(n)
	return b
}

// u32 reads an unsigned LEB128 of at most 32 bits.
func (r *reader) u32(what string) uint32 {
	if r.err == nil && r.pos < r.end && r.b[r.pos] < 0x80 {
		r.pos++
		return uint32(r.b[r.pos-1])
	}
	start := r.pos
	var v uint32
	for shift := 0; shift < 35; shift += 7 {
		c := r.byte(what)
		if r.err != nil {
			return 0
		}
		if shift == 28 && c&0x7f > 0x0f {
			r.fail(ErrMalformed, start, "%s: the number is larger than 32 bits", what)
			return 0
		}
		v |= uint32(c&0x7f) << shift
		if c < 0x80 {
			return v
		}
	}
	r.fail(ErrMalformed, start, "%s: the number takes more bytes than 32 bits need", what)
	return 0
}

// signed reads a signed LEB128 of at most bits bits.
func (r *reader) signed(bits uint, what string) int64 {
	start := r.pos
	var v uint64
	for read := uint(0); read < bits; {
		c := r.byte(what)
		if r.err != nil {
			return 0
		}
		if room := bits - read; room < 7 {
			// The bits past the number repeat its sign.
			if rest := c & 0x7f >> (room - 1); rest != 0 && rest != 0x7f>>(room-1) {
				r.fail(ErrMalformed, start, "%s: the number is larger than %d bits", what, bits)
				return 0
			}
		}
		v |= uint64(c&0x7f) << read
		read += 7
		if c < 0x80 {
			if c&0x40 != 0 && read < 64 {
				v |= ^uint64(0) << read
			}
			return int64(v)
		}
	}
	r.fail(ErrMalformed, start, "%s: the number takes more bytes than %d bits need", what, bits)
	return 0
}

// count reads the length of a vector of what, of which limit are allowed and
// each of which takes at least one byte: so what is allocated for it is never
// more than the file can fill.
func (r *reader) count(limit int, what string) int {
	start := r.pos
	n := r.u32(what)
	switch {
	case r.err != nil:
		return 0
	case uint64(n) > uint64(limit):
		r.over(start, what, limit, int64(n))
		return 0
	case uint64(n) > uint64(r.left()):
		r.short(fmt.Sprintf("a list of %d %s", n, what))
		return 0
	}
	return int(n)
}

// over records that the module passes a limit.
func (r *reader) over(at int, what string, limit int, got int64) {
	r.fail(ErrLimit, at, "%d %s, at most %d are allowed", got, what, limit)
}

// index reads an index into a space of n entries.
func (r *reader) index(n int, what string) uint32 {
	start := r.pos
	i := r.u32(what)
	r.check(i, n, what, start)
	return i
}

// check refuses the index i, found at the offset at, into a space of n entries.
func (r *reader) check(i uint32, n int, what string, at int) {
	if uint64(i) >= uint64(n) {
		r.fail(ErrMalformed, at, "unknown %s %d: there are %d", what, i, n)
	}
}

// name reads a name: a length and that many bytes of UTF-8.
func (r *reader) name(what string) string {
	n := r.u32(what)
	start := r.pos
	b := r.bytes(n, what)
	if !utf8.Valid(b) {
		r.fail(ErrMalformed, start, "%s is not UTF-8", what)
		return ""
	}
	return string(b)
}
