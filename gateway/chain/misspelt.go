package chain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/nearest"
)

// Custom events are legal, so a misspelled one is nothing that could be refused
// (protocol.md §1). What can be told is a name that looks like one of MCP's and
// is none.

// standard are the events that are not custom, and all of each namespace, as a
// pattern names them.
var standard = func() (s struct{ events, namespaces, all []string }) {
	s.events = abi.Events()
	for _, e := range s.events {
		namespace, _, _ := strings.Cut(e, "/")
		if !slices.Contains(s.namespaces, namespace) {
			s.namespaces = append(s.namespaces, namespace)
			s.all = append(s.all, namespace+"/*")
		}
	}
	return s
}()

// custom reports whether an event or pattern in hooks matches events, and none
// but custom ones.
func custom(pattern string) bool {
	return matchesSome(pattern) && !slices.ContainsFunc(standard.events, func(e string) bool { return abi.MatchEvent(pattern, e) })
}

// misspelt reports whether what is custom looks like a standard event, because
// it is near one or in a namespace of theirs, and which was meant, or "".
func misspelt(pattern string) (meant string, ok bool) {
	candidates := standard.events
	if abi.IsPattern(pattern) {
		candidates = standard.all
	}
	if meant = nearest.Of(strings.TrimSpace(pattern), candidates); meant != "" {
		return meant, true
	}
	namespace, _, _ := strings.Cut(pattern, "/")
	return "", slices.Contains(standard.namespaces, strings.ToLower(strings.TrimSpace(namespace)))
}

// eventsIn gives the events and patterns in hooks of which is says so, each once
// and in their order.
func eventsIn(hooks abi.Hooks, is func(pattern string) bool) (found []string) {
	for _, h := range hooks {
		for _, pattern := range h.Events {
			if is(pattern) && !slices.Contains(found, pattern) {
				found = append(found, pattern)
			}
		}
	}
	return found
}

// quoted lists events for a warning, with what each may have been meant to be.
func quoted(events []string) string {
	const most = 5 // they may be a stranger's
	var b strings.Builder
	for i, e := range events {
		if i == most {
			fmt.Fprintf(&b, " and %d more", len(events)-most)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%.100q", e)
		if meant, _ := misspelt(e); meant != "" {
			fmt.Fprintf(&b, " (did you mean %q?)", meant)
		}
	}
	return b.String()
}
