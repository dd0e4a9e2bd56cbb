package abi_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
)

func TestIsEvent(t *testing.T) {
	for _, method := range []string{
		"tools/list", "tools/call", "prompts/list", "prompts/get", "resources/list", "resources/read",
		"resources/subscribe", "sampling/createMessage", "elicitation/create", "roots/list", "llm/completion",
		"acme/do", "acme/deep/er", "tools/future",
	} {
		require.True(t, abi.IsEvent(method), method)
	}
	for _, method := range []string{
		"initialize", "server/discover", "ping", "completion/complete", "logging/setLevel",
		"resources/templates/list", "resources/unsubscribe", "subscriptions/listen", "tasks/get", "tasks/result",
		"tasks/anything", "interceptors/list", "interceptor/invoke", "notifications/cancelled",
		"notifications/acme/x", "", "plain", "/x", "x/", "tools/*", "*",
	} {
		require.False(t, abi.IsEvent(method), method)
	}
}

func TestMatchEvent(t *testing.T) {
	for _, tt := range []struct {
		pattern, event string
		want           bool
	}{
		{"tools/call", "tools/call", true},
		{"tools/call", "tools/list", false},
		{"tools/call", "Tools/Call", false},
		{"*", "tools/call", true},
		{"*", "acme/do", true},
		{"*", "initialize", false},
		{"*", "notifications/progress", false},
		{"*", "tasks/result", false},
		{"ping", "ping", false},
		{"initialize", "initialize", false},
		{"tools/*", "tools/call", true},
		{"tools/*", "prompts/get", false},
		{"*/list", "tools/list", true},
		{"*/list", "roots/list", true},
		{"*/list", "resources/templates/list", false},
		{"t*s/c*l", "tools/call", true},
		{"**", "tools/call", true},
		{"tools/?all", "tools/call", false},
		{"tools/[c]all", "tools/call", false},
		{"acme/*", "acme/deep/er", true},
		{"a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/aaa", false},
		{"", "tools/call", false},
	} {
		require.Equal(t, tt.want, abi.MatchEvent(tt.pattern, tt.event), "%q on %q", tt.pattern, tt.event)
	}
}

func TestHooksMatchInTheirPhaseOnly(t *testing.T) {
	hooks := abi.Hooks{{Events: []string{"tools/call"}, Phase: abi.Request}, {Events: []string{"prompts/*"}, Phase: abi.Response}}
	require.True(t, hooks.Match("tools/call", abi.Request))
	require.False(t, hooks.Match("tools/call", abi.Response))
	require.True(t, hooks.Match("prompts/get", abi.Response))
	require.True(t, hooks.MatchEvent("prompts/get"), "the list filter looks at both phases")
	require.False(t, abi.Hooks{}.Match("tools/call", abi.Request), "C21: hooks: [] matches nothing")
	require.False(t, hooks.Match("tools/*", abi.Request), "a pattern is no event")
}

func TestHooksWithin(t *testing.T) {
	on := func(phase abi.Phase, events ...string) abi.Hooks { return abi.On(phase, events...) }
	for _, tt := range []struct {
		name         string
		inner, outer abi.Hooks
		want         bool
	}{
		{"the same", on("request", "tools/call"), on("request", "tools/call"), true},
		{"nothing", abi.Hooks{}, on("request", "tools/call"), true},
		{"a name under a glob", on("request", "tools/call"), on("request", "tools/*"), true},
		{"a glob under star", on("request", "tools/*"), on("request", "*"), true},
		{"star under a glob", on("request", "*"), on("request", "tools/*"), false},
		{"a glob under a name", on("request", "tools/*"), on("request", "tools/call"), false},
		{"another phase", on("response", "tools/call"), on("request", "tools/call"), false},
		{"one of two outside", on("request", "tools/call", "roots/list"), on("request", "tools/*"), false},
		{"both phases under both", abi.OnBoth("tools/call"), abi.OnBoth("*"), true},
	} {
		t.Run(tt.name, func(t *testing.T) { require.Equal(t, tt.want, tt.inner.Within(tt.outer)) })
	}
}

// Whatever Within says yes to, Match must bear out.
func FuzzWithin(f *testing.F) {
	f.Add("tools/*", "*", "tools/call")
	f.Add("*/l*t", "*l*", "tools/list")
	f.Fuzz(func(t *testing.T, inner, outer, event string) {
		in, out := abi.On(abi.Request, inner), abi.On(abi.Request, outer)
		if in.Within(out) && in.Match(event, abi.Request) {
			require.True(t, out.Match(event, abi.Request))
		}
	})
}

func TestSupportedEvents(t *testing.T) {
	require.Equal(t, []string{}, abi.SupportedEvents(nil))
	require.Equal(t, []string{"*", "prompts/get", "tools/call"}, abi.SupportedEvents([]abi.Descriptor{
		{Hooks: abi.OnBoth("tools/call", "prompts/get")}, {Hooks: abi.On(abi.Request, "*")}, {Hooks: abi.Hooks{}},
	}))
	require.Equal(t, `{"supportedEvents":["*"]}`, string(abi.AppendCapability(nil, []string{"*"})))
}
