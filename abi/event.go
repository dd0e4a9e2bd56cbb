package abi

import "strings"

// Events gives the events that have a name of their own in protocol.md §1, in
// its order: every one that is no custom event. The slice is the caller's.
func Events() []string {
	return []string{ToolsList, ToolsCall, PromptsList, PromptsGet, ResourcesList, ResourcesRead,
		ResourcesSubscribe, SamplingCreate, ElicitationCreate, RootsList, LLMCompletion}
}

// IsEvent reports whether method can be intercepted: the MCP methods of
// protocol.md §1, llm/completion, and custom ones of the form
// "namespace/operation". The methods that keep a connection alive or describe
// it, tasks, interceptor calls themselves and all notifications are not
// events; nothing matches them, "*" included.
func IsEvent(method string) bool {
	switch method {
	case "initialize", "ping", "server/discover", "completion/complete", "logging/setLevel",
		"resources/templates/list", "resources/unsubscribe", "subscriptions/listen",
		MethodList, MethodInvoke:
		return false
	}
	namespace, operation, ok := strings.Cut(method, "/")
	if !ok || namespace == "" || operation == "" || IsPattern(method) {
		return false
	}
	return namespace != "tasks" && namespace != "notifications"
}

// IsPattern reports whether s contains the wildcard of event patterns. A
// pattern is legal in a hook and illegal as the event of a call.
func IsPattern(s string) bool { return strings.Contains(s, "*") }

// MatchEvent reports whether pattern, as it stands in a hook, matches event.
// In a pattern each "*" stands for any run of characters, "/" included; all
// other characters stand for themselves. What is not an event (see [IsEvent])
// matches nothing, not even its own name.
func MatchEvent(pattern, event string) bool {
	return IsEvent(event) && glob(pattern, event)
}

// glob matches s against a pattern whose only wildcard is "*". It runs in
// O(len(pattern)*len(s)) at worst and without recursion, since both may come
// from a stranger.
func glob(pattern, s string) bool {
	p, i := 0, 0
	star, mark := -1, 0
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, i
			p++
		case p < len(pattern) && pattern[p] == s[i]:
			p++
			i++
		case star >= 0:
			mark++
			p, i = star+1, mark
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}
