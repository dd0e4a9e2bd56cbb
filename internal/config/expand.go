package config

import (
	"fmt"
	"strings"
)

// LookupEnv finds an environment variable, as os.LookupEnv does.
type LookupEnv func(name string) (value string, ok bool)

// maxExpanded bounds what all variables of a file expand to together, in bytes.
const maxExpanded = 4 << 20

// expand returns text with ${NAME} replaced and $${ turned into ${. A "$"
// before anything else stands for itself.
func (l *loader) expand(at position, text string) string {
	i := strings.Index(text, "${")
	if i < 0 {
		return text
	}
	var b strings.Builder
	for ; i >= 0; i = strings.Index(text, "${") {
		if i > 0 && text[i-1] == '$' {
			b.WriteString(text[:i-1] + "${")
			text = text[i+2:]
			continue
		}
		b.WriteString(text[:i])
		name, rest, closed := strings.Cut(text[i+2:], "}")
		if !closed || !isEnvName(name) {
			l.fail(at, `"${" is not followed by a variable's name and "}"`, `write "$${" for a literal "${"`)
			return ""
		}
		value, ok := l.lookup(name)
		if !ok {
			l.fail(at, fmt.Sprintf("the environment variable %s is not set", name),
				fmt.Sprintf("set it, or write $${%s} for the text itself", name))
		}
		l.consumed[name] = struct{}{}
		if l.expanded += len(value); l.expanded > maxExpanded {
			l.fail(at, fmt.Sprintf("the variables expand to more than %d bytes", maxExpanded), "")
			return ""
		}
		b.WriteString(value)
		text = rest
	}
	b.WriteString(text)
	return b.String()
}

// isEnvName reports whether name is a portable name of a variable.
func isEnvName(name string) bool {
	for i, c := range []byte(name) {
		letter := c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}
