package sse

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/weir-mcp/weir/internal/wire"
)

// ErrMalformed is found in the errors of a [Reader] that say that the stream
// breaks a bound or a rule and cannot be read on.
var ErrMalformed = errors.New("sse: malformed stream")

// Reader reads events. It is for one goroutine.
type Reader struct {
	r   io.Reader
	max Limits
	// buf[from:to] is read and not yet taken. lf and cr are the first LF and CR
	// in it, or up to where there is none.
	buf      []byte
	from, to int
	lf, cr   int
	begun    bool // a line has been read: no byte order mark any more
	skipLF   bool // the last line ended with a CR: an LF that follows is part of it
	err      error
	// event is what has been read of the next one. While over is set its data
	// are too large and dropped; size is how long they are.
	event Event
	over  *wire.Skimmer
	size  int
}

const (
	firstBuffer = 4 << 10
	// Data from giveAway bytes on that fill half of the buffer take it with
	// them, and the next one is as large, up to largeBuffer.
	giveAway    = 16 << 10
	largeBuffer = 256 << 10
	// emptyReads is how often a reader may return nothing and no error.
	emptyReads = 100
	// fieldName is more than the longest field name with its colon and space.
	fieldName = 16
)

var byteOrderMark = []byte("\uFEFF")

// NewReader reads from r, which is not read further than to the end of what it
// happens to give at once.
func NewReader(r io.Reader, l Limits) *Reader { return &Reader{r: r, max: l.withDefaults()} }

// Next gives the next comment or event. A comment inside an event comes before
// that event. Fields that the standard does not know are left out, as are an id
// with NUL and a retry that is no number; an event of which nothing is left is
// none.
//
// A *[wire.TooLong] comes with one event whose data were dropped; reading goes
// on behind it. Any other error is final: io.EOF at the end between two events,
// io.ErrUnexpectedEOF inside one, which the standard says is no event, one that
// wraps [ErrMalformed], or that of the underlying reader.
func (r *Reader) Next() (Event, error) {
	for {
		line, err := r.line()
		switch {
		case err != nil:
			return Event{}, err
		case len(line) == 0:
			e, over := r.event, r.over
			r.event, r.over = Event{}, nil
			if over != nil {
				kind, id := over.Found()
				return e, &wire.TooLong{Max: int64(r.max.Data), Size: int64(r.size), Kind: kind, ID: id}
			}
			if !e.empty() {
				return e, nil
			}
		case line[0] == ':':
			return Event{IsComment: true, Comment: string(line[1:])}, nil
		default:
			if err := r.field(line); err != nil {
				return Event{}, r.fail(err)
			}
		}
	}
}

// fail makes err what every further Next returns.
func (r *Reader) fail(err error) error {
	r.from, r.lf, r.cr, r.err = r.to, r.to, r.to, err
	return err
}

// field takes one line that is a field.
func (r *Reader) field(line []byte) error {
	name, value, _ := bytes.Cut(line, []byte{':'})
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	switch string(name) {
	case "data":
		r.data(value)
	case "event":
		if bytes.IndexByte(value, 0) >= 0 {
			return fmt.Errorf("%w: an event name with NUL", ErrMalformed)
		}
		r.event.Name = nameOf(value)
	case "id":
		if len(value) > r.max.ID {
			return fmt.Errorf("%w: an id of %d bytes is over the limit of %d", ErrMalformed, len(value), r.max.ID)
		}
		if bytes.IndexByte(value, 0) < 0 {
			r.event.ID, r.event.HasID = string(value), true
		}
	case "retry":
		if isDigits(value) {
			r.event.Retry = string(value)
		}
	}
	return nil
}

// nameOf makes no copy of the name that every event of MCP has.
func nameOf(value []byte) string {
	if string(value) == "message" {
		return "message"
	}
	return string(value)
}

func isDigits(b []byte) bool {
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(b) > 0
}

// data takes the value of one data field.
func (r *Reader) data(value []byte) {
	had := r.event.HasData
	r.event.HasData = true
	size := len(value)
	if had {
		size += len(r.event.Data) + 1
	}
	switch {
	case r.over != nil:
		r.drop(value)
	case size > r.max.Data:
		r.overflow(had)
		r.drop(value)
	case had:
		r.event.Data = append(append(r.event.Data, '\n'), value...)
	case len(value) >= giveAway && len(value) >= len(r.buf)/2:
		r.event.Data = value[:len(value):len(value)]
		r.replaceBuffer()
	default:
		r.event.Data = append(make([]byte, 0, len(value)), value...)
	}
}

// overflow begins to drop the data of the event that is being read.
func (r *Reader) overflow(had bool) {
	r.over, r.size = &wire.Skimmer{}, len(r.event.Data)
	r.over.Feed(r.event.Data)
	r.event.Data = nil
	if had {
		r.drop([]byte{'\n'})
	}
}

func (r *Reader) drop(part []byte) {
	r.over.Feed(part)
	r.size += len(part)
}

// replaceBuffer leaves the buffer to the data that lie in it.
func (r *Reader) replaceBuffer() {
	rest := r.buf[r.from:r.to]
	r.buf = make([]byte, max(min(len(r.buf), largeBuffer), len(rest)))
	copy(r.buf, rest)
	r.moved()
}

// moved notes that what was buf[from:to] begins at 0 now.
func (r *Reader) moved() {
	r.lf, r.cr = max(r.lf-r.from, 0), max(r.cr-r.from, 0)
	r.from, r.to = 0, r.to-r.from
}

// line gives the next line without its end. It is good until the next call. A
// line of data that is too long is dropped, and given as "data", which adds
// nothing to what is dropped already.
func (r *Reader) line() ([]byte, error) {
	for {
		if r.skipLF && r.from < r.to {
			if r.buf[r.from] == '\n' {
				r.from++
			}
			r.skipLF = false
		}
		r.lf, r.cr = r.find(r.lf, '\n'), r.find(r.cr, '\r')
		if end := min(r.lf, r.cr); end < r.to {
			line := r.buf[r.from:end]
			r.skipLF = end == r.cr
			r.from = end + 1
			if !r.begun {
				r.begun = true
				line = bytes.TrimPrefix(line, byteOrderMark)
			}
			if len(line) > r.max.Line && !isData(line) {
				return nil, r.fail(r.longLine())
			}
			return line, nil
		}
		if r.err != nil {
			if r.err == io.EOF && (!r.event.empty() || r.from < r.to) {
				r.err = io.ErrUnexpectedEOF
			}
			return nil, r.fail(r.err)
		}
		if r.to-r.from > r.longest() {
			if err := r.tooLong(); err != nil {
				return nil, r.fail(err)
			}
			return []byte("data"), nil
		}
		r.fill()
	}
}

// longest is how much of a line is kept.
func (r *Reader) longest() int { return max(r.max.Data+fieldName, r.max.Line+len(byteOrderMark)) }

func (r *Reader) longLine() error {
	return fmt.Errorf("%w: a line is longer than the limit of %d bytes", ErrMalformed, r.max.Line)
}

// isData says whether the line, or the beginning of one, is a data field.
func isData(line []byte) bool { return bytes.HasPrefix(line, []byte("data:")) }

// find gives the first c in buf[from:to], or to. Up to at there is none.
func (r *Reader) find(at int, c byte) int {
	at = max(at, r.from)
	if at < r.to && r.buf[at] == c {
		return at
	}
	if i := bytes.IndexByte(r.buf[at:r.to], c); i >= 0 {
		return at + i
	}
	return r.to
}

// tooLong drops the rest of the line that fills the buffer.
func (r *Reader) tooLong() error {
	begin := r.buf[r.from:r.to]
	if !r.begun {
		r.begun = true
		begin = bytes.TrimPrefix(begin, byteOrderMark)
	}
	if !isData(begin) {
		return r.longLine()
	}
	value := bytes.TrimPrefix(begin[len("data:"):], []byte(" "))
	if r.over == nil {
		r.overflow(r.event.HasData)
	}
	r.event.HasData = true
	r.drop(value)
	for {
		r.from, r.to, r.lf, r.cr = 0, 0, 0, 0
		if r.err != nil {
			if r.err == io.EOF {
				return io.ErrUnexpectedEOF
			}
			return r.err
		}
		r.read()
		r.lf, r.cr = r.find(0, '\n'), r.find(0, '\r')
		end := min(r.lf, r.cr)
		r.drop(r.buf[:end])
		if end < r.to {
			r.skipLF = end == r.cr
			r.from = end + 1
			return nil
		}
	}
}

// fill reads more, after making room.
func (r *Reader) fill() {
	switch {
	case r.from == r.to:
		r.from, r.to, r.lf, r.cr = 0, 0, 0, 0
		if len(r.buf) > largeBuffer {
			r.buf = nil
		}
	case r.from > 0:
		copy(r.buf, r.buf[r.from:r.to])
		r.moved()
	}
	if r.to == len(r.buf) {
		grown := make([]byte, max(firstBuffer, min(2*len(r.buf), r.longest()+2)))
		copy(grown, r.buf[:r.to])
		r.buf = grown
	}
	r.read()
}

func (r *Reader) read() {
	for range emptyReads {
		n, err := r.r.Read(r.buf[r.to:])
		if n < 0 || n > len(r.buf)-r.to {
			n, err = 0, io.ErrNoProgress
		}
		r.to += n
		r.err = err
		if n > 0 || err != nil {
			return
		}
	}
	r.err = io.ErrNoProgress
}
