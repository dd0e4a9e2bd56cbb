package main

import (
	"fmt"
	"strings"

	"github.com/weir-mcp/weir/guest"
)

// maxFindings bounds the messages of one verdict; further findings are counted.
const maxFindings = 20

// report collects findings.
type report struct {
	messages []guest.Message
	more     int
	worst    guest.Severity // of those that are only counted
}

func (r *report) add(at guest.Path, s secret) {
	if len(r.messages) == maxFindings {
		r.more++
		if r.worst != guest.SeverityError {
			r.worst = s.severity
		}
		return
	}
	where := "holds"
	if at.IsName() {
		where = "has in its name"
	}
	r.messages = append(r.messages, guest.Message{
		Path:     safePath(at.String()),
		Message:  where + " what looks like " + s.what,
		Severity: s.severity,
	})
}

func (r *report) findings() []guest.Message {
	if r.more == 0 {
		return r.messages
	}
	return append(r.messages, guest.Message{Path: "$", Message: fmt.Sprintf("and %d more", r.more), Severity: r.worst})
}

// hidden stands for a member whose name is a secret itself.
const hidden = `["***"]`

// safePath returns a path with every name that holds a secret hidden: a path is
// part of a message, and names are written by whoever wrote the payload.
func safePath(path string) string {
	if !hasSecret(path) {
		return path
	}
	var b strings.Builder
	for path != "" {
		n := stepLen(path)
		if step := path[:n]; hasSecret(step) {
			b.WriteString(hidden)
		} else {
			b.WriteString(step)
		}
		path = path[n:]
	}
	if safe := b.String(); !hasSecret(safe) {
		return safe
	}
	return "$" // a secret laid over several names
}

// stepLen returns the length of the first step of a path: $, .name, [0] or
// ["name"], whose name is spelled as a JSON string.
func stepLen(path string) int {
	inString := false
	for i := 1; i < len(path); i++ {
		switch c := path[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case !inString && (c == '.' || c == '['):
			return i
		}
	}
	return len(path)
}

func hasSecret(s string) (found bool) {
	findSecrets(s, "", func(secret) { found = true })
	return found
}
