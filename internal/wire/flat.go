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
	i := lineBreak(b)
	if i < 0 && dst == nil {
		return b[:len(b):len(b)]
	}
	if i >= 0 && dst == nil {
		dst = make([]byte, 0, len(b)-1)
	}
	for i >= 0 {
		dst = append(dst, b[:i]...)
		b = b[i+1:]
		i = lineBreak(b)
	}
	return append(dst, b...)
}

func lineBreak(b []byte) int { return bytes.IndexAny(b, "\r\n") }
