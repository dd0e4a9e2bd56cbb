package chain

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
)

// scenario is one row: hosts and what they do, and what must come of it.
type scenario struct {
	name      string
	hosts     func() []*mock
	policy    []Entry
	event     string // tools/call when empty
	phase     abi.Phase
	direction abi.Direction
	version   string
	payload   string // {"name":"t"} when empty
	timeout   time.Duration
	cancel    time.Duration // when the requester leaves

	status  abi.Status
	final   string // {"name":"t"} when empty and released
	effects string // name=effect of each result, in plan order
	calls   string // host/name of each call, sorted
	aborted string // name:reason
	took    time.Duration
}

func (sc *scenario) run(t *testing.T, arrange func([]abi.Descriptor)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		policy, err := NewPolicy(sc.policy)
		require.NoError(t, err)
		hosts := sc.hosts()
		event, phase, payload := sc.event, sc.phase, sc.payload
		if event == "" {
			event = abi.ToolsCall
		}
		if phase == "" {
			phase = abi.Request
		}
		if payload == "" {
			payload = `{"name":"t"}`
		}
		plan := NewPlan(listings(hosts, arrange), policy, event, phase, sc.direction, sc.version)
		sinks := NewSinks(SinkOptions{})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if sc.cancel > 0 {
			defer time.AfterFunc(sc.cancel, cancel).Stop()
		}
		start := time.Now()
		out := NewExecutor(Options{Sinks: sinks}).Execute(ctx, plan, Operation{
			Payload: json.RawMessage(payload), Arrived: start, Timeout: sc.timeout,
		})
		require.Equal(t, sc.took, time.Since(start), "time taken")
		require.Equal(t, sc.took, out.TotalDuration)
		require.NoError(t, sinks.Drain(t.Context()))

		require.Equal(t, sc.status, out.Status)
		require.Equal(t, sc.effects, effects(&out))
		require.Equal(t, sc.calls, allCalls(hosts), "calls")
		require.Equal(t, sc.aborted, aborted(&out))
		if !out.Released() {
			require.Nil(t, out.FinalPayload, "nothing is released")
			require.False(t, out.Modified)
			return
		}
		final := sc.final
		if final == "" {
			final = payload
		}
		require.Equal(t, final, string(out.FinalPayload))
		require.Equal(t, final != payload, out.Modified)
	})
}

func effects(o *Outcome) string {
	var parts []string
	for _, r := range o.Results {
		parts = append(parts, r.Name+"="+string(r.Effect))
	}
	return strings.Join(parts, " ")
}

func aborted(o *Outcome) string {
	if o.Aborted == nil {
		return ""
	}
	return o.Aborted.Interceptor + ":" + o.Aborted.Reason
}

// arrangements are orders in which a host may list what it has. None of them
// may change anything.
var arrangements = map[string]func([]abi.Descriptor){
	"as listed": nil,
	"reversed":  func(ds []abi.Descriptor) { slices.Reverse(ds) },
	"shuffled": func(ds []abi.Descriptor) {
		rand.New(rand.NewPCG(1, 2)).Shuffle(len(ds), func(i, j int) { ds[i], ds[j] = ds[j], ds[i] })
	},
	"rotated": func(ds []abi.Descriptor) {
		if len(ds) > 1 {
			first := ds[0]
			copy(ds, ds[1:])
			ds[len(ds)-1] = first
		}
	},
}

func runAll(t *testing.T, scenarios []scenario) {
	t.Helper()
	for _, sc := range scenarios {
		t.Run(sc.name, func(t *testing.T) {
			for name, arrange := range arrangements {
				t.Run(name, func(t *testing.T) { sc.run(t, arrange) })
			}
		})
	}
}

// one is a single host with the given interceptors.
func one(list ...interceptor) func() []*mock {
	return func() []*mock { return []*mock{host("h", list...)} }
}

const second = time.Second

// TestConformance is protocol.md §7, case by case.
func TestConformance(t *testing.T) {
	down := func(open bool) *mock { return &mock{name: "down", err: context.DeadlineExceeded, open: open} }
	runAll(t, []scenario{
		{name: "C1_active_fail_closed_validator_fails", hosts: one(validator("v", broken)),
			status: abi.StatusInterceptorFailed, effects: "v=blocked", calls: "h/v", aborted: "v:trap"},
		{name: "C2_fail_open_validator_fails", hosts: one(validator("v", broken, failOpen)),
			status: abi.StatusSuccess, effects: "v=ignored", calls: "h/v"},
		{name: "C3_audit_validator_fails", hosts: one(validator("v", broken, audit)),
			status: abi.StatusSuccess, effects: "v=audited", calls: "h/v"},
		{name: "C3_audit_validator_fails_fail_open", hosts: one(validator("v", broken, audit, failOpen)),
			status: abi.StatusSuccess, effects: "v=audited", calls: "h/v"},
		{name: "C4_rejection_despite_fail_open", hosts: one(validator("v", reject, failOpen)),
			status: abi.StatusValidationFailed, effects: "v=blocked", calls: "h/v", aborted: "v:rejected"},
		{name: "C5_warn_is_no_block", hosts: one(validator("v", verdict(false, abi.SeverityWarn))),
			status: abi.StatusSuccess, effects: "v=passed", calls: "h/v"},
		{name: "C5_info_is_no_block", hosts: one(validator("v", verdict(false, abi.SeverityInfo))),
			status: abi.StatusSuccess, effects: "v=passed", calls: "h/v"},
		{name: "C6_audit_rejection", hosts: one(validator("v", reject, audit)),
			status: abi.StatusSuccess, effects: "v=audited", calls: "h/v"},
		{name: "C6_audit_rejection_by_policy", hosts: one(validator("v", reject)),
			policy: []Entry{{Interceptor: "v", Mode: ptr(abi.Audit)}},
			status: abi.StatusSuccess, effects: "v=audited", calls: "h/v"},
		{name: "C7_severity_omitted", hosts: one(validator("v", verdict(false, ""))),
			status: abi.StatusValidationFailed, effects: "v=blocked", calls: "h/v", aborted: "v:rejected"},
		{name: "C8_valid_with_severity_error", hosts: one(validator("v", verdict(true, abi.SeverityError))),
			status: abi.StatusSuccess, effects: "v=passed", calls: "h/v"},
		{name: "C9_unknown_severity", hosts: one(validator("v", verdict(false, "critical"))),
			status: abi.StatusValidationFailed, effects: "v=blocked", calls: "h/v", aborted: "v:rejected"},
		{name: "C10_second_of_three_mutators_fails", hosts: one(mutator("a", tag), mutator("b", broken), mutator("c", tag)),
			status: abi.StatusMutationFailed, effects: "a=discarded b=blocked", calls: "h/a h/b", aborted: "b:trap"},
		{name: "C11_fail_open_mutator_fails_mid_pass", hosts: one(mutator("a", tag), mutator("b", broken, failOpen), mutator("c", tag)),
			status: abi.StatusSuccess, effects: "a=applied b=ignored c=applied", calls: "h/a h/b h/c", final: `{"name":"t+a+c"}`},
		{name: "C12_audit_mutation_is_not_seen", hosts: one(mutator("a", tag, audit), mutator("b", tag)),
			status: abi.StatusSuccess, effects: "a=audited b=applied", calls: "h/a h/b", final: `{"name":"t+b"}`},
		{name: "C13_unmodified_with_another_payload", hosts: one(mutator("a", twisted(tag, func(r *abi.Result) { r.Modified = false }))),
			status: abi.StatusMutationFailed, effects: "a=blocked", calls: "h/a", aborted: "a:bad_output"},
		{name: "C13_fail_open", hosts: one(mutator("a", twisted(tag, func(r *abi.Result) { r.Modified = false }), failOpen), mutator("b", tag)),
			status: abi.StatusSuccess, effects: "a=ignored b=applied", calls: "h/a h/b", final: `{"name":"t+b"}`},
		{name: "C14_echo_of_another_name", hosts: one(mutator("a", twisted(tag, func(r *abi.Result) { r.Interceptor = "b" }))),
			status: abi.StatusMutationFailed, effects: "a=blocked", calls: "h/a", aborted: "a:bad_output"},
		{name: "C14_echo_of_another_phase", hosts: one(mutator("a", twisted(tag, func(r *abi.Result) { r.Phase = abi.Response }), failOpen)),
			status: abi.StatusSuccess, effects: "a=ignored", calls: "h/a"},
		{name: "C14_echo_of_another_name_validator", hosts: one(validator("v", twisted(pass, func(r *abi.Result) { r.Interceptor = "V" }))),
			status: abi.StatusInterceptorFailed, effects: "v=blocked", calls: "h/v", aborted: "v:bad_output"},
		{name: "C15_cancelled_audit_validation", hosts: one(validator("v", fails(abi.ReasonCancelled), audit), validator("w", pass)),
			status: abi.StatusSuccess, effects: "v=audited w=passed", calls: "h/v h/w"},
		{name: "C15_audit_validation_cancelled_by_the_deadline", hosts: one(validator("v", hangs, audit)),
			timeout: second, took: second,
			status: abi.StatusSuccess, effects: "v=audited", calls: "h/v"},
		{name: "C16_deadline_before_a_fail_closed_mutator", hosts: one(mutator("a", tag), mutator("b", hangs, failOpen), mutator("c", tag)),
			timeout: second, took: second,
			status: abi.StatusTimeout, effects: "a=discarded b=ignored c=blocked", calls: "h/a h/b", aborted: "c:timeout"},
		{name: "C17_scalar_value_order", hosts: one(mutator("a", tag), mutator("B", tag), mutator("\uffee", tag), mutator("\U00010000", tag)),
			status: abi.StatusSuccess, effects: "B=applied a=applied \uffee=applied \U00010000=applied",
			calls: "h/B h/a h/\uffee h/\U00010000", final: "{\"name\":\"t+B+a+\uffee+\U00010000\"}"},
		{name: "C18_widening_override", hosts: one(validator("v", pass, hooks(abi.On(abi.Request, abi.ToolsCall)))),
			policy: []Entry{{Interceptor: "v", Hooks: abi.OnBoth(abi.ToolsCall), Source: "weir.yaml:3"}},
			status: abi.StatusInterceptorFailed, effects: "v=blocked", aborted: "v:unavailable"},
		{name: "C18_widening_override_fail_open", hosts: one(validator("v", pass, hooks(abi.On(abi.Request, abi.ToolsCall)), failOpen)),
			policy: []Entry{{Interceptor: "v", Hooks: abi.On(abi.Request, abi.PromptsGet), Source: "weir.yaml:3"}},
			status: abi.StatusSuccess, effects: "v=ignored"},
		{name: "C19_sending_mutation_block", hosts: one(mutator("m", broken), validator("v", pass), validator("w", pass, audit), sink("s", recorded)),
			status: abi.StatusMutationFailed, effects: "m=blocked", calls: "h/m", aborted: "m:trap"},
		{name: "C20_receiving_validation_block", hosts: one(mutator("m", tag), validator("v", reject), sink("s", recorded)),
			direction: abi.Receiving,
			status:    abi.StatusValidationFailed, effects: "v=blocked", calls: "h/v", aborted: "v:rejected"},
		{name: "C21_no_hooks", hosts: one(validator("v", reject, hooks(abi.Hooks{}))),
			status: abi.StatusSuccess},
		{name: "C22_one_of_two_validators_blocks", hosts: one(validator("v", reject), validator("w", after(second, pass))), took: second,
			status: abi.StatusValidationFailed, effects: "v=blocked w=passed", calls: "h/v h/w", aborted: "v:rejected"},
		{name: "C23_narrowed_by_policy", hosts: one(validator("v", reject)),
			policy: []Entry{{Interceptor: "v", Hooks: abi.On(abi.Request, abi.PromptsGet)}},
			status: abi.StatusSuccess},
		{name: "C23_disabled_by_policy", hosts: one(validator("v", reject), validator("w", pass)),
			policy: []Entry{{Interceptor: "v", Enabled: ptr(false)}},
			status: abi.StatusSuccess, effects: "w=passed", calls: "h/w"},
		{name: "C24_min_protocol_above_the_negotiated", hosts: one(validator("v", reject, compat("2026-07-28", ""))), version: "2025-11-25",
			status: abi.StatusSuccess},
		{name: "C24_max_protocol_below_the_negotiated", hosts: one(validator("v", reject, compat("2025-03-26", "2025-06-18"))), version: "2025-11-25",
			status: abi.StatusSuccess},
		{name: "C24_unknown_version_excludes_nothing", hosts: one(validator("v", reject, compat("2026-07-28", ""))),
			status: abi.StatusValidationFailed, effects: "v=blocked", calls: "h/v", aborted: "v:rejected"},
		{name: "C25_required_on_a_dead_host", hosts: func() []*mock { return []*mock{host("h", mutator("m", tag)), down(true)} },
			policy: []Entry{{Interceptor: "guard", Required: true}},
			status: abi.StatusDiscoveryFailed, aborted: "guard:missing"},
		{name: "C25_dead_host", hosts: func() []*mock { return []*mock{host("h", mutator("m", tag)), down(false)} },
			status: abi.StatusDiscoveryFailed, aborted: ":not_listed"},
		{name: "C25_dead_host_that_may_fail_open", hosts: func() []*mock { return []*mock{host("h", mutator("m", tag)), down(true)} },
			status: abi.StatusSuccess, effects: "m=applied", calls: "h/m", final: `{"name":"t+m"}`},
		{name: "C26_unknown_type_or_mode", hosts: one(validator("v", pass),
			interceptor{abi.Descriptor{Name: "x", Type: "filter", Hooks: abi.OnBoth("*")}, broken},
			interceptor{abi.Descriptor{Name: "y", Type: abi.Validation, Mode: "strict", Hooks: abi.OnBoth("*")}, broken},
			interceptor{abi.Descriptor{Name: "z", Type: abi.Sink, Mode: abi.Audit, Hooks: abi.OnBoth("*")}, broken}),
			status: abi.StatusSuccess, effects: "v=passed", calls: "h/v"},
		{name: "C27_connection_drops", hosts: one(validator("v", dropped)),
			status: abi.StatusInterceptorFailed, effects: "v=blocked", calls: "h/v", aborted: "v:unavailable"},
		{name: "C27_connection_drops_fail_open", hosts: one(mutator("m", dropped, failOpen), validator("v", dropped, failOpen)),
			status: abi.StatusSuccess, effects: "m=ignored v=ignored", calls: "h/m h/v"},

		{name: "csharp_one_pass_over_two_servers", hosts: func() []*mock {
			return []*mock{host("one", mutator("late", tag, priority(1000))), host("two", mutator("early", tag, priority(-1000)))}
		}, status: abi.StatusSuccess, effects: "early=applied late=applied", calls: "one/late two/early", final: `{"name":"t+early+late"}`},
		{name: "csharp_duplicate_names_once_per_host", hosts: func() []*mock {
			return []*mock{host("one", validator("v", pass)), host("two", validator("v", pass))}
		}, status: abi.StatusSuccess, effects: "v=passed v=passed", calls: "one/v two/v"},
		{name: "csharp_sinks_once_for_the_merged_chain", hosts: func() []*mock {
			return []*mock{host("one", sink("s", recorded), mutator("m", tag)), host("two", mutator("n", tag))}
		}, status: abi.StatusSuccess, effects: "m=applied n=applied s=started", calls: "one/m one/s two/n", final: `{"name":"t+m+n"}`},
	})
}

// TestChainCases is the Chain table of field-cases.md, as far as it needs no
// network.
func TestChainCases(t *testing.T) {
	const secret, redacted = `{"name":"secret"}`, `{"name":"***"}`
	guard := func(_ context.Context, inv abi.Invocation) (abi.Result, error) {
		r := echo(abi.Validation, inv)
		r.Valid = !strings.Contains(string(inv.Payload), "secret")
		return r, nil
	}
	pair := one(mutator("redactor", replace(redacted)), validator("guard", guard))
	rows := []scenario{
		{name: "redactor_and_guard_agree", hosts: pair, payload: secret,
			status: abi.StatusSuccess, effects: "redactor=applied guard=passed", calls: "h/guard h/redactor", final: redacted},
		{name: "receiving_side_order", hosts: pair, payload: secret, direction: abi.Receiving,
			status: abi.StatusValidationFailed, effects: "guard=blocked", calls: "h/guard", aborted: "guard:rejected"},
		{name: "server2_before_server1", hosts: func() []*mock {
			return []*mock{host("host1", mutator("a", tag, priority(1000))), host("host2", mutator("z", tag, priority(-1000)))}
		}, status: abi.StatusSuccess, effects: "z=applied a=applied", calls: "host1/a host2/z", final: `{"name":"t+z+a"}`},
		{name: "mixed_hints", hosts: one(
			mutator("request5", tag, hint(abi.PhasePriority(ptr[int32](5), nil))), mutator("scalar", tag, priority(-10)),
			mutator("response", tag, hint(abi.PhasePriority(nil, ptr[int32](-7)))), mutator("none", tag)),
			status: abi.StatusSuccess, effects: "scalar=applied none=applied response=applied request5=applied",
			calls: "h/none h/request5 h/response h/scalar", final: `{"name":"t+scalar+none+response+request5"}`},
		{name: "same_name_two_hosts", hosts: func() []*mock {
			return []*mock{
				host("second", mutator("m", replace(`{"name":"by second"}`))),
				host("first", mutator("m", tag)),
			}
		}, status: abi.StatusSuccess, effects: "m=applied m=applied", calls: "first/m second/m", final: `{"name":"by second+m"}`},
		{name: "verdict_without_messages", hosts: one(validator("v", reject)),
			status: abi.StatusValidationFailed, effects: "v=blocked", calls: "h/v", aborted: "v:rejected"},
		{name: "warn_with_error_message", hosts: one(validator("v", verdict(false, abi.SeverityWarn, abi.Message{Message: "m", Severity: abi.SeverityError}))),
			status: abi.StatusSuccess, effects: "v=passed", calls: "h/v"},
		{name: "all_verdicts_kept", hosts: one(validator("a", reject), validator("b", after(50*time.Millisecond, reject)), validator("c", after(50*time.Millisecond, pass))),
			took:   50 * time.Millisecond,
			status: abi.StatusValidationFailed, effects: "a=blocked b=blocked c=passed", calls: "h/a h/b h/c", aborted: "a:rejected"},
		{name: "fail_open_and_deadline", hosts: one(mutator("m", hangs, failOpen), validator("v", hangs, failOpen)),
			timeout: second, took: second,
			status: abi.StatusSuccess, effects: "m=ignored v=ignored", calls: "h/m"},
		{name: "timeout_is_named_validator", hosts: one(validator("v", hangs)), timeout: second, took: second,
			status: abi.StatusTimeout, effects: "v=blocked", calls: "h/v", aborted: "v:timeout"},
		{name: "timeout_is_named_mutator", hosts: one(mutator("m", hangs)), timeout: second, took: second,
			status: abi.StatusTimeout, effects: "m=blocked", calls: "h/m", aborted: "m:timeout"},
		{name: "timeout_is_named_mutator_receiving", hosts: one(mutator("m", hangs), validator("v", pass), sink("s", recorded)),
			direction: abi.Receiving, timeout: second, took: second,
			status: abi.StatusTimeout, effects: "v=passed s=started m=blocked", calls: "h/m h/s h/v", aborted: "m:timeout"},
		{name: "slow_sink", hosts: one(validator("v", pass), sink("fails", broken), sink("never", hangs), sink("slow", after(10*second, recorded))),
			status: abi.StatusSuccess, effects: "v=passed fails=started never=started slow=started", calls: "h/fails h/never h/slow h/v"},
		{name: "slow_sink_receiving", hosts: one(mutator("m", tag), sink("slow", after(10*second, recorded))), direction: abi.Receiving,
			status: abi.StatusSuccess, effects: "slow=started m=applied", calls: "h/m h/slow", final: `{"name":"t+m"}`},
	}
	for name, payload := range map[string]string{"null": "null", "absent": "", "number": "7", "no_name": "{}", "string": `"x"`,
		"name_is_a_number": `{"name":1}`, "arguments_is_a_list": `{"name":"t","arguments":[]}`, "duplicates": `{"name":"a","name":"b"}`, "not_json": `{"name":`} {
		rows = append(rows,
			scenario{name: "modified_without_payload_" + name, hosts: one(mutator("m", replace(payload)), mutator("n", tag)),
				status: abi.StatusMutationFailed, effects: "m=blocked", calls: "h/m", aborted: "m:bad_output"},
			scenario{name: "modified_without_payload_" + name + "_fail_open", hosts: one(mutator("m", replace(payload), failOpen), mutator("n", tag)),
				status: abi.StatusSuccess, effects: "m=ignored n=applied", calls: "h/m h/n", final: `{"name":"t+n"}`},
			scenario{name: "modified_without_payload_" + name + "_audit", hosts: one(mutator("m", replace(payload), audit), mutator("n", tag)),
				status: abi.StatusSuccess, effects: "m=audited n=applied", calls: "h/m h/n", final: `{"name":"t+n"}`})
	}
	answers := map[abi.Type]behaviour{abi.Validation: pass, abi.Mutation: tag, abi.Sink: recorded}
	makers := map[abi.Type]func(string, behaviour, ...option) interceptor{abi.Validation: validator, abi.Mutation: mutator}
	blocked := map[abi.Type]abi.Status{abi.Validation: abi.StatusInterceptorFailed, abi.Mutation: abi.StatusMutationFailed}
	for typ, maker := range makers {
		for other, does := range answers {
			if other == typ {
				continue
			}
			name := "wrong_type_result_" + string(typ) + "_as_" + string(other)
			rows = append(rows,
				scenario{name: name, hosts: one(maker("i", does)), status: blocked[typ], effects: "i=blocked", calls: "h/i", aborted: "i:bad_output"},
				scenario{name: name + "_fail_open", hosts: one(maker("i", does, failOpen)), status: abi.StatusSuccess, effects: "i=ignored", calls: "h/i"},
				scenario{name: name + "_audit", hosts: one(maker("i", does, audit)), status: abi.StatusSuccess, effects: "i=audited", calls: "h/i"})
		}
	}
	for other, does := range answers {
		if other != abi.Sink {
			rows = append(rows, scenario{name: "wrong_type_result_sink_as_" + string(other), hosts: one(sink("i", does)),
				status: abi.StatusSuccess, effects: "i=started", calls: "h/i"})
		}
	}
	runAll(t, rows)
}

// TestSameNameTwoHostsIsStable is the "1,000 runs the same" of field-cases.md.
func TestSameNameTwoHostsIsStable(t *testing.T) {
	hosts := []*mock{host("second", mutator("m", tag)), host("first", mutator("m", tag))}
	for range 1000 {
		plan := NewPlan(listings(hosts, nil), nil, abi.ToolsCall, abi.Request, abi.Sending, "")
		require.Equal(t, "second", plan.steps[0].Host)
		require.Equal(t, "first", plan.steps[1].Host)
	}
}

// TestBadHintOneDescriptor is bad_hint_one_descriptor of field-cases.md, for a
// remote host: four of its five serve.
func TestBadHintOneDescriptor(t *testing.T) {
	for _, bad := range []string{`1.5`, `3e9`, `"high"`, `{"request":0.5}`} {
		var list []string
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			hint := "7"
			if name == "c" {
				hint = bad
			}
			list = append(list, `{"name":"`+name+`","type":"mutation","hooks":[{"events":["*"],"phase":"request"}],"priorityHint":`+hint+`}`)
		}
		page, err := abi.ReadPage([]byte(`{"interceptors":[` + strings.Join(list, ",") + `]}`))
		require.NoError(t, err)
		plan := NewPlan([]Listing{{Host: host("h"), Interceptors: page.Interceptors, Skipped: page.Skipped}}, nil, abi.ToolsCall, abi.Request, abi.Sending, "")
		require.Equal(t, "h/a h/b h/d h/e", shown(plan), bad)
		require.Equal(t, "h/c:malformed", left(plan), bad)
		require.False(t, plan.Blocked())
	}
}
