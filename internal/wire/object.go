package wire

import "strconv"

// ObjectWriter appends one JSON object, member by member, in the order of the
// calls. Names are written as given, duplicates too: what it writes is as good
// as what it is told. Its methods are for one goroutine.
type ObjectWriter struct {
	b    []byte
	more bool
}

// OpenObject begins an object at the end of dst. [ObjectWriter.Close] ends it.
func OpenObject(dst []byte) ObjectWriter { return ObjectWriter{b: append(dst, '{')} }

// Close ends the object and returns dst with it.
func (w *ObjectWriter) Close() []byte { return append(w.b, '}') }

func (w *ObjectWriter) name(name string) {
	if w.more {
		w.b = append(w.b, ',')
	}
	w.more = true
	w.b = append(AppendString(w.b, name), ':')
}

// String writes a text.
func (w *ObjectWriter) String(name, v string) {
	w.name(name)
	w.b = AppendString(w.b, v)
}

// OptString writes a text, and nothing for an empty one.
func (w *ObjectWriter) OptString(name, v string) {
	if v != "" {
		w.String(name, v)
	}
}

// Bool writes true or false.
func (w *ObjectWriter) Bool(name string, v bool) {
	w.name(name)
	w.b = strconv.AppendBool(w.b, v)
}

// Int writes a whole number.
func (w *ObjectWriter) Int(name string, v int) {
	w.name(name)
	w.b = strconv.AppendInt(w.b, int64(v), 10)
}

// Float writes a finite number with no more digits than it needs, never with an
// exponent.
func (w *ObjectWriter) Float(name string, v float64) {
	w.name(name)
	w.b = strconv.AppendFloat(w.b, v, 'f', -1, 64)
}

// Raw writes a value as it is spelled; it must be JSON.
func (w *ObjectWriter) Raw(name string, v []byte) {
	w.name(name)
	w.b = append(w.b, v...)
}

// Append writes what value appends, such as a method AppendJSON; it must be one
// JSON value.
func (w *ObjectWriter) Append(name string, value func(dst []byte) []byte) {
	w.name(name)
	w.b = value(w.b)
}

// Object writes an object, the members of which fill writes.
func (w *ObjectWriter) Object(name string, fill func(*ObjectWriter)) {
	w.name(name)
	inner := OpenObject(w.b)
	fill(&inner)
	w.b = inner.Close()
}

// List writes an array of n elements. item appends element i, which must be one
// JSON value.
func (w *ObjectWriter) List(name string, n int, item func(dst []byte, i int) []byte) {
	w.name(name)
	w.b = append(w.b, '[')
	for i := range n {
		if i > 0 {
			w.b = append(w.b, ',')
		}
		w.b = item(w.b, i)
	}
	w.b = append(w.b, ']')
}
