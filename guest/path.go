package guest

import (
	"strconv"
	"strings"
)

// Path says where in a payload a string stands. It is good until the function
// that it was given to returns; keep what String returns.
type Path struct{ w *walker }

// String writes the path as JSONPath does (RFC 9535): "$" for the payload, then
// ".name" or, where the name is not made of ASCII letters, digits and "_",
// `["name"]` with the name as a JSON string, and "[0]" for an element:
// "$.content[0].text". It is what belongs into [Message].Path. The path of a
// name is that of its member.
func (p Path) String() string {
	var b strings.Builder
	b.WriteByte('$')
	for _, c := range p.w.open {
		if !c.object {
			b.WriteByte('[')
			b.WriteString(strconv.Itoa(c.index))
			b.WriteByte(']')
			continue
		}
		name := p.w.nameOf(c)
		if isIdentifier(name) {
			b.WriteByte('.')
			b.WriteString(name)
			continue
		}
		b.WriteByte('[')
		b.Write(AppendText(nil, name))
		b.WriteByte(']')
	}
	return b.String()
}

// Name is the name of the innermost member that the string is the value of, or
// is in an array of: "text" for "$.content[0].text", "tags" for "$.tags[3]". It
// is empty outside all objects.
func (p Path) Name() string {
	for i := len(p.w.open) - 1; i >= 0; i-- {
		if c := p.w.open[i]; c.object {
			return p.w.nameOf(c)
		}
	}
	return ""
}

// Depth is the number of objects and arrays around the string.
func (p Path) Depth() int { return len(p.w.open) }

// IsName reports whether the string is a member's name (see [AndNames]).
func (p Path) IsName() bool { return p.w.atName }

func isIdentifier(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9' || i == 0) {
			return false
		}
	}
	return s != ""
}

func (w *walker) nameOf(c container) string {
	spelled := w.text[c.nameFrom+1 : c.nameTo-1]
	kind := textPlain
	if strings.IndexByte(spelled, '\\') >= 0 {
		kind = textEscaped
	}
	return decodeText(spelled, kind)
}
