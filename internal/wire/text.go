package wire

import (
	"unicode/utf16"
	"unicode/utf8"
)

// appendUnescaped appends the text that the content of a valid JSON string
// stands for. A lone surrogate becomes the three bytes that UTF-8 would give it
// if it were a character (WTF-8): no valid text contains them, so distinct
// names stay distinct.
func appendUnescaped(dst, content []byte) []byte {
	for i := 0; i < len(content); {
		c := content[i]
		if c != '\\' {
			dst = append(dst, c)
			i++
			continue
		}
		c = content[i+1]
		i += 2
		switch c {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r := hex4(content[i:])
			i += 4
			if utf16.IsSurrogate(r) && len(content)-i >= 6 && content[i] == '\\' && content[i+1] == 'u' {
				if pair := utf16.DecodeRune(r, hex4(content[i+2:])); pair != utf8.RuneError {
					r = pair
					i += 6
				}
			}
			if utf16.IsSurrogate(r) {
				dst = append(dst, 0xE0|byte(r>>12), 0x80|byte(r>>6)&0x3F, 0x80|byte(r)&0x3F)
			} else {
				dst = utf8.AppendRune(dst, r)
			}
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

func hex4(b []byte) (r rune) {
	for _, c := range b[:4] {
		if c-'0' <= 9 {
			c -= '0'
		} else {
			c = (c | 0x20) - 'a' + 10
		}
		r = r<<4 | rune(c)
	}
	return r
}

// Unquote gives the text of a JSON string, and false when raw is anything else.
// A lone surrogate becomes the three bytes that UTF-8 would give it if it were
// a character; [AppendString] writes them back as the escape they were.
func Unquote(raw []byte) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	s := scanner{b: raw}
	end, escaped := s.text(0)
	if end != len(raw) {
		return "", false
	}
	if escaped {
		return string(appendUnescaped(make([]byte, 0, len(raw)-2), raw[1:end-1])), true
	}
	return string(raw[1 : end-1]), true
}

// AppendString appends text as a JSON string. Only what must be is escaped:
// quotes, backslashes and controls; "<", ">" and "&" stay as they are. The
// three bytes that [Unquote] gives for a lone surrogate become its escape, any
// other byte that is not UTF-8 becomes U+FFFD.
func AppendString(dst []byte, text string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(text); {
		c := text[i]
		if plain[c] {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(text[i:])
			if r != utf8.RuneError || n != 1 {
				i += n
				continue
			}
			dst = append(dst, text[from:i]...)
			if c == 0xED && len(text)-i >= 3 && text[i+1]&0xE0 == 0xA0 && text[i+2]&0xC0 == 0x80 {
				dst = append(dst, '\\', 'u', 'd', hex[8|text[i+1]>>2&7], hex[text[i+1]&3<<2|text[i+2]>>4&3], hex[text[i+2]&15])
				i += 3
			} else {
				dst = append(dst, "\uFFFD"...)
				i++
			}
			from = i
			continue
		}
		dst = append(dst, text[from:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
		from = i
	}
	dst = append(dst, text[from:]...)
	return append(dst, '"')
}
