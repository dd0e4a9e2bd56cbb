package proxy

import (
	"errors"
	"io"
	"sync"
)

var errTooLarge = errors.New("too large")

// unproven is how much memory a length alone is worth, in bytes: a peer that
// announces a long body and sends none of it takes no more.
const unproven = 256 << 10

// readAll reads at most limit bytes behind what is in buf. With errTooLarge it gives
// those that it has read. expect is how many there will be, or negative.
func readAll(buf []byte, r io.Reader, limit, expect int64) ([]byte, error) {
	// One byte more than there will be, so that the end is seen without growing.
	full := min(expect, limit) + 1
	if expect < 0 {
		full = 4 << 10
	}
	if first := min(full, unproven+1); int64(cap(buf)) < first {
		buf = make([]byte, 0, first)
	}
	for {
		n, err := r.Read(buf[len(buf):min(int64(cap(buf)), limit+1)])
		buf = buf[:len(buf)+n]
		switch {
		case int64(len(buf)) > limit:
			return buf, errTooLarge
		case err == io.EOF:
			return buf, nil
		case err != nil:
			return buf, err
		case len(buf) < cap(buf):
		case int64(cap(buf)) < full:
			buf = append(make([]byte, 0, full), buf...)
		default:
			buf = append(buf, 0)[:len(buf)]
		}
	}
}

// bodies lends memory for answers of the backend: they are large, many, and mostly
// written and forgotten at once.
var bodies = sync.Pool{New: func() any { return new([]byte) }}

// keptBody is up to how many bytes are kept for the next answer.
const keptBody = 4 << 20

// giveBack takes the memory of an answer that nobody looks at any more.
func giveBack(lent *[]byte, body []byte) {
	if cap(body) > keptBody {
		body = nil
	}
	*lent = body[:0]
	bodies.Put(lent)
}
