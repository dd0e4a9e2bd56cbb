package wire

import "bytes"

// Flat appends b to dst without its carriage returns and line feeds. In JSON
// they occur outside strings only, so no token changes; and no reader that
// frames by lines can take one message for several (protocol.md §6). To be safe
// with text that is not JSON too, it drops every CR and LF wherever it stands.
//
// With a nil dst and nothing to drop it returns b itself, its capacity cut to
// its length, without copying.
func Flat(dst, b []byte) []byte {
	lf, cr := indexFrom(b, 0, '\n'), indexFrom(b, 0, '\r')
	if dst == nil {
		if lf == len(b) && cr == len(b) {
			return b[:len(b):len(b)]
		}
		dst = make([]byte, 0, len(b)-1)
	}
	// The next LF and the next CR are looked for apart, each byte once for each:
	// twice the fastest search there is, and linear whatever the text.
	for from := 0; ; {
		at := min(lf, cr)
		dst = append(dst, b[from:at]...)
		if at == len(b) {
			return dst
		}
		from = at + 1
		if at == lf {
			lf = indexFrom(b, from, '\n')
		} else {
			cr = indexFrom(b, from, '\r')
		}
	}
}

// indexFrom is where c next stands in b at or after from, or len(b).
func indexFrom(b []byte, from int, c byte) int {
	if i := bytes.IndexByte(b[from:], c); i >= 0 {
		return from + i
	}
	return len(b)
}
