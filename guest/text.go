package guest

import (
	"unicode/utf16"
	"unicode/utf8"

	"github.com/weir-mcp/weir/abi"
)

// Text decodes a JSON string. It is false for everything else. Half of a
// surrogate pair alone becomes U+FFFD.
func Text(raw []byte) (string, bool) {
	s := scanner{b: raw}
	s.space()
	from := s.i
	kind, err := s.text()
	if err != nil {
		return "", false
	}
	to := s.i
	if s.end() != nil {
		return "", false
	}
	return decodeText(string(raw[from+1:to-1]), kind), true
}

// decodeText decodes what stands between the quotes of a string that a scanner
// has passed. It allocates only where there are escapes.
func decodeText(spelled string, kind textKind) string {
	if kind == textPlain {
		return spelled
	}
	b := make([]byte, 0, len(spelled))
	for i := 0; i < len(spelled); {
		c := spelled[i]
		if c != '\\' {
			b = append(b, c)
			i++
			continue
		}
		switch c := spelled[i+1]; c {
		case 'u':
			r := hex4(spelled[i+2:])
			i += 6
			if utf16.IsSurrogate(r) {
				low := rune(utf8.RuneError)
				if i+6 <= len(spelled) && spelled[i] == '\\' && spelled[i+1] == 'u' {
					low = hex4(spelled[i+2:])
				}
				if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
					i += 6
				}
			}
			b = utf8.AppendRune(b, r)
			continue
		case 'b':
			b = append(b, '\b')
		case 'f':
			b = append(b, '\f')
		case 'n':
			b = append(b, '\n')
		case 'r':
			b = append(b, '\r')
		case 't':
			b = append(b, '\t')
		default:
			b = append(b, c)
		}
		i += 2
	}
	return string(b)
}

func hex4(s string) (r rune) {
	for i := range 4 {
		c := s[i]
		switch {
		case c >= 'a':
			c -= 'a' - 10
		case c >= 'A':
			c -= 'A' - 10
		default:
			c -= '0'
		}
		r = r<<4 | rune(c)
	}
	return r
}

// AppendText appends s as a JSON string with no more escapes than JSON asks
// for: "<", ">" and "&" stay as they are. Bytes that are not UTF-8 become
// U+FFFD.
func AppendText(dst []byte, s string) []byte { return abi.AppendString(dst, s) }
