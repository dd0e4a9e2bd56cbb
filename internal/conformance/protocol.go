package conformance

import (
	"errors"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/chain"
	"github.com/weir-mcp/weir/internal/conformance/mockhost"
)

// Protocol is protocol.md §7: C1 to C27, and what follows them from the C# SDK.
func Protocol() []Case {
	down := func(open bool) *mockhost.Host {
		return &mockhost.Host{Label: "down", Down: errors.New("it is down"), FailOpen: open}
	}
	return []Case{
		{Name: "C1_active_fail_closed_validator_fails", Hosts: one(validator("v", broken)),
			Status: abi.StatusInterceptorFailed, Effects: "v=blocked", Calls: "h/v", Aborted: "v:trap"},
		{Name: "C2_fail_open_validator_fails", Hosts: one(validator("v", broken, failOpen)),
			Status: abi.StatusSuccess, Effects: "v=ignored", Calls: "h/v"},
		{Name: "C3_audit_validator_fails", Hosts: one(validator("v", broken, audit)),
			Status: abi.StatusSuccess, Effects: "v=audited", Calls: "h/v"},
		{Name: "C3_audit_validator_fails_fail_open", Hosts: one(validator("v", broken, audit, failOpen)),
			Status: abi.StatusSuccess, Effects: "v=audited", Calls: "h/v"},
		{Name: "C4_rejection_despite_fail_open", Hosts: one(validator("v", reject, failOpen)),
			Status: abi.StatusValidationFailed, Effects: "v=blocked", Calls: "h/v", Aborted: "v:rejected"},
		{Name: "C5_warn_is_no_block", Hosts: one(validator("v", verdict(false, abi.SeverityWarn))),
			Status: abi.StatusSuccess, Effects: "v=passed", Calls: "h/v"},
		{Name: "C5_info_is_no_block", Hosts: one(validator("v", verdict(false, abi.SeverityInfo))),
			Status: abi.StatusSuccess, Effects: "v=passed", Calls: "h/v"},
		{Name: "C6_audit_rejection", Hosts: one(validator("v", reject, audit)),
			Status: abi.StatusSuccess, Effects: "v=audited", Calls: "h/v"},
		{Name: "C6_audit_rejection_by_policy", Hosts: one(validator("v", reject)),
			Policy: []chain.Entry{{Interceptor: "v", Mode: ptr(abi.Audit)}},
			Status: abi.StatusSuccess, Effects: "v=audited", Calls: "h/v"},
		{Name: "C7_severity_omitted", Hosts: one(validator("v", verdict(false, ""))),
			Status: abi.StatusValidationFailed, Effects: "v=blocked", Calls: "h/v", Aborted: "v:rejected"},
		{Name: "C8_valid_with_severity_error", Hosts: one(validator("v", verdict(true, abi.SeverityError))),
			Status: abi.StatusSuccess, Effects: "v=passed", Calls: "h/v"},
		{Name: "C9_unknown_severity", Hosts: one(validator("v", verdict(false, "critical"))),
			Status: abi.StatusValidationFailed, Effects: "v=blocked", Calls: "h/v", Aborted: "v:rejected"},
		{Name: "C10_second_of_three_mutators_fails", Hosts: one(mutator("a", tag), mutator("b", broken), mutator("c", tag)),
			Status: abi.StatusMutationFailed, Effects: "a=discarded b=blocked", Calls: "h/a h/b", Aborted: "b:trap"},
		{Name: "C11_fail_open_mutator_fails_mid_pass", Hosts: one(mutator("a", tag), mutator("b", broken, failOpen), mutator("c", tag)),
			Status: abi.StatusSuccess, Effects: "a=applied b=ignored c=applied", Calls: "h/a h/b h/c", Final: `{"name":"t+a+c"}`, Sees: map[string]string{"h/c": `{"name":"t+a"}`}},
		{Name: "C12_audit_mutation_is_not_seen", Hosts: one(mutator("a", tag, audit), mutator("b", tag)),
			Status: abi.StatusSuccess, Effects: "a=audited b=applied", Calls: "h/a h/b", Final: `{"name":"t+b"}`, Sees: map[string]string{"h/b": `{"name":"t"}`}},
		{Name: "C13_unmodified_with_another_payload", Hosts: one(mutator("a", twisted(tag, unsay))),
			Status: abi.StatusMutationFailed, Effects: "a=blocked", Calls: "h/a", Aborted: "a:bad_output"},
		{Name: "C13_fail_open", Hosts: one(mutator("a", twisted(tag, unsay), failOpen), mutator("b", tag)),
			Status: abi.StatusSuccess, Effects: "a=ignored b=applied", Calls: "h/a h/b", Final: `{"name":"t+b"}`},
		{Name: "C14_echo_of_another_name", Hosts: one(mutator("a", twisted(tag, func(r *abi.Result) { r.Interceptor = "b" }))),
			Status: abi.StatusMutationFailed, Effects: "a=blocked", Calls: "h/a", Aborted: "a:bad_output"},
		{Name: "C14_echo_of_another_phase", Hosts: one(mutator("a", twisted(tag, func(r *abi.Result) { r.Phase = abi.Response }), failOpen)),
			Status: abi.StatusSuccess, Effects: "a=ignored", Calls: "h/a"},
		{Name: "C14_echo_of_another_name_validator", Hosts: one(validator("v", twisted(pass, func(r *abi.Result) { r.Interceptor = "V" }))),
			Status: abi.StatusInterceptorFailed, Effects: "v=blocked", Calls: "h/v", Aborted: "v:bad_output"},
		{Name: "C15_cancelled_audit_validation", Hosts: one(validator("v", fails(abi.ReasonCancelled), audit), validator("w", pass)),
			Status: abi.StatusSuccess, Effects: "v=audited w=passed", Calls: "h/v h/w"},
		{Name: "C15_audit_validation_cancelled_by_the_deadline", Hosts: one(validator("v", hangs, audit)),
			Timeout: second, Took: second,
			Status: abi.StatusSuccess, Effects: "v=audited", Calls: "h/v"},
		{Name: "C16_deadline_before_a_fail_closed_mutator", Hosts: one(mutator("a", tag), mutator("b", hangs, failOpen), mutator("c", tag)),
			Timeout: second, Took: second,
			Status: abi.StatusTimeout, Effects: "a=discarded b=ignored c=blocked", Calls: "h/a h/b", Aborted: "c:timeout"},
		{Name: "C17_scalar_value_order", Hosts: one(mutator("a", tag), mutator("B", tag), mutator("\uffee", tag), mutator("\U00010000", tag)),
			Status: abi.StatusSuccess, Effects: "B=applied a=applied \uffee=applied \U00010000=applied",
			Calls: "h/B h/a h/\uffee h/\U00010000", Final: "{\"name\":\"t+B+a+\uffee+\U00010000\"}"},
		{Name: "C18_widening_override", Hosts: one(validator("v", pass, hooks(abi.On(abi.Request, abi.ToolsCall)))),
			Policy: []chain.Entry{{Interceptor: "v", Hooks: abi.OnBoth(abi.ToolsCall), Source: "weir.yaml:3"}},
			Status: abi.StatusInterceptorFailed, Effects: "v=blocked", Aborted: "v:unavailable"},
		{Name: "C18_widening_override_fail_open", Hosts: one(validator("v", pass, hooks(abi.On(abi.Request, abi.ToolsCall)), failOpen)),
			Policy: []chain.Entry{{Interceptor: "v", Hooks: abi.On(abi.Request, abi.PromptsGet), Source: "weir.yaml:3"}},
			Status: abi.StatusSuccess, Effects: "v=ignored"},
		{Name: "C19_sending_mutation_block", Hosts: one(mutator("m", broken), validator("v", pass), validator("w", pass, audit), sink("s", recorded)),
			Status: abi.StatusMutationFailed, Effects: "m=blocked", Calls: "h/m", Aborted: "m:trap"},
		{Name: "C20_receiving_validation_block", Hosts: one(mutator("m", tag), validator("v", reject), sink("s", recorded)),
			Direction: abi.Receiving,
			Status:    abi.StatusValidationFailed, Effects: "v=blocked", Calls: "h/v", Aborted: "v:rejected"},
		{Name: "C21_no_hooks", Hosts: one(validator("v", reject, hooks(abi.Hooks{}))),
			Status: abi.StatusSuccess},
		{Name: "C22_one_of_two_validators_blocks", Hosts: one(validator("v", reject), validator("w", after(second, pass))), Took: second,
			Status: abi.StatusValidationFailed, Effects: "v=blocked w=passed", Calls: "h/v h/w", Aborted: "v:rejected"},
		{Name: "C23_narrowed_by_policy", Hosts: one(validator("v", reject)),
			Policy: []chain.Entry{{Interceptor: "v", Hooks: abi.On(abi.Request, abi.PromptsGet)}},
			Status: abi.StatusSuccess},
		{Name: "C23_disabled_by_policy", Hosts: one(validator("v", reject), validator("w", pass)),
			Policy: []chain.Entry{{Interceptor: "v", Enabled: ptr(false)}},
			Status: abi.StatusSuccess, Effects: "w=passed", Calls: "h/w"},
		{Name: "C24_min_protocol_above_the_negotiated", Hosts: one(validator("v", reject, compat("2026-07-28", ""))), Version: "2025-11-25",
			Status: abi.StatusSuccess},
		{Name: "C24_max_protocol_below_the_negotiated", Hosts: one(validator("v", reject, compat("2025-03-26", "2025-06-18"))), Version: "2025-11-25",
			Status: abi.StatusSuccess},
		{Name: "C24_unknown_version_excludes_nothing", Hosts: one(validator("v", reject, compat("2026-07-28", ""))),
			Status: abi.StatusValidationFailed, Effects: "v=blocked", Calls: "h/v", Aborted: "v:rejected"},
		{Name: "C25_required_on_a_dead_host", Hosts: func() []*mockhost.Host { return []*mockhost.Host{host("h", mutator("m", tag)), down(true)} },
			Policy: []chain.Entry{{Interceptor: "guard", Required: true}},
			Status: abi.StatusDiscoveryFailed, Aborted: "guard:missing"},
		{Name: "C25_dead_host", Hosts: func() []*mockhost.Host { return []*mockhost.Host{host("h", mutator("m", tag)), down(false)} },
			Status: abi.StatusDiscoveryFailed, Aborted: ":not_listed"},
		{Name: "C25_dead_host_that_may_fail_open", Hosts: func() []*mockhost.Host { return []*mockhost.Host{host("h", mutator("m", tag)), down(true)} },
			Status: abi.StatusSuccess, Effects: "m=applied", Calls: "h/m", Final: `{"name":"t+m"}`},
		{Name: "C26_unknown_type_or_mode", Hosts: func() []*mockhost.Host {
			h := host("h", validator("v", pass))
			h.Bad = []string{
				`{"name":"w","type":"filter","hooks":[{"events":["*"],"phase":"request"}]}`,
				`{"name":"x","type":"validation","mode":"strict","hooks":[{"events":["*"],"phase":"request"}]}`,
				`{"name":"y","type":"sink","mode":"audit","hooks":[{"events":["*"],"phase":"request"}]}`,
				`{"name":"z"}`, `7`,
			}
			return []*mockhost.Host{h}
		}, Status: abi.StatusSuccess, Effects: "v=passed", Calls: "h/v"},
		{Name: "C26_required_and_of_unknown_type", Hosts: func() []*mockhost.Host {
			h := host("h", validator("v", pass))
			h.Bad = []string{`{"name":"w","type":"filter","hooks":[]}`}
			return []*mockhost.Host{h}
		}, Policy: []chain.Entry{{Interceptor: "w", Required: true}},
			Status: abi.StatusDiscoveryFailed, Aborted: "w:malformed"},
		{Name: "C27_connection_drops", Hosts: one(validator("v", dropped)),
			Status: abi.StatusInterceptorFailed, Effects: "v=blocked", Calls: "h/v", Aborted: "v:unavailable"},
		{Name: "C27_connection_drops_fail_open", Hosts: one(validator("v", dropped, failOpen)),
			Status: abi.StatusSuccess, Effects: "v=ignored", Calls: "h/v"},
		{Name: "C27_connection_drops_audit", Hosts: one(validator("v", dropped, audit)),
			Status: abi.StatusSuccess, Effects: "v=audited", Calls: "h/v"},
		{Name: "C27_connection_drops_under_a_mutation", Hosts: func() []*mockhost.Host {
			return []*mockhost.Host{host("h", mutator("m", tag)), host("lost", mutator("n", dropped)), host("i", mutator("o", tag))}
		}, Status: abi.StatusMutationFailed, Effects: "m=discarded n=blocked", Calls: "h/m lost/n", Aborted: "n:unavailable"},
		{Name: "C27_connection_drops_under_a_mutation_fail_open", Hosts: func() []*mockhost.Host {
			return []*mockhost.Host{host("h", mutator("m", tag)), host("lost", mutator("n", dropped, failOpen)), host("i", mutator("o", tag))}
		}, Status: abi.StatusSuccess, Effects: "m=applied n=ignored o=applied", Calls: "h/m i/o lost/n", Final: `{"name":"t+m+o"}`},

		{Name: "csharp_one_pass_over_two_servers", Hosts: func() []*mockhost.Host {
			return []*mockhost.Host{host("one", mutator("late", tag, priority(1000))), host("two", mutator("early", tag, priority(-1000)))}
		}, Status: abi.StatusSuccess, Effects: "early=applied late=applied", Calls: "one/late two/early", Final: `{"name":"t+early+late"}`},
		{Name: "csharp_duplicate_names_once_per_host", Hosts: func() []*mockhost.Host {
			return []*mockhost.Host{host("one", validator("v", pass)), host("two", validator("v", pass))}
		}, Status: abi.StatusSuccess, Effects: "v=passed v=passed", Calls: "one/v two/v"},
		{Name: "csharp_sinks_once_for_the_merged_chain", Hosts: func() []*mockhost.Host {
			return []*mockhost.Host{host("one", sink("s", recorded), mutator("m", tag)), host("two", mutator("n", tag))}
		}, Status: abi.StatusSuccess, Effects: "m=applied n=applied s=started", Sunk: "s=recorded", Calls: "one/m one/s two/n", Final: `{"name":"t+m+n"}`},
		{Name: "csharp_sinks_once_for_the_merged_chain_response", Phase: abi.Response, Payload: `{"content":[],"x":"t"}`, Direction: abi.Receiving,
			Hosts: func() []*mockhost.Host {
				return []*mockhost.Host{host("one", sink("s", recorded), mutator("m", tag)), host("two", mutator("n", tag), validator("v", pass))}
			},
			Status: abi.StatusSuccess, Effects: "v=passed s=started m=applied n=applied", Sunk: "s=recorded", Calls: "one/m one/s two/n two/v",
			Final: `{"content":[],"x":"t+m+n"}`, Sees: map[string]string{"one/s": `{"content":[],"x":"t"}`}},
		{Name: "csharp_priorities_interleave", Hosts: func() []*mockhost.Host {
			return []*mockhost.Host{
				host("one", mutator("scalar", tag, priority(3)), mutator("unset", tag)),
				host("two", mutator("object", tag, hint(abi.PhasePriority(ptr[int32](1), ptr[int32](-9)))), mutator("negative", tag, priority(-1)),
					mutator("zero", tag, hint(abi.PhasePriority(nil, ptr[int32](9))))),
			}
		}, Status: abi.StatusSuccess, Effects: "negative=applied unset=applied zero=applied object=applied scalar=applied",
			Calls: "one/scalar one/unset two/negative two/object two/zero", Final: `{"name":"t+negative+unset+zero+object+scalar"}`},
		{Name: "csharp_list_failure_fails_up_front", Hosts: func() []*mockhost.Host {
			return []*mockhost.Host{host("h", validator("v", reject), sink("s", recorded)), down(false)}
		}, Status: abi.StatusDiscoveryFailed, Aborted: ":not_listed"},
	}
}
