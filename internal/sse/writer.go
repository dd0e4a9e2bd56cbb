package sse

import (
	"bytes"
	"errors"
	"io"
	"strings"
)

// What cannot be written. Nothing of the event has been written then.
var (
	// ErrBreak refuses a line break, and a NUL where the standard has none: it
	// would be read as something else than it is.
	ErrBreak = errors.New("sse: a line break or NUL in a field")
	// ErrRetry refuses a retry that is no number.
	ErrRetry = errors.New("sse: retry is not a number")
	// ErrEmpty refuses an event that has no field.
	ErrEmpty = errors.New("sse: an event without a field")
)

// AppendEvent appends one event or comment with the empty line that ends it. The
// data must be on one line ([wire.Flat] sees to that for JSON). The error is one
// of [ErrBreak], [ErrRetry] and [ErrEmpty]; dst is returned as it was then.
func AppendEvent(dst []byte, e *Event) ([]byte, error) {
	out, err := appendFields(dst, e)
	if err != nil {
		return dst, err
	}
	return append(out, '\n'), nil
}

func appendFields(dst []byte, e *Event) ([]byte, error) {
	if e.IsComment {
		if strings.ContainsAny(e.Comment, "\r\n") {
			return nil, ErrBreak
		}
		return append(append(append(dst, ':'), e.Comment...), '\n'), nil
	}
	switch {
	case strings.ContainsAny(e.Name, "\r\n\x00"), e.HasID && strings.ContainsAny(e.ID, "\r\n\x00"):
		return nil, ErrBreak
	case e.HasData && (bytes.IndexByte(e.Data, '\n') >= 0 || bytes.IndexByte(e.Data, '\r') >= 0):
		return nil, ErrBreak
	case e.Retry != "" && !isDigits([]byte(e.Retry)):
		return nil, ErrRetry
	case e.empty():
		return nil, ErrEmpty
	}
	if e.Name != "" {
		dst = appendField(dst, "event: ", e.Name)
	}
	if e.HasID {
		dst = appendField(dst, "id: ", e.ID)
	}
	if e.Retry != "" {
		dst = appendField(dst, "retry: ", e.Retry)
	}
	if e.HasData {
		dst = append(append(append(dst, "data: "...), e.Data...), '\n')
	}
	return dst, nil
}

func appendField(dst []byte, name, value string) []byte {
	return append(append(append(dst, name...), value...), '\n')
}

// Writer writes events. It is for one goroutine.
type Writer struct {
	w     io.Writer
	flush func() error
	buf   []byte
}

// keptBuffer is how large a buffer may be to be used again.
const keptBuffer = 1 << 20

// NewWriter writes to w, each event with one Write, and calls flush, unless it
// is nil, behind each.
func NewWriter(w io.Writer, flush func() error) *Writer { return &Writer{w: w, flush: flush} }

// Write sends one event or comment. It keeps nothing of it. The error is that of
// [AppendEvent], after which writing may go on, or that of w or flush, after
// which it may not.
func (w *Writer) Write(e *Event) error {
	buf, err := AppendEvent(w.buf[:0], e)
	if err != nil {
		return err
	}
	if w.buf = buf; cap(buf) > keptBuffer {
		w.buf = nil
	}
	n, err := w.w.Write(buf)
	if err == nil && n < len(buf) {
		err = io.ErrShortWrite
	}
	if err == nil && w.flush != nil {
		err = w.flush()
	}
	return err
}
