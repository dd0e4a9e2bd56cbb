package chain

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
)

func TestGoverns(t *testing.T) {
	calls := abi.On(abi.Request, abi.ToolsCall)
	off := false
	required := func(hooks abi.Hooks) Entry { return Entry{Interceptor: "needed", Required: true, Hooks: hooks} }
	down := func(open bool) *mock { return &mock{Label: "down", Down: errors.New("down"), FailOpen: open} }
	for name, c := range map[string]struct {
		hosts             []*mock
		policy            []Entry
		request, response bool
	}{
		"nobody":                              {nil, nil, false, false},
		"one that hooks a call":               {[]*mock{host("h", validator("v", pass, hooks(calls)))}, nil, true, false},
		"one that hooks nothing":              {[]*mock{host("h", validator("v", pass, hooks(abi.Hooks{})))}, nil, false, false},
		"one that hooks what is no event":     {[]*mock{host("h", validator("v", pass, hooks(abi.OnBoth("initialize", "tasks/*", "word"))))}, nil, false, false},
		"one that hooks a custom event":       {[]*mock{host("h", validator("v", pass, hooks(abi.On(abi.Response, "acme/*"))))}, nil, false, true},
		"one that is malformed":               {[]*mock{host("h", interceptor{Descriptor: abi.Descriptor{Name: "v", Type: "filter", Hooks: calls}, Does: pass})}, nil, false, false},
		"one that is disabled":                {[]*mock{host("h", validator("v", pass))}, []Entry{{Interceptor: "*", Enabled: &off}}, false, false},
		"one that is narrowed":                {[]*mock{host("h", validator("v", pass))}, []Entry{{Interceptor: "v", Hooks: calls}}, true, false},
		"one that is narrowed away":           {[]*mock{host("h", validator("v", pass))}, []Entry{{Interceptor: "v", Hooks: abi.Hooks{}}}, false, false},
		"one that is widened fails as listed": {[]*mock{host("h", validator("v", pass, hooks(calls)))}, []Entry{{Interceptor: "v", Hooks: abi.OnBoth("*")}}, true, false},
		"one that only a copy is served of":   {[]*mock{host("h", validator("v", pass, hooks(calls)))}, []Entry{{Interceptor: "v", As: "c", Hooks: abi.Hooks{}}}, false, false},
		"one for another version":             {[]*mock{host("h", validator("v", pass, compat("2026-07-28", "")))}, nil, false, false},
		"a host that is down":                 {[]*mock{down(false)}, nil, true, true},
		"a host that is down and fails open":  {[]*mock{down(true)}, nil, false, false},
		"required and missing":                {nil, []Entry{required(nil)}, true, true},
		"required on one event and missing":   {nil, []Entry{required(abi.On(abi.Request, abi.RootsList))}, true, false},
		"required on what is no event":        {nil, []Entry{required(abi.On(abi.Request, "ping"))}, false, false},
		"required, there, and hooks little":   {[]*mock{host("h", validator("needed", pass, hooks(calls)))}, []Entry{required(nil)}, true, false},
		"required, for another version":       {[]*mock{host("h", validator("needed", pass, hooks(calls), compat("2026-07-28", "")))}, []Entry{required(nil)}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			policy, err := NewPolicy(c.policy)
			require.NoError(t, err)
			ls := listings(c.hosts, nil)
			require.Equal(t, c.request, Governs(ls, policy, abi.Request, "2025-11-25"), "request")
			require.Equal(t, c.response, Governs(ls, policy, abi.Response, "2025-11-25"), "response")
		})
	}
	require.False(t, Governs(listings([]*mock{down(false)}, nil), nil, "both", ""), "no phase")
}

// TestGovernsIsExact: it says yes where a plan for some event is not empty, and
// nowhere else.
func TestGovernsIsExact(t *testing.T) {
	patterns := []string{"*", "tools/*", "tools/call", "initialize", "initialize*", "ta*s/x", "tasks/*", "tasks*", "*/", "/*", "notifications/*",
		"resources/templates/*", "resources/templates/list", "a*b*c", "word", "wo*d", "", "llm/completion", "*list"}
	// An event for each pattern that matches any, and all of protocol.md §1.
	events := []string{"tools/list", "tools/call", "prompts/list", "prompts/get", "resources/list", "resources/read", "resources/subscribe",
		"sampling/createMessage", "elicitation/create", "roots/list", "llm/completion",
		"initialize/x", "taxs/x", "tasksx/y", "x/y/", "resources/templates/x", "a/b/c", "wo/d"}
	seen := map[bool]int{}
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 2627))
		s := invent(r)
		some := func() abi.Hooks {
			return abi.On([]abi.Phase{abi.Request, abi.Response}[r.IntN(2)], patterns[r.IntN(len(patterns))])
		}
		var hosts []*mock
		for _, a := range s.hosts {
			m := &mock{Label: a.name, FailOpen: a.open || r.IntN(4) > 0}
			if a.down {
				m.Down = errors.New("down")
			}
			for _, c := range a.cast[:min(len(a.cast), r.IntN(3))] {
				if r.IntN(4) > 0 {
					c.Hooks = some()
				}
				m.Interceptors = append(m.Interceptors, interceptor{Descriptor: c.Descriptor})
			}
			hosts = append(hosts, m)
		}
		var entries []Entry
		for _, e := range s.entries {
			if r.IntN(3) == 0 {
				e.Hooks = some()
			}
			if _, err := NewPolicy(append(entries[:len(entries):len(entries)], e)); err == nil {
				entries = append(entries, e)
			}
		}
		policy, err := NewPolicy(entries)
		require.NoError(t, err)
		ls := listings(hosts, nil)
		for _, phase := range []abi.Phase{abi.Request, abi.Response} {
			want := false
			for _, event := range events {
				want = want || !NewPlan(ls, policy, event, phase, s.direction, s.version).Empty()
			}
			require.Equal(t, want, Governs(ls, policy, phase, s.version), "seed %d, %s", seed, phase)
			seen[want]++
		}
	}
	require.Greater(t, seen[true], 300)
	require.Greater(t, seen[false], 300)
}

// FuzzMatchesSome: whatever matches an event is said to.
func FuzzMatchesSome(f *testing.F) {
	for _, seed := range [][2]string{{"*", "tools/call"}, {"tasks*", "tasksx/y"}, {"tasks/*", "tasks/get"}, {"a*/b", "ax/b"}, {"*s/*", "tasks/x"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, event string) {
		if abi.MatchEvent(pattern, event) && !matchesSome(pattern) {
			t.Errorf("%q matches %q", pattern, event)
		}
	})
}
