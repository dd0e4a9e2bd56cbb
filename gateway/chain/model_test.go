package chain

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/conformance/mockhost"
)

var (
	scenarioCount = flag.Int("chain.scenarios", 5000, "how many random scenarios TestModel runs")
	scenarioSeed  = flag.Uint64("chain.seed", 0, "the one seed that TestModel runs, 0 for all")
)

// TestModel runs random scenarios through the package and through a model of
// protocol.md §5 that is written apart, slowly and in one piece. Any seed that
// fails is printed and runs alone with -chain.seed.
func TestModel(t *testing.T) {
	if *scenarioSeed != 0 {
		compare(t, *scenarioSeed)
		return
	}
	seen := map[abi.Status]int{}
	for seed := range uint64(*scenarioCount) {
		seen[compare(t, seed+1)]++
		if t.Failed() {
			return
		}
	}
	t.Logf("outcomes: %v", seen)
	if *scenarioCount >= 5000 {
		for _, status := range []abi.Status{abi.StatusSuccess, abi.StatusValidationFailed, abi.StatusMutationFailed, abi.StatusInterceptorFailed, abi.StatusTimeout, abi.StatusDiscoveryFailed, abi.StatusCancelled} {
			require.Greater(t, seen[status], 20, "hardly any scenario ends as %s", status)
		}
	}
}

// story is one random scenario.
type story struct {
	hosts     []*actor
	entries   []Entry
	event     string
	phase     abi.Phase
	direction abi.Direction
	version   string
	deadline  time.Duration
	cancel    time.Duration // never for math.MaxInt64
}

type actor struct {
	name string
	down bool
	open bool
	cast []role
}

// role is a descriptor and a script.
type role struct {
	abi.Descriptor
	does  string        // good, or one of misbehaviours
	delay time.Duration // before it does so
}

// misbehaviours are what a role may do instead of what it is for. Those that its
// type does not know count as good.
var misbehaviours = []string{"reject", "warn", "info", "unknown", "valid error", "unmodified", "same bytes", "trap", "drop", "panic",
	"liar", "no object", "other type", "other phase", "other name", "hang", "deaf"}

const never = time.Duration(math.MaxInt64)

// compare runs the story of a seed both ways.
func compare(t *testing.T, seed uint64) (status abi.Status) {
	t.Helper()
	s := invent(rand.New(rand.NewPCG(seed, 2624)))
	synctest.Test(t, func(t *testing.T) {
		want := s.predict()
		got := s.perform(t)
		if want != got {
			t.Errorf("seed %d\nmodel:   %+v\npackage: %+v\n%s", seed, want, got, s)
		}
		status = got.status
	})
	return status
}

// ending is what both must agree on.
type ending struct {
	status  abi.Status
	final   string
	effects string
	calls   string
	aborted string
	took    time.Duration
	found   Summary
	sunk    string // name=effect of each sink as told afterwards, sorted
}

func invent(r *rand.Rand) *story {
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	chance := func(percent int) bool { return r.IntN(100) < percent }
	names := []string{"a", "B", "c", "é", "z"}
	someHooks := func() abi.Hooks {
		switch r.IntN(8) {
		case 0:
			return abi.On(abi.Request, "tools/*")
		case 1:
			return abi.On(abi.Response, "*")
		case 2:
			return abi.On(abi.Request, abi.ToolsCall, abi.PromptsGet)
		case 3:
			return abi.Hooks{}
		default:
			return abi.OnBoth("*")
		}
	}
	someHint := func() abi.PriorityHint {
		switch r.IntN(4) {
		case 0:
			return abi.Priority(int32(r.IntN(5) - 2))
		case 1:
			return abi.PhasePriority(ptr(int32(r.IntN(5)-2)), nil)
		case 2:
			return abi.PhasePriority(nil, ptr(int32(r.IntN(5)-2)))
		default:
			return abi.PriorityHint{}
		}
	}
	s := &story{event: pick(abi.ToolsCall, abi.ToolsCall, abi.PromptsGet, "acme/thing"), phase: abi.Phase(pick("request", "request", "response")), direction: abi.Direction(r.IntN(2)), version: pick("", "2025-11-25"), cancel: never}
	// No two moments of a story coincide: delays are multiples of 10 ms,
	// timeouts end in 3, the deadline in 5, and the requester leaves at a 7.
	s.deadline = time.Duration(r.IntN(12)*10+45) * time.Millisecond
	if chance(10) {
		s.cancel = time.Duration(r.IntN(6)*10+7) * time.Millisecond
	}
	for _, name := range []string{"h", "i", "j"}[:1+r.IntN(3)] {
		a := &actor{name: name, down: chance(4), open: chance(50)}
		for range r.IntN(5) {
			d := abi.Descriptor{Name: names[r.IntN(len(names))], Type: abi.Type(pick("validation", "validation", "mutation", "mutation", "sink")),
				Mode: abi.Active, Hooks: someHooks(), FailOpen: chance(35), PriorityHint: someHint()}
			switch {
			case chance(3):
				d.Type = "filter"
			case chance(20) && d.Type != abi.Sink, chance(3):
				d.Mode = abi.Audit
			}
			if chance(10) {
				d.Compat = &abi.Compat{MinProtocol: pick("2025-06-18", "2026-07-28")}
				if chance(30) {
					d.Compat.MaxProtocol = pick(d.Compat.MinProtocol, "2026-07-28")
				}
			}
			does := "good"
			if chance(45) {
				does = pick(misbehaviours...)
			}
			a.cast = append(a.cast, role{d, does, time.Duration(r.IntN(4)*10) * time.Millisecond})
		}
		s.hosts = append(s.hosts, a)
	}
	for range r.IntN(5) {
		e := Entry{Interceptor: pick(append(names, "*")...), Source: fmt.Sprint("entry ", len(s.entries))}
		if chance(30) {
			e.Host = pick("h", "i", "j")
		}
		if chance(20) {
			e.As = pick("x", "y", "z")
		}
		if chance(20) {
			e.Enabled = ptr(chance(50))
		}
		if chance(20) {
			e.Mode = ptr(abi.Mode(pick("active", "audit")))
		}
		if chance(25) {
			e.FailOpen = ptr(chance(50))
		}
		if chance(25) {
			e.PriorityHint = ptr(someHint())
		}
		if chance(25) {
			e.Timeout = ptr(time.Duration(r.IntN(4)*10+3) * time.Millisecond)
		}
		if chance(10) {
			e.Hooks = someHooks()
		}
		e.Required = chance(10)
		if chance(10) {
			e.Type = abi.Type(pick("validation", "mutation", "sink"))
		}
		if _, err := NewPolicy(append(slices.Clone(s.entries), e)); err == nil { // what is refused has tests of its own
			s.entries = append(s.entries, e)
		}
	}
	return s
}

func (s *story) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s %s, version %q, deadline %v, cancel %v\n", s.event, s.direction, s.phase, s.version, s.deadline, s.cancel)
	for _, h := range s.hosts {
		fmt.Fprintf(&b, "host %s down=%v open=%v\n", h.name, h.down, h.open)
		for _, c := range h.cast {
			fmt.Fprintf(&b, "  %s: %s after %v\n", c.AppendJSON(nil), c.does, c.delay)
		}
	}
	for _, e := range s.entries {
		text, _ := json.Marshal(e)
		fmt.Fprintf(&b, "%s\n", text)
	}
	return b.String()
}

// told is the payload of every story: good as params and as result of each event.
const told = `{"name":"t","content":[],"messages":[]}`

// perform plays the story with the package under test.
func (s *story) perform(t *testing.T) ending {
	var hosts []*mock
	for _, a := range s.hosts {
		m := &mock{Label: a.name, FailOpen: a.open}
		if a.down {
			m.Down = errors.New("down")
		}
		for _, c := range a.cast {
			m.Interceptors = append(m.Interceptors, interceptor{Descriptor: c.Descriptor, Does: c.script()})
		}
		hosts = append(hosts, m)
	}
	policy, err := NewPolicy(s.entries)
	require.NoError(t, err)
	plan := NewPlan(listings(hosts, nil), policy, s.event, s.phase, s.direction, s.version)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if s.cancel != never {
		defer time.AfterFunc(s.cancel, cancel).Stop()
	}
	var mu sync.Mutex
	var sunk []string
	sinks := NewSinks(SinkOptions{Observe: func(r SinkReport) {
		mu.Lock()
		defer mu.Unlock()
		sunk = append(sunk, r.Name+"="+string(r.Effect))
	}})
	start := time.Now()
	out := NewExecutor(Options{Sinks: sinks}).Execute(ctx, plan, Operation{Payload: json.RawMessage(told), Timeout: s.deadline})
	took := time.Since(start)
	require.NoError(t, sinks.Drain(t.Context()))
	time.Sleep(time.Hour) // until deaf ones have ended
	slices.Sort(sunk)
	return ending{out.Status, string(out.FinalPayload), effects(&out), allCalls(hosts), aborted(&out), took, out.Validation, strings.Join(sunk, " ")}
}

// script makes a behaviour of a role.
func (c *role) script() behaviour {
	good := map[abi.Type]behaviour{abi.Validation: pass, abi.Mutation: grow, abi.Sink: recorded}
	then := good[c.Type]
	verdicts := map[string]behaviour{"reject": reject, "warn": verdict(false, abi.SeverityWarn), "info": verdict(false, abi.SeverityInfo),
		"unknown": verdict(false, "fatal"), "valid error": verdict(true, abi.SeverityError)}
	mutations := map[string]behaviour{"unmodified": unmodified, "no object": replace(`[]`),
		"same bytes": func(_ context.Context, inv abi.Invocation) (abi.Result, error) {
			r := echo(abi.Mutation, inv)
			r.Modified, r.Payload = true, inv.Payload
			return r, nil
		}}
	if does := verdicts[c.does]; does != nil && c.Type == abi.Validation {
		then = does
	}
	if does := mutations[c.does]; does != nil && c.Type == abi.Mutation {
		then = does
	}
	switch c.does {
	case "trap":
		then = broken
	case "liar":
		then = twisted(grow, func(r *abi.Result) { r.Modified = false })
	case "other type":
		then = twisted(then, func(r *abi.Result) {
			r.Type = map[abi.Type]abi.Type{abi.Validation: abi.Sink, abi.Mutation: abi.Validation, abi.Sink: abi.Mutation}[r.Type]
		})
	case "other phase":
		then = twisted(then, func(r *abi.Result) {
			r.Phase = map[abi.Phase]abi.Phase{abi.Request: abi.Response, abi.Response: abi.Request}[r.Phase]
		})
	case "other name":
		then = twisted(then, func(r *abi.Result) { r.Interceptor += "x" })
	case "drop":
		then = mockhost.Drop
	case "panic":
		then = func(context.Context, abi.Invocation) (abi.Result, error) { panic("boom") }
	case "hang":
		return hangs
	case "deaf":
		return deaf(10*time.Minute, then)
	}
	return after(c.delay, then)
}

// grow is tag for payloads of either phase.
func grow(_ context.Context, inv abi.Invocation) (abi.Result, error) {
	r := echo(abi.Mutation, inv)
	r.Modified = true
	r.Payload = json.RawMessage(strings.Replace(string(inv.Payload), `","content"`, "+"+inv.Name+`","content"`, 1))
	return r, nil
}

// part is a step as the model sees it.
type part struct {
	role
	shown, host     string
	place           int
	mode            abi.Mode
	failOpen        bool
	priority        int32
	timeout         time.Duration
	refused         bool
	chosen          bool // in the plan
	compatible, out bool // out: disabled
}

// predict says how the story ends by protocol.md §5 and config.md, read from
// top to bottom.
func (s *story) predict() ending {
	var parts []part
	var blocked string
	for place, h := range s.hosts {
		if h.down {
			if !h.open && blocked == "" {
				blocked = ":not_listed"
			}
			continue
		}
		var names []string
		for _, c := range h.cast {
			if c.Type == "filter" || c.Type == abi.Sink && c.Mode == abi.Audit || slices.Contains(names, c.Name) {
				continue
			}
			names = append(names, c.Name)
			copied, original := false, false
			for _, e := range s.entries {
				if e.Interceptor == c.Name && (e.Host == "" || e.Host == h.name) {
					if e.As == "" {
						original = true
					} else {
						copied = true
						parts = append(parts, s.settle(c, e.As, h.name, place, func(rank int, o Entry) bool {
							return rank == 0 && o.As == e.As || rank == 2 && isStar(o, h.name) || rank == 3 && isStar(o, "")
						}))
					}
				}
			}
			if !copied || original {
				parts = append(parts, s.settle(c, c.Name, h.name, place, func(rank int, o Entry) bool {
					return o.As == "" && (rank == 0 && o.Interceptor == c.Name && o.Host == h.name || rank == 1 && o.Interceptor == c.Name && o.Host == "" ||
						rank == 2 && isStar(o, h.name) || rank == 3 && isStar(o, ""))
				}))
			}
		}
	}
	if blocked == "" {
		blocked = s.unmet(parts)
	}
	if blocked != "" {
		return ending{status: abi.StatusDiscoveryFailed, aborted: blocked}
	}
	parts = slices.DeleteFunc(parts, func(p part) bool { return !p.chosen })
	return s.play(parts)
}

func isStar(e Entry, host string) bool { return e.Interceptor == "*" && e.As == "" && e.Host == host }

// settle looks every member up, rank by rank.
func (s *story) settle(c role, shown, host string, place int, at func(rank int, e Entry) bool) part {
	find := func(ranks []int, has func(Entry) bool) *Entry {
		for _, rank := range ranks {
			for i := range s.entries {
				if e := s.entries[i]; at(rank, e) && has(e) {
					return &s.entries[i]
				}
			}
		}
		return nil
	}
	all := []int{0, 1, 2, 3}
	p := part{role: c, shown: shown, host: host, place: place, mode: c.Mode, failOpen: c.FailOpen, priority: c.PriorityHint.For(s.phase)}
	ofMode := all
	if c.Type == abi.Sink {
		ofMode = all[:2]
	}
	if e := find(ofMode, func(e Entry) bool { return e.Mode != nil }); e != nil {
		p.mode = *e.Mode
		p.refused = p.refused || c.Type == abi.Sink && p.mode == abi.Audit
	}
	if e := find(all, func(e Entry) bool { return e.FailOpen != nil }); e != nil {
		p.failOpen = *e.FailOpen
	}
	if e := find(all, func(e Entry) bool { return e.PriorityHint != nil && e.PriorityHint.IsSet() }); e != nil {
		p.priority = e.PriorityHint.For(s.phase)
	}
	if e := find(all, func(e Entry) bool { return e.Timeout != nil }); e != nil {
		p.timeout = *e.Timeout
	}
	if e := find(all, func(e Entry) bool { return e.Type != "" }); e != nil && e.Type != c.Type {
		p.refused = true
	}
	if e := find(all, func(e Entry) bool { return e.Enabled != nil }); e != nil {
		p.out = !*e.Enabled
	}
	for _, e := range s.entries {
		if shown == c.Name && e.As == shown {
			p.refused = true // its name is a copy's
		}
	}
	narrow := find(all, func(e Entry) bool { return e.Hooks != nil })
	if narrow != nil && !narrow.Hooks.Within(c.Hooks) {
		p.refused = true
	}
	p.compatible = c.Compat == nil || s.version == "" ||
		s.version >= c.Compat.MinProtocol && (c.Compat.MaxProtocol == "" || s.version <= c.Compat.MaxProtocol)
	p.chosen = c.Hooks.Match(s.event, s.phase) && p.compatible && !p.out &&
		(p.refused || narrow == nil || narrow.Hooks.Match(s.event, s.phase))
	return p
}

// unmet finds the first requirement that is not met.
func (s *story) unmet(parts []part) string {
	for _, e := range s.entries {
		if !e.Required || e.Hooks != nil && !e.Hooks.Match(s.event, s.phase) {
			continue
		}
		name := e.Interceptor
		if e.As != "" {
			name = e.As
		}
		found := false
		for _, h := range s.hosts {
			if h.down || e.Host != "" && e.Host != h.name {
				continue
			}
			i := slices.IndexFunc(h.cast, func(c role) bool { return c.Name == e.Interceptor })
			if i < 0 {
				continue
			}
			found = true
			if first := h.cast[i]; first.Type == "filter" || first.Type == abi.Sink && first.Mode == abi.Audit {
				return name + ":malformed"
			}
			for _, p := range parts {
				switch {
				case p.host != h.name || p.shown != name || p.Name != e.Interceptor:
				case p.refused:
					return name + ":refused"
				case p.out:
					return name + ":disabled"
				case !p.compatible:
					return name + ":compat"
				}
			}
		}
		if !found {
			return name + ":missing"
		}
	}
	return ""
}

// play runs the passes on a clock of its own.
func (s *story) play(parts []part) ending {
	clock := time.Duration(0)
	payload := told
	end := ending{status: abi.StatusSuccess}
	var effects, calls, sunk []string
	block := func(p part, status abi.Status, reason string) {
		if end.status == abi.StatusSuccess {
			end.status, end.aborted = status, p.shown+":"+reason
		}
	}
	// one runs one interceptor from the present on, and gives how and when it
	// ended: "" for an answer, else the reason of the failure.
	one := func(p part) (reason string, at time.Duration) {
		if clock >= s.deadline {
			return "timeout", clock
		}
		if p.refused {
			return "unavailable", clock
		}
		calls = append(calls, p.host+"/"+p.Name)
		until := min(s.deadline, s.cancel)
		if p.timeout > 0 {
			until = min(until, clock+p.timeout)
		}
		if p.does == "hang" || p.does == "deaf" || clock+p.delay > until {
			if until == s.cancel {
				return "cancelled", until
			}
			return "timeout", until
		}
		switch at = clock + p.delay; p.does {
		case "trap":
			return "trap", at
		case "panic", "drop":
			return "unavailable", at
		case "liar", "other type", "other phase", "other name":
			return "bad_output", at
		case "no object":
			if p.Type == abi.Mutation {
				return "bad_output", at
			}
		}
		return "", at
	}
	failure := func(p part, reason string, at time.Duration) string {
		switch {
		case at >= s.cancel:
			return "cancelled"
		case p.mode == abi.Audit:
			return "audited"
		case p.failOpen:
			return "ignored"
		case reason == "timeout":
			block(p, abi.StatusTimeout, reason)
		case p.Type == abi.Mutation:
			block(p, abi.StatusMutationFailed, reason)
		default:
			block(p, abi.StatusInterceptorFailed, reason)
		}
		return "blocked"
	}
	gone := func() bool {
		if end.status == abi.StatusSuccess && clock >= s.cancel && s.cancel < s.deadline {
			end.status = abi.StatusCancelled
		}
		return end.status != abi.StatusSuccess
	}
	mutations := func() {
		for _, p := range inOrder(parts, abi.Mutation) {
			if gone() {
				return
			}
			reason, at := one(p)
			clock = at
			effect := "applied"
			switch {
			case reason != "":
				effect = failure(p, reason, at)
			case p.does == "unmodified":
				effect = "passed"
			case p.mode == abi.Audit:
				effect = "audited"
			case p.does == "same bytes":
			default:
				payload = strings.Replace(payload, `","content"`, "+"+p.Name+`","content"`, 1)
			}
			effects = append(effects, p.shown+"="+effect)
		}
		gone()
	}
	validations := func() {
		if gone() {
			return
		}
		wave := inOrder(parts, abi.Validation)
		reasons, latest := make([]string, len(wave)), clock
		for i, p := range wave {
			var at time.Duration
			reasons[i], at = one(p)
			latest = max(latest, at)
		}
		clock = latest
		stopped := gone()
		for i, p := range wave {
			effect := "passed"
			if reasons[i] == "" {
				switch p.does {
				case "reject", "unknown":
					end.found.Errors++
				case "warn":
					end.found.Warnings++
				case "info":
					end.found.Infos++
				}
			}
			switch {
			case stopped && reasons[i] != "":
				effect = "cancelled"
			case reasons[i] != "":
				effect = failure(p, reasons[i], clock)
			case p.does != "reject" && p.does != "unknown":
			case p.mode == abi.Audit:
				effect = "audited"
			default:
				effect = "blocked"
				block(p, abi.StatusValidationFailed, "rejected")
			}
			effects = append(effects, p.shown+"="+effect)
		}
	}
	sinks := func() {
		if gone() {
			return
		}
		for _, p := range inOrder(parts, abi.Sink) {
			if p.refused {
				effects = append(effects, p.shown+"=lost")
				sunk = append(sunk, p.shown+"=lost")
				continue
			}
			effects = append(effects, p.shown+"=started")
			calls = append(calls, p.host+"/"+p.Name)
			limit := p.timeout
			if limit == 0 {
				limit = 30 * time.Second
			}
			switch p.does {
			case "trap", "drop", "panic", "liar", "other type", "other phase", "other name", "hang", "deaf":
				sunk = append(sunk, p.shown+"=lost")
			default:
				if p.delay > limit {
					sunk = append(sunk, p.shown+"=lost")
				} else {
					sunk = append(sunk, p.shown+"=recorded")
				}
			}
		}
	}
	if s.direction == abi.Sending {
		mutations()
		validations()
		sinks()
	} else {
		validations()
		sinks()
		mutations()
	}
	end.took = clock
	end.effects = strings.Join(effects, " ")
	if end.status == abi.StatusSuccess {
		end.final = payload
	} else {
		end.effects = strings.ReplaceAll(end.effects, "=applied", "=discarded")
	}
	slices.Sort(sunk)
	end.sunk = strings.Join(sunk, " ")
	slices.Sort(calls)
	for i := 0; i < len(calls); {
		n := 1
		for i+n < len(calls) && calls[i+n] == calls[i] {
			n++
		}
		if n > 1 {
			calls[i] = fmt.Sprintf("%s*%d", calls[i], n)
		}
		calls = slices.Delete(calls, i+1, i+n)
		i++
	}
	end.calls = strings.Join(calls, " ")
	return end
}

// inOrder takes the first that is left, again and again.
func inOrder(parts []part, typ abi.Type) (order []part) {
	var rest []part
	for _, p := range parts {
		if p.Type == typ {
			rest = append(rest, p)
		}
	}
	before := func(a, b part) bool {
		if typ == abi.Mutation && a.priority != b.priority {
			return a.priority < b.priority
		}
		if a.shown != b.shown {
			return slices.Compare([]rune(a.shown), []rune(b.shown)) < 0
		}
		if a.place != b.place {
			return a.place < b.place
		}
		// A copy, and what its host lists under the copy's name and is refused:
		// protocol.md knows no such pair, so the host's own names decide.
		return a.Name < b.Name
	}
	for len(rest) > 0 {
		first := 0
		for i := range rest {
			if before(rest[i], rest[first]) {
				first = i
			}
		}
		order = append(order, rest[first])
		rest = slices.Delete(rest, first, first+1)
	}
	return order
}

// TestPlanIgnoresTheOrderOfLists: a plan says the same, down to what was left
// out, in whatever order hosts list what they have.
func TestPlanIgnoresTheOrderOfLists(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 2625))
		s := invent(r)
		policy, err := NewPolicy(s.entries)
		require.NoError(t, err)
		var hosts []*mock
		for _, a := range s.hosts {
			m := host(a.name)
			for i, c := range a.cast {
				if !slices.ContainsFunc(a.cast[:i], func(o role) bool { return o.Name == c.Name }) { // of duplicates the first counts
					m.Interceptors = append(m.Interceptors, interceptor{Descriptor: c.Descriptor})
				}
			}
			hosts = append(hosts, m)
		}
		want := ""
		for range 4 {
			arrange := func(ds []abi.Descriptor) {
				r.Shuffle(len(ds), func(i, j int) { ds[i], ds[j] = ds[j], ds[i] })
			}
			plan := NewPlan(listings(hosts, arrange), policy, abi.ToolsCall, s.phase, s.direction, s.version)
			got := string(plan.AppendJSON(nil))
			if want == "" {
				want = got
			}
			require.Equal(t, want, got, "seed %d\n%s", seed, s)
		}
	}
}
