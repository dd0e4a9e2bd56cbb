package config

import (
	"strings"
	"unicode/utf8"

	"github.com/weir-mcp/weir/internal/wire"
)

// json turns a value of the file into JSON twice: as written, and with
// variables expanded in its strings. Numbers keep their spelling and members
// their order.
func (l *loader) json(n *node) JSON {
	var written, value strings.Builder
	l.appendJSON(n, &written, &value)
	return JSON{written: written.String(), value: value.String()}
}

func (l *loader) appendJSON(n *node, written, value *strings.Builder) {
	both := func(s string) {
		written.WriteString(s)
		value.WriteString(s)
	}
	switch n.kind {
	case sequence:
		both("[")
		for i, item := range n.items {
			if i > 0 {
				both(",")
			}
			l.appendJSON(item, written, value)
		}
		both("]")
	case mapping:
		both("{")
		for i, m := range n.members {
			if i > 0 {
				both(",")
			}
			both(string(wire.AppendString(nil, m.name)) + ":")
			l.appendJSON(m.value, written, value)
		}
		both("}")
	default:
		t := isString
		if !n.quoted {
			t = typeOf(n.text)
		}
		switch t {
		case isNull:
			both("null")
		case isBool:
			both(strings.ToLower(n.text))
		case isNumber:
			both(n.text)
		case isForeign:
			l.fail(n.at, n.text+" has no counterpart in JSON", "put it in quotes, or write a plain decimal number")
			both("null")
		default:
			written.Write(wire.AppendString(nil, n.text))
			expanded := l.expand(n.at, n.text)
			if !utf8.ValidString(expanded) {
				l.fail(n.at, "a variable in "+n.spelling()+" is not UTF-8", "JSON has nothing else; set it as UTF-8")
			}
			value.Write(wire.AppendString(nil, expanded))
		}
	}
}
