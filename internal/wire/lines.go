package wire

import (
	"bytes"
	"fmt"
	"io"
)

// TooLong reports a line that was discarded because it is longer than the
// reader's limit. It is answered with [CodeInvalid] (protocol.md §6).
type TooLong struct {
	// Max is the limit and Size the length of the line, in bytes.
	Max, Size int64
	// Kind and ID say whom to answer, as [Peek] would.
	Kind Kind
	ID   ID
}

// Error gives the length and the limit.
func (e *TooLong) Error() string {
	return fmt.Sprintf("wire: message of %d bytes is over the limit of %d", e.Size, e.Max)
}

// LineReader reads newline-delimited messages (the stdio transport of MCP). It
// is for one goroutine.
type LineReader struct {
	r   io.Reader
	max int
	buf []byte // buf[from:to] is read and not yet delivered
	// seen is up to where buf holds no line feed.
	from, seen, to int
	// last is how long the last line was: the next one is taken to be like it.
	last int
	err  error
}

const (
	// firstBuffer serves the common small message. It doubles while a line does
	// not fit, or becomes as large as the line before at once, so that
	// large lines in a row are not copied from buffer to buffer. Lines from a quarter
	// of usualBuffer on that fill half of the buffer take it with them, and the next
	// one is as large, up to largeBuffer.
	firstBuffer = 4 << 10
	usualBuffer = 64 << 10
	largeBuffer = 256 << 10
	// emptyReads is how often a reader may return nothing and no error.
	emptyReads = 100
)

// NewLineReader reads lines of at most max bytes from r, the line end not
// counted. A max below 1 counts as 1.
func NewLineReader(r io.Reader, max int) *LineReader {
	if max < 1 {
		max = 1
	}
	return &LineReader{r: r, max: max}
}

// Next gives the next line that is not blank, without its line end (LF or CR
// LF). The line belongs to the caller. A last line without a line end counts.
//
// A line over the limit is discarded as it streams, never held beyond the
// limit, and reported as a *[TooLong]; the reader then goes on behind it. Any
// other error is the reader's own, io.EOF at the end, and is final.
func (l *LineReader) Next() ([]byte, error) {
	for {
		if i := bytes.IndexByte(l.buf[l.seen:l.to], '\n'); i >= 0 {
			end := l.seen + i
			line := l.trim(l.from, end)
			if len(line) > l.max {
				var s Skimmer
				s.Feed(line)
				l.skip(end + 1)
				return nil, l.tooLong(&s, int64(len(line)))
			}
			if blank(line) {
				l.skip(end + 1)
				continue
			}
			return l.deliver(line, end+1), nil
		}
		l.seen = l.to
		// One byte more may be a CR that does not count.
		if l.to-l.from > l.max+1 {
			return nil, l.discard()
		}
		if l.err != nil {
			line := l.trim(l.from, l.to)
			if l.err == io.EOF && len(line) > l.max {
				return nil, l.discard()
			}
			if l.err != io.EOF || blank(line) {
				l.skip(l.to)
				return nil, l.err
			}
			return l.deliver(line, l.to), nil
		}
		l.fill()
	}
}

// trim gives buf[from:to] without a CR at its end.
func (l *LineReader) trim(from, to int) []byte {
	if to > from && l.buf[to-1] == '\r' {
		to--
	}
	return l.buf[from:to:to]
}

func blank(line []byte) bool { return spaceSlow(line, 0) == len(line) }

// skip goes on at offset to.
func (l *LineReader) skip(to int) {
	l.from, l.seen = to, to
	if l.from == l.to {
		l.from, l.seen, l.to = 0, 0, 0
		if len(l.buf) > largeBuffer {
			l.buf = nil
		}
	}
}

// deliver gives the line away: a copy, or the buffer itself where copying would
// be the dearer, and goes on at offset next.
func (l *LineReader) deliver(line []byte, next int) []byte {
	l.last = len(line)
	if len(line) < usualBuffer/4 || len(line) < len(l.buf)/2 {
		// Not make and copy: that would clear what is written over.
		line = append([]byte(nil), line...)
		l.skip(next)
		return line[:len(line):len(line)]
	}
	rest := l.buf[next:l.to]
	l.buf = make([]byte, max(min(len(l.buf), largeBuffer), len(rest)))
	l.from, l.seen = 0, 0
	l.to = copy(l.buf, rest)
	return line
}

// fill reads more, after making room.
func (l *LineReader) fill() {
	if l.from > 0 {
		l.to = copy(l.buf, l.buf[l.from:l.to])
		l.from, l.seen = 0, l.to
	}
	if l.to == len(l.buf) {
		// A full line with CR LF fits, and no more.
		size := max(firstBuffer, min(max(2*len(l.buf), l.last+2), l.max+2))
		grown := make([]byte, size)
		copy(grown, l.buf[:l.to])
		l.buf = grown
	}
	l.read()
}

func (l *LineReader) read() {
	for range emptyReads {
		n, err := l.r.Read(l.buf[l.to:])
		if n < 0 || n > len(l.buf)-l.to {
			n, err = 0, io.ErrNoProgress
		}
		l.to += n
		l.err = err
		if n > 0 || err != nil {
			return
		}
	}
	l.err = io.ErrNoProgress
}

// discard drops the line that has begun, skimming it for whom to answer.
func (l *LineReader) discard() error {
	var (
		s    Skimmer
		size int64
		last byte
	)
	for {
		part, end := l.buf[l.from:l.to], -1
		if i := bytes.IndexByte(part, '\n'); i >= 0 {
			part, end = part[:i], l.from+i+1
		}
		s.Feed(part)
		size += int64(len(part))
		if len(part) > 0 {
			last = part[len(part)-1]
		}
		if end >= 0 {
			l.skip(end)
			break
		}
		l.from, l.seen, l.to = 0, 0, 0
		if l.err != nil {
			break
		}
		l.read()
	}
	if last == '\r' {
		size--
	}
	return l.tooLong(&s, size)
}

func (l *LineReader) tooLong(s *Skimmer, size int64) error {
	e := &TooLong{Max: int64(l.max), Size: size}
	e.Kind, e.ID = s.Found()
	return e
}
