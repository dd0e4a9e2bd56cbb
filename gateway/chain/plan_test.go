package chain

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
)

func planOf(t *testing.T, entries []Entry, hosts ...*mock) *Plan {
	t.Helper()
	policy, err := NewPolicy(entries)
	require.NoError(t, err)
	return NewPlan(listings(hosts, nil), policy, abi.ToolsCall, abi.Request, abi.Sending, "2025-11-25")
}

// shown is the steps of a plan as host/name, in order.
func shown(p *Plan) string {
	var parts []string
	for _, s := range p.Steps() {
		text := s.Host + "/" + s.Name
		if s.Refused != nil {
			text += "!"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, " ")
}

func left(p *Plan) string {
	var parts []string
	for _, l := range p.LeftOut() {
		parts = append(parts, fmt.Sprintf("%s/%s:%s", l.Host, l.Name, l.Reason))
	}
	return strings.Join(parts, " ")
}

func failures(p *Plan) string {
	var parts []string
	for _, f := range p.Failures() {
		parts = append(parts, fmt.Sprintf("%s/%s:%s", f.Host, f.Interceptor, f.Reason))
	}
	return strings.Join(parts, " ")
}

// TestPrecedence is config.md's order, member by member.
func TestPrecedence(t *testing.T) {
	entry := func(name, host string, timeout time.Duration) Entry {
		return Entry{Interceptor: name, Host: host, Timeout: &timeout, Source: fmt.Sprintf("%s@%s", name, host)}
	}
	all := []Entry{entry("*", "", 1), entry("*", "h", 2), entry("v", "", 3), entry("v", "h", 4)}
	want := []string{"default", "policy *@", "policy *@h", "policy v@", "policy v@h"}
	for n := range len(all) + 1 {
		for _, reversed := range []bool{false, true} {
			entries := append([]Entry(nil), all[:n]...)
			if reversed {
				for i, j := 0, len(entries)-1; i < j; i, j = i+1, j-1 {
					entries[i], entries[j] = entries[j], entries[i]
				}
			}
			p := planOf(t, entries, host("h", validator("v", pass)), host("other", validator("v", pass), validator("w", pass)))
			require.Equal(t, time.Duration(n), p.Steps()[0].Timeout.Value)
			require.Equal(t, want[n], p.Steps()[0].Timeout.From.String())
			require.LessOrEqual(t, int(p.Steps()[1].Timeout.Value), 3, "an entry for a host stays there")
			require.NotEqual(t, time.Duration(2), p.Steps()[1].Timeout.Value)
			require.LessOrEqual(t, int(p.Steps()[2].Timeout.Value), 1, "an entry for a name stays there")
		}
	}
}

func TestProvenance(t *testing.T) {
	authored := validator("v", pass, failOpen, audit, priority(7))
	t.Run("defaults", func(t *testing.T) {
		s := planOf(t, nil, host("h", mutator("m", tag))).Steps()[0]
		require.Equal(t, Setting[abi.Mode]{abi.Active, From{}}, s.Mode)
		require.Equal(t, Setting[bool]{false, From{}}, s.FailOpen)
		require.Equal(t, Setting[int32]{0, From{}}, s.Priority)
		require.Equal(t, Setting[time.Duration]{0, From{}}, s.Timeout)
		require.Nil(t, s.Config.Value)
		require.Equal(t, "author", s.Hooks.From.String())
	})
	t.Run("author", func(t *testing.T) {
		s := planOf(t, nil, host("h", authored)).Steps()[0]
		require.Equal(t, Setting[abi.Mode]{abi.Audit, From{Origin: FromAuthor}}, s.Mode)
		require.Equal(t, Setting[bool]{true, From{Origin: FromAuthor}}, s.FailOpen)
		require.Equal(t, Setting[int32]{7, From{Origin: FromAuthor}}, s.Priority)
	})
	t.Run("policy", func(t *testing.T) {
		s := planOf(t, []Entry{
			{Interceptor: "v", Mode: ptr(abi.Active), FailOpen: ptr(false), Source: "a"},
			{Interceptor: "*", PriorityHint: ptr(abi.PhasePriority(nil, ptr[int32](3))), Config: json.RawMessage(`{"k":1}`), ConfigShown: json.RawMessage(`{"k":"${K}"}`), Source: "b"},
			{Interceptor: "v", Host: "h", Hooks: abi.On(abi.Request, "tools/*"), Source: "c"},
		}, host("h", authored)).Steps()[0]
		require.Equal(t, Setting[abi.Mode]{abi.Active, From{FromPolicy, "a"}}, s.Mode)
		require.Equal(t, Setting[bool]{false, From{FromPolicy, "a"}}, s.FailOpen)
		require.Equal(t, Setting[int32]{0, From{FromPolicy, "b"}}, s.Priority, "the whole hint is replaced, not one phase of it")
		require.Equal(t, Setting[json.RawMessage]{json.RawMessage(`{"k":1}`), From{FromPolicy, "b"}}, s.Config)
		require.JSONEq(t, `{"k":"${K}"}`, string(s.ConfigShown))
		require.Equal(t, From{FromPolicy, "c"}, s.Hooks.From)
	})
}

func TestCopies(t *testing.T) {
	x := Entry{Interceptor: "guard", As: "x", Source: "f:1", Mode: ptr(abi.Audit)}
	y := Entry{Interceptor: "guard", As: "y", Source: "f:2"}
	guard := func() interceptor { return validator("guard", pass) }
	t.Run("the original is not served beside copies", func(t *testing.T) {
		p := planOf(t, []Entry{y, x}, host("h", guard(), validator("w", pass)))
		require.Equal(t, "h/w h/x h/y", shown(p))
		require.Equal(t, "h/guard:replaced", left(p))
		require.Equal(t, "guard", p.Steps()[1].Interceptor)
	})
	t.Run("the original is served with an entry of its own name", func(t *testing.T) {
		p := planOf(t, []Entry{x, {Interceptor: "guard", FailOpen: ptr(true)}}, host("h", guard()))
		require.Equal(t, "h/guard h/x", shown(p))
		require.True(t, p.Steps()[0].FailOpen.Value)
		require.False(t, p.Steps()[1].FailOpen.Value, "no other entry addresses the copy")
	})
	t.Run("a star entry is no entry of its own name", func(t *testing.T) {
		p := planOf(t, []Entry{x, {Interceptor: "*", FailOpen: ptr(true), Mode: ptr(abi.Active), Source: "f:3"}}, host("h", guard()))
		require.Equal(t, "h/x", shown(p))
		require.Equal(t, From{FromPolicy, "f:3"}, p.Steps()[0].FailOpen.From, "star entries apply beneath the copy's own")
		require.Equal(t, From{FromPolicy, "f:1"}, p.Steps()[0].Mode.From)
	})
	t.Run("one on each host", func(t *testing.T) {
		p := planOf(t, []Entry{x}, host("b", guard()), host("a", guard()))
		require.Equal(t, "b/x a/x", shown(p))
	})
	t.Run("on the host that it names, the other keeps the original", func(t *testing.T) {
		x := x
		x.Host = "a"
		p := planOf(t, []Entry{x}, host("b", guard()), host("a", guard()))
		require.Equal(t, "b/guard a/x", shown(p))
	})
	t.Run("the original named on another host only", func(t *testing.T) {
		p := planOf(t, []Entry{x, {Interceptor: "guard", Host: "b"}}, host("b", guard()), host("a", guard()))
		require.Equal(t, "b/guard b/x a/x", shown(p))
	})
	t.Run("a disabled copy still takes the place", func(t *testing.T) {
		x := x
		x.Enabled = ptr(false)
		p := planOf(t, []Entry{x}, host("h", guard()))
		require.Empty(t, p.Steps())
		require.Equal(t, "h/guard:replaced h/x:disabled", left(p))
	})
	t.Run("a listed interceptor of a copy's name is refused, the copy runs", func(t *testing.T) {
		p := planOf(t, []Entry{x}, host("h", guard()), host("evil", validator("x", pass, failOpen)))
		require.Equal(t, "h/x evil/x!", shown(p))
		require.ErrorContains(t, p.Steps()[1].Refused, "f:1")
	})
	t.Run("the host is called by its own name", func(t *testing.T) {
		h := host("h", guard())
		p := planOf(t, []Entry{x}, h)
		out := NewExecutor(Options{}).Execute(t.Context(), p, Operation{Payload: json.RawMessage(`{"name":"t"}`)})
		require.Equal(t, abi.StatusSuccess, out.Status)
		require.Equal(t, "x=passed", effects(&out))
		require.Equal(t, "h/guard", allCalls([]*mock{h}))
	})
}

func TestLeftOut(t *testing.T) {
	for name, c := range map[string]struct {
		entries []Entry
		host    *mock
		want    string
		detail  string
	}{
		"not hooked":       {nil, host("h", validator("v", pass, hooks(abi.On(abi.Response, abi.ToolsCall)))), "h/v:not_hooked", ""},
		"compat":           {nil, host("h", validator("v", pass, compat("2026-07-28", ""))), "h/v:compat", "2026-07-28 and later"},
		"compat, old":      {nil, host("h", validator("v", pass, compat("2024-11-05", "2025-03-26"))), "h/v:compat", "2024-11-05 to 2025-03-26"},
		"disabled":         {[]Entry{{Interceptor: "v", Enabled: ptr(false), Source: "f:9"}}, host("h", validator("v", pass)), "h/v:disabled", "policy f:9"},
		"disabled by star": {[]Entry{{Interceptor: "*", Host: "h", Enabled: ptr(false)}}, host("h", validator("v", pass)), "h/v:disabled", "policy"},
		"narrowed":         {[]Entry{{Interceptor: "v", Hooks: abi.On(abi.Response, "*"), Source: "f:9"}}, host("h", validator("v", pass)), "h/v:narrowed", "policy f:9"},
		"malformed":        {nil, host("h", interceptor{Descriptor: abi.Descriptor{Name: "v", Type: "what", Hooks: abi.OnBoth("*")}, Does: pass}), "h/v:malformed", `"what"`},
		"nameless":         {nil, host("h", interceptor{Descriptor: abi.Descriptor{Type: abi.Sink, Hooks: abi.OnBoth("*")}, Does: pass}), "h/:malformed", "no name"},
		"skipped":          {nil, &mock{Label: "h", Bad: []string{`{"name":"v","type":"mutation","hooks":[],"priorityHint":1.5}`}}, "h/v:malformed", "priorityHint"},
		"duplicate":        {nil, host("h", validator("v", pass), validator("v", pass)), "h/v:duplicate", ""},
		"host":             {nil, &mock{Label: "h", Down: errors.New("refused"), FailOpen: true}, "h/:host_unavailable", "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			p := planOf(t, c.entries, c.host)
			require.Equal(t, c.want, left(p))
			require.Contains(t, p.LeftOut()[0].Detail, c.detail)
			require.Empty(t, p.Failures())
		})
	}
}

func TestRefusedSteps(t *testing.T) {
	toolsCall := hooks(abi.On(abi.Request, abi.ToolsCall))
	for name, c := range map[string]struct {
		entry Entry
		i     interceptor
		says  string
	}{
		"widened":                 {Entry{Interceptor: "v", Hooks: abi.On(abi.Request, "*")}, validator("v", pass, toolsCall), "may only narrow"},
		"moved":                   {Entry{Interceptor: "v", Hooks: abi.On(abi.Request, abi.PromptsGet)}, validator("v", pass, toolsCall), "may only narrow"},
		"widened by a star entry": {Entry{Interceptor: "*", Hooks: abi.OnBoth(abi.ToolsCall)}, validator("v", pass, toolsCall), "may only narrow"},
		"another type":            {Entry{Interceptor: "v", Type: abi.Mutation}, validator("v", pass), "listed as validation"},
		"sink set to audit":       {Entry{Interceptor: "v", Mode: ptr(abi.Audit)}, sink("v", recorded), "no audit mode"},
	} {
		t.Run(name, func(t *testing.T) {
			p := planOf(t, []Entry{c.entry}, host("h", c.i))
			require.Equal(t, "h/v!", shown(p))
			require.ErrorContains(t, p.Steps()[0].Refused, c.says)
			require.False(t, p.Blocked())
		})
	}
	t.Run("audit of everything passes over sinks", func(t *testing.T) {
		p := planOf(t, []Entry{{Interceptor: "*", Mode: ptr(abi.Audit)}}, host("h", sink("s", recorded), mutator("m", tag)))
		require.Equal(t, "h/m h/s", shown(p))
		require.Equal(t, abi.Audit, p.Steps()[0].Mode.Value)
		require.Equal(t, abi.Active, p.Steps()[1].Mode.Value)
		require.False(t, p.Mutates())
	})
	t.Run("a refused sink is reported, never run", func(t *testing.T) {
		var reports []SinkReport
		h := host("h", sink("s", recorded))
		p := planOf(t, []Entry{{Interceptor: "s", Type: abi.Validation}}, h)
		sinks := NewSinks(SinkOptions{Observe: func(r SinkReport) { reports = append(reports, r) }})
		out := NewExecutor(Options{Sinks: sinks}).Execute(t.Context(), p, Operation{})
		require.Equal(t, abi.StatusSuccess, out.Status)
		require.Equal(t, "s=lost", effects(&out))
		require.Len(t, reports, 1)
		require.Empty(t, h.All())
	})
}

// TestRequired is "Discovery failure" of protocol.md §5.
func TestRequired(t *testing.T) {
	required := Entry{Interceptor: "v", Required: true, Source: "f:1"}
	with := func(change func(*Entry)) Entry {
		e := required
		change(&e)
		return e
	}
	v := validator("v", pass)
	dead := &mock{Label: "dead", Down: errors.New("down"), FailOpen: true}
	skipped := &mock{Label: "h", Bad: []string{`{"name":"v"}`}}
	for name, c := range map[string]struct {
		entries []Entry
		hosts   []*mock
		want    string
	}{
		"listed":                              {[]Entry{required}, []*mock{host("h", v)}, ""},
		"listed, hooks another event":         {[]Entry{required}, []*mock{host("h", validator("v", pass, hooks(abi.On(abi.Request, abi.PromptsGet))))}, ""},
		"listed, hooks nothing":               {[]Entry{required}, []*mock{host("h", validator("v", pass, hooks(abi.Hooks{})))}, ""},
		"not listed":                          {[]Entry{required}, []*mock{host("h")}, "/v:missing"},
		"no hosts at all":                     {[]Entry{required}, nil, "/v:missing"},
		"dead host that may fail open":        {[]Entry{required}, []*mock{dead}, "/v:missing"},
		"dead host, listed by another":        {[]Entry{required}, []*mock{dead, host("h", v)}, ""},
		"named host does not list it":         {[]Entry{with(func(e *Entry) { e.Host = "a" })}, []*mock{host("a"), host("b", v)}, "a/v:missing"},
		"named host lists it":                 {[]Entry{with(func(e *Entry) { e.Host = "b" })}, []*mock{host("a"), host("b", v)}, ""},
		"named host is not configured":        {[]Entry{with(func(e *Entry) { e.Host = "c" })}, []*mock{host("b", v)}, "c/v:missing"},
		"malformed":                           {[]Entry{required}, []*mock{host("h", interceptor{Descriptor: abi.Descriptor{Name: "v", Type: "x"}, Does: pass})}, "h/v:malformed"},
		"skipped by discovery":                {[]Entry{required}, []*mock{skipped}, "h/v:malformed"},
		"malformed on one of two hosts":       {[]Entry{required}, []*mock{skipped, host("b", v)}, "h/v:malformed"},
		"compat":                              {[]Entry{required}, []*mock{host("h", validator("v", pass, compat("2026-07-28", "")))}, "h/v:compat"},
		"another type":                        {[]Entry{with(func(e *Entry) { e.Type = abi.Mutation })}, []*mock{host("h", v)}, "h/v:refused"},
		"widened":                             {[]Entry{with(func(e *Entry) { e.Hooks = abi.On(abi.Request, "*") })}, []*mock{host("h", validator("v", pass, hooks(abi.On(abi.Request, abi.ToolsCall))))}, "h/v:refused"},
		"required on this event":              {[]Entry{with(func(e *Entry) { e.Hooks = abi.On(abi.Request, "tools/*") })}, nil, "/v:missing"},
		"required on another event":           {[]Entry{with(func(e *Entry) { e.Hooks = abi.On(abi.Request, abi.PromptsGet) })}, nil, ""},
		"required in the other phase":         {[]Entry{with(func(e *Entry) { e.Hooks = abi.On(abi.Response, "*") })}, nil, ""},
		"all of a host disabled":              {[]Entry{required, {Interceptor: "*", Host: "h", Enabled: ptr(false)}}, []*mock{host("h", v)}, "h/v:disabled"},
		"copy":                                {[]Entry{with(func(e *Entry) { e.As = "x" })}, []*mock{host("h", v)}, ""},
		"copy of what is not listed":          {[]Entry{with(func(e *Entry) { e.As = "x" })}, []*mock{host("h")}, "/x:missing"},
		"a listed name is not the copy's":     {[]Entry{with(func(e *Entry) { e.As = "x" })}, []*mock{host("h", validator("x", pass))}, "/x:missing"},
		"copy of another type":                {[]Entry{with(func(e *Entry) { e.As, e.Type = "x", abi.Sink })}, []*mock{host("h", v)}, "h/x:refused"},
		"hosts before required":               {[]Entry{required}, []*mock{{Label: "z", Down: errors.New("down")}}, "z/:not_listed /v:missing"},
		"the first of two descriptors counts": {[]Entry{required}, []*mock{host("h", v, v)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := planOf(t, c.entries, c.hosts...)
			require.Equal(t, c.want, failures(p))
			require.Equal(t, c.want != "", p.Blocked())
			out := NewExecutor(Options{}).Execute(t.Context(), p, Operation{Payload: json.RawMessage(`{"name":"t"}`)})
			require.Equal(t, c.want == "", out.Released())
			if c.want != "" {
				require.Equal(t, abi.StatusDiscoveryFailed, out.Status)
				require.Empty(t, out.Results, "nobody is called")
			}
		})
	}
}

func TestPlanOrder(t *testing.T) {
	everything := host("h", sink("b", recorded), sink("a", recorded, priority(-9)), validator("d", pass, priority(5)), validator("c", pass, priority(9)),
		mutator("f", tag, hint(abi.PhasePriority(ptr[int32](1), ptr[int32](-1)))), mutator("e", tag))
	for _, c := range []struct {
		phase     abi.Phase
		direction abi.Direction
		want      string
	}{
		{abi.Request, abi.Sending, "h/e h/f h/c h/d h/a h/b"},
		{abi.Response, abi.Sending, "h/f h/e h/c h/d h/a h/b"},
		{abi.Request, abi.Receiving, "h/c h/d h/a h/b h/e h/f"},
		{abi.Response, abi.Receiving, "h/c h/d h/a h/b h/f h/e"},
	} {
		p := NewPlan(listings([]*mock{everything}, nil), nil, abi.ToolsCall, c.phase, c.direction, "")
		require.Equal(t, c.want, shown(p))
		require.True(t, p.Mutates())
		require.Equal(t, []any{abi.ToolsCall, c.phase, c.direction}, []any{p.Event(), p.Phase(), p.Direction()})
	}
}

// TestNotAnEvent: nothing matches it, and not even a dead host stops it.
func TestNotAnEvent(t *testing.T) {
	hosts := []*mock{host("h", validator("v", reject)), {Label: "dead", Down: errors.New("down")}}
	for _, method := range []string{"initialize", "ping", "tasks/result", "notifications/progress", abi.MethodInvoke, "*", "tools/*", ""} {
		p := NewPlan(listings(hosts, nil), nil, method, abi.Request, abi.Sending, "")
		require.True(t, p.Empty(), method)
	}
	require.True(t, NewPlan(listings(hosts, nil), nil, abi.ToolsCall, "both", abi.Sending, "").Empty())
	require.False(t, NewPlan(listings(hosts, nil), nil, "acme/thing", abi.Request, abi.Sending, "").Empty())
}

func TestListingWithoutAHost(t *testing.T) {
	p := NewPlan([]Listing{{Interceptors: []abi.Descriptor{validator("v", pass).Descriptor}}}, nil, abi.ToolsCall, abi.Request, abi.Sending, "")
	require.True(t, p.Blocked())
	p = NewPlan([]Listing{{Err: errors.New("x"), FailOpen: true}}, nil, abi.ToolsCall, abi.Request, abi.Sending, "")
	require.True(t, p.Empty())
}

// TestUnmatched: a misspelled guard is told of.
func TestUnmatched(t *testing.T) {
	policy, err := NewPolicy([]Entry{
		{Interceptor: "v", Source: "f:1"},
		{Interceptor: "V", Source: "f:2"},
		{Interceptor: "v", Host: "b", Source: "f:3"},
		{Interceptor: "*", Host: "c", Source: "f:4"},
		{Interceptor: "w", As: "x", Source: "f:5"},
		{Interceptor: "*", Host: "dead", Source: "f:6"},
		{Interceptor: "*", Source: "f:7"},
		{Interceptor: "skipped", Source: "f:8"},
		{Interceptor: "filter", Source: "f:9"},
		{Interceptor: "idle", Source: "f:10"},
	})
	require.NoError(t, err)
	hosts := []*mock{
		host("a", validator("v", pass), interceptor{Descriptor: abi.Descriptor{Name: "filter", Type: "filter", Hooks: abi.OnBoth("*")}}),
		host("b", validator("x", pass), validator("idle", pass, hooks(abi.On(abi.Request, "initialize")))),
	}
	hosts[1].Bad = []string{`{"name":"skipped"}`}
	require.Equal(t, []Unmatched{
		{Source: "f:2", Target: `"V"`, Reason: Unlisted},
		{Source: "f:3", Target: `"v" on host "b"`, Reason: Unlisted},
		{Source: "f:4", Target: `"*" on host "c"`, Reason: Unlisted},
		{Source: "f:5", Target: `"w" as "x"`, Reason: Unlisted},
		{Source: "f:6", Target: `"*" on host "dead"`, Reason: Unlisted},
		{Source: "f:8", Target: `"skipped"`, Reason: Unusable},
		{Source: "f:9", Target: `"filter"`, Reason: Unusable},
		{Source: "f:10", Target: `"idle"`, Reason: Idle},
	}, policy.Unmatched(listings(hosts, nil)))

	hosts = append(hosts, &mock{Label: "dead", Down: errors.New("down")})
	list := policy.Unmatched(listings(hosts, nil))
	require.Equal(t, `f:6: the entry for interceptor "*" on host "dead" matches nothing that any host lists so far`, list[4].String())
	require.Equal(t, `f:8: the entry for interceptor "skipped" matches only what is listed with a descriptor that cannot be used so far`, list[5].String())
	require.Equal(t, `f:10: the entry for interceptor "idle" matches only what hooks no event at all, so that it never runs so far`, list[7].String())
	require.True(t, list[0].Pending, "the dead host may list it yet")
	require.False(t, list[1].Pending, "the host that it names is there")
	require.Empty(t, (*Policy)(nil).Unmatched(nil))
}

// TestUnmatchedHooks: an entry that narrows to what is no event switches off
// what it addresses.
func TestUnmatchedHooks(t *testing.T) {
	for name, c := range map[string]struct {
		hooks abi.Hooks
		lost  bool
	}{
		"not set":                   {nil, false},
		"nothing, in so many words": {abi.Hooks{}, false},
		"no events":                 {abi.On(abi.Request), false},
		"an event":                  {abi.On(abi.Response, abi.ToolsCall), false},
		"a pattern":                 {abi.On(abi.Request, "tools/*"), false},
		"no event":                  {abi.On(abi.Request, "initialize"), true},
		"a namespace without any":   {abi.OnBoth("tasks/*", "notifications/*"), true},
		"one of two":                {abi.On(abi.Request, "ping", abi.ToolsCall), false},
		"a word":                    {abi.On(abi.Request, "tools"), true},
	} {
		t.Run(name, func(t *testing.T) {
			policy, err := NewPolicy([]Entry{{Interceptor: "v", Hooks: c.hooks, Source: "f:1"}})
			require.NoError(t, err)
			list := policy.Unmatched(listings([]*mock{host("h", validator("v", pass))}, nil))
			if !c.lost {
				require.Empty(t, list)
				return
			}
			require.Equal(t, []Unmatched{{Source: "f:1", Target: `"v"`, Reason: NoEvent}}, list)
			require.Equal(t, `f:1: the entry for interceptor "v" has hooks that match no event at all, so that what it addresses never runs`, list[0].String())
		})
	}
}

// TestUnmatchedEvents: a custom event is legal, and one that looks like an event
// of MCP, or that nobody has a name for, is told of.
func TestUnmatchedEvents(t *testing.T) {
	const known, unknown = "", UnknownEvent
	for _, c := range []struct {
		name   string
		author string // event
		policy string // event, or "" for no entry
		reason UnmatchedReason
		events string // as told
	}{
		{"an event", "*", abi.ToolsCall, known, ""},
		{"of embedding programs", abi.LLMCompletion, abi.LLMCompletion, known, ""},
		{"a pattern", "*", "tools/*", known, ""},
		{"everything", "*", "*", known, ""},
		{"a narrow pattern", "*", "*/list", known, ""},
		{"custom, of the author", "acme/deploy", "", known, ""},
		{"custom, as the author has it", "acme/deploy", "acme/deploy", known, ""},
		{"custom, within the author's", "acme/*", "acme/deploy", known, ""},
		{"custom, that nobody has a name for", "*", "acme/deploy", unknown, `"acme/deploy"`},
		{"custom pattern that nobody has a name for", "*", "acme/*", unknown, `"acme/*"`},
		{"misspelled in policy", "*", "tool/call", unknown, `"tool/call" (did you mean "tools/call"?)`},
		{"misspelled by both", "tool/call", "tool/call", unknown, `"tool/call" (did you mean "tools/call"?)`},
		{"misspelled by the author", "tool/call", "", unknown, `"tool/call" (did you mean "tools/call"?)`},
		{"in another case", "Tools/Call", "", unknown, `"Tools/Call" (did you mean "tools/call"?)`},
		{"with a blank", "tools/call ", "", unknown, `"tools/call " (did you mean "tools/call"?)`},
		{"of a namespace of MCP", "tools/inventory_of_all", "", unknown, `"tools/inventory_of_all"`},
		{"a pattern in a misspelled namespace", "tool/*", "", unknown, `"tool/*" (did you mean "tools/*"?)`},
		{"a pattern after a namespace", "tools/cal*x", "", unknown, `"tools/cal*x"`},
		{"no event at all", "tools", "", known, ""}, // Idle, where an entry addresses it
	} {
		t.Run(c.name, func(t *testing.T) {
			var entries []Entry
			if c.policy != "" {
				entries = []Entry{{Interceptor: "v", Hooks: abi.On(abi.Request, c.policy), Source: "f:1"}}
			}
			policy, err := NewPolicy(entries)
			require.NoError(t, err)
			list := policy.Unmatched(listings([]*mock{host("h", validator("v", pass, hooks(abi.On(abi.Request, c.author))))}, nil))
			if c.reason == known {
				require.Empty(t, list)
				return
			}
			require.Len(t, list, 1, "the entry says for the author what it is about")
			require.Equal(t, c.reason, list[0].Reason)
			require.False(t, list[0].Pending)
			begins := `f:1: the entry for interceptor "v"`
			if c.policy == "" {
				begins = `interceptor "v" on host "h"`
			}
			require.Equal(t, begins+" has hooks for what is no event of MCP, "+c.events+": they match only where a peer has a method of that name", list[0].String())
		})
	}

	lists := func(hosts ...*mock) []Listing { return listings(hosts, nil) }
	misspelt := validator("v", pass, hooks(abi.On(abi.Request, "tool/call", abi.ToolsCall)))
	t.Run("without policy", func(t *testing.T) {
		list := (*Policy)(nil).Unmatched(lists(host("a", misspelt), host("b", validator("w", pass), misspelt)))
		require.Equal(t, []Unmatched{
			{Source: `interceptor "v" on host "a"`, Target: `"v" on host "a"`, Reason: UnknownEvent, Events: []string{"tool/call"}, Author: true},
			{Source: `interceptor "v" on host "b"`, Target: `"v" on host "b"`, Reason: UnknownEvent, Events: []string{"tool/call"}, Author: true},
		}, list)
	})
	t.Run("policy has the last word", func(t *testing.T) {
		off := false
		for name, e := range map[string]Entry{
			"narrowed": {Interceptor: "v", Hooks: abi.On(abi.Request, abi.ToolsCall)},
			"disabled": {Interceptor: "v", Enabled: &off},
		} {
			policy, err := NewPolicy([]Entry{e})
			require.NoError(t, err)
			require.Empty(t, policy.Unmatched(lists(host("a", misspelt))), name)
		}
	})
	t.Run("copies say it once", func(t *testing.T) {
		policy, err := NewPolicy([]Entry{{Interceptor: "v", As: "one"}, {Interceptor: "v", As: "two"}})
		require.NoError(t, err)
		require.Len(t, policy.Unmatched(lists(host("a", misspelt))), 1)
	})
	t.Run("a host that is down may know a custom event, not a misspelled one", func(t *testing.T) {
		for event, pending := range map[string]bool{"acme/deploy": true, "tool/call": false} {
			policy, err := NewPolicy([]Entry{{Interceptor: "v", Hooks: abi.On(abi.Request, event)}})
			require.NoError(t, err)
			down := &mock{Label: "dead", Down: errors.New("down")}
			list := policy.Unmatched(lists(host("a", validator("v", pass)), down))
			require.Len(t, list, 1)
			require.Equal(t, UnknownEvent, list[0].Reason)
			require.Equal(t, pending, list[0].Pending, event)
			list = policy.Unmatched(lists(down))
			require.Len(t, list, 1)
			require.Equal(t, pending, list[0].Pending, event)
			require.Equal(t, pending, list[0].Reason == Unlisted, "what is certain comes first")
		}
	})
	t.Run("a stranger's list costs and says little", func(t *testing.T) {
		var many []string
		for i := range 200_000 {
			many = append(many, "tools/x"+strconv.Itoa(i))
		}
		list := (*Policy)(nil).Unmatched(lists(host("a", validator("v", pass, hooks(abi.On(abi.Request, many...))))))
		require.Len(t, list, 1)
		require.Less(t, len(list[0].String()), 1000)
	})
}
