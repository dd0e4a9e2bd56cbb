package conformance

import (
	"time"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/conformance/mockhost"
)

// Field is the Chain table of field-cases.md, as far as it is about outcomes. The
// cases that are about connections, page_two, host_recovers and
// first_caller_leaves, are tests of this package.
func Field() []Case {
	const secret, redacted = `{"name":"secret"}`, `{"name":"***"}`
	pair := one(mutator("redactor", replace(redacted)), validator("guard", deny("secret")))
	rows := []Case{
		{Name: "redactor_and_guard_agree", Hosts: pair, Payload: secret,
			Status: abi.StatusSuccess, Effects: "redactor=applied guard=passed", Calls: "h/guard h/redactor", Final: redacted,
			Sees: map[string]string{"h/guard": redacted}},
		{Name: "receiving_side_order", Hosts: pair, Payload: secret, Direction: abi.Receiving,
			Status: abi.StatusValidationFailed, Effects: "guard=blocked", Calls: "h/guard", Aborted: "guard:rejected",
			Sees: map[string]string{"h/guard": secret}},
		{Name: "server2_before_server1", Hosts: func() []*mockhost.Host {
			return []*mockhost.Host{host("host1", mutator("a", tag, priority(1000))), host("host2", mutator("z", tag, priority(-1000)))}
		}, Status: abi.StatusSuccess, Effects: "z=applied a=applied", Calls: "host1/a host2/z", Final: `{"name":"t+z+a"}`},
		{Name: "mixed_hints", Hosts: one(
			mutator("request5", tag, hint(abi.PhasePriority(ptr[int32](5), nil))), mutator("scalar", tag, priority(-10)),
			mutator("response", tag, hint(abi.PhasePriority(nil, ptr[int32](-7)))), mutator("none", tag)),
			Status: abi.StatusSuccess, Effects: "scalar=applied none=applied response=applied request5=applied",
			Calls: "h/none h/request5 h/response h/scalar", Final: `{"name":"t+scalar+none+response+request5"}`},
		{Name: "mixed_hints_response", Phase: abi.Response, Payload: `{"content":[],"x":"t"}`, Hosts: one(
			mutator("request5", tag, hint(abi.PhasePriority(ptr[int32](5), nil))), mutator("scalar", tag, priority(-10)),
			mutator("response", tag, hint(abi.PhasePriority(nil, ptr[int32](-7)))), mutator("none", tag)),
			Status: abi.StatusSuccess, Effects: "scalar=applied response=applied none=applied request5=applied",
			Calls: "h/none h/request5 h/response h/scalar", Final: `{"content":[],"x":"t+scalar+response+none+request5"}`},
		{Name: "same_name_two_hosts", Hosts: func() []*mockhost.Host {
			return []*mockhost.Host{
				host("second", mutator("m", replace(`{"name":"by second"}`))),
				host("first", mutator("m", tag)),
			}
		}, Status: abi.StatusSuccess, Effects: "m=applied m=applied", Calls: "first/m second/m", Final: `{"name":"by second+m"}`},
		{Name: "verdict_without_messages", Hosts: one(validator("v", reject)),
			Status: abi.StatusValidationFailed, Effects: "v=blocked", Calls: "h/v", Aborted: "v:rejected"},
		{Name: "warn_with_error_message", Hosts: one(validator("v", verdict(false, abi.SeverityWarn, abi.Message{Message: "m", Severity: abi.SeverityError}))),
			Status: abi.StatusSuccess, Effects: "v=passed", Calls: "h/v"},
		{Name: "all_verdicts_kept", Hosts: one(validator("a", reject), validator("b", after(50*time.Millisecond, reject)), validator("c", after(50*time.Millisecond, pass))),
			Took:   50 * time.Millisecond,
			Status: abi.StatusValidationFailed, Effects: "a=blocked b=blocked c=passed", Calls: "h/a h/b h/c", Aborted: "a:rejected"},
		{Name: "fail_open_and_deadline", Hosts: one(mutator("m", hangs, failOpen), validator("v", hangs, failOpen)),
			Timeout: second, Took: second,
			Status: abi.StatusSuccess, Effects: "m=ignored v=ignored", Calls: "h/m"},
		{Name: "timeout_is_named_validator", Hosts: one(validator("v", hangs)), Timeout: second, Took: second,
			Status: abi.StatusTimeout, Effects: "v=blocked", Calls: "h/v", Aborted: "v:timeout"},
		{Name: "timeout_is_named_mutator", Hosts: one(mutator("m", hangs)), Timeout: second, Took: second,
			Status: abi.StatusTimeout, Effects: "m=blocked", Calls: "h/m", Aborted: "m:timeout"},
		{Name: "timeout_is_named_mutator_receiving", Hosts: one(mutator("m", hangs), validator("v", pass), sink("s", recorded)),
			Direction: abi.Receiving, Timeout: second, Took: second,
			Status: abi.StatusTimeout, Effects: "v=passed s=started m=blocked", Sunk: "s=recorded", Calls: "h/m h/s h/v", Aborted: "m:timeout"},
		{Name: "slow_sink", Hosts: one(validator("v", pass), sink("fails", broken), sink("never", hangs), sink("slow", after(10*second, recorded))),
			Status: abi.StatusSuccess, Effects: "v=passed fails=started never=started slow=started", Calls: "h/fails h/never h/slow h/v",
			Sunk: "fails=lost never=lost slow=recorded"},
		{Name: "slow_sink_receiving", Hosts: one(mutator("m", tag), sink("slow", after(10*second, recorded))), Direction: abi.Receiving,
			Status: abi.StatusSuccess, Effects: "slow=started m=applied", Sunk: "slow=recorded", Calls: "h/m h/slow", Final: `{"name":"t+m"}`},
	}
	for name, hint := range map[string]string{"fraction": `1.5`, "too_large": `3e9`, "text": `"high"`, "fraction_in_an_object": `{"request":0.5}`} {
		rows = append(rows, Case{Name: "bad_hint_one_descriptor_" + name, Hosts: func() []*mockhost.Host {
			h := host("h", mutator("a", tag), mutator("b", tag), mutator("d", tag), mutator("e", tag))
			h.Bad = []string{`{"name":"c","type":"mutation","hooks":[{"events":["*"],"phase":"request"}],"priorityHint":` + hint + `}`}
			return []*mockhost.Host{h}
		}, Status: abi.StatusSuccess, Effects: "a=applied b=applied d=applied e=applied", Calls: "h/a h/b h/d h/e", Final: `{"name":"t+a+b+d+e"}`})
	}
	for name, payload := range map[string]string{"null": "null", "absent": "", "number": "7", "no_name": "{}", "string": `"x"`,
		"name_is_a_number": `{"name":1}`, "arguments_is_a_list": `{"name":"t","arguments":[]}`, "duplicates": `{"name":"a","name":"b"}`, "not_json": `{"name":`} {
		inProcess := ""
		if name == "not_json" {
			inProcess = "no message can carry it"
		}
		rows = append(rows,
			Case{Name: "modified_without_payload_" + name, InProcess: inProcess, Hosts: one(mutator("m", replace(payload)), mutator("n", tag)),
				Status: abi.StatusMutationFailed, Effects: "m=blocked", Calls: "h/m", Aborted: "m:bad_output"},
			Case{Name: "modified_without_payload_" + name + "_fail_open", InProcess: inProcess, Hosts: one(mutator("m", replace(payload), failOpen), mutator("n", tag)),
				Status: abi.StatusSuccess, Effects: "m=ignored n=applied", Calls: "h/m h/n", Final: `{"name":"t+n"}`},
			Case{Name: "modified_without_payload_" + name + "_audit", InProcess: inProcess, Hosts: one(mutator("m", replace(payload), audit), mutator("n", tag)),
				Status: abi.StatusSuccess, Effects: "m=audited n=applied", Calls: "h/m h/n", Final: `{"name":"t+n"}`})
	}
	answers := map[abi.Type]behaviour{abi.Validation: pass, abi.Mutation: tag, abi.Sink: recorded}
	makers := map[abi.Type]func(string, behaviour, ...option) mockhost.Interceptor{abi.Validation: validator, abi.Mutation: mutator}
	blocked := map[abi.Type]abi.Status{abi.Validation: abi.StatusInterceptorFailed, abi.Mutation: abi.StatusMutationFailed}
	for typ, maker := range makers {
		for other, does := range answers {
			if other == typ {
				continue
			}
			name := "wrong_type_result_" + string(typ) + "_as_" + string(other)
			rows = append(rows,
				Case{Name: name, Hosts: one(maker("i", does)), Status: blocked[typ], Effects: "i=blocked", Calls: "h/i", Aborted: "i:bad_output"},
				Case{Name: name + "_fail_open", Hosts: one(maker("i", does, failOpen)), Status: abi.StatusSuccess, Effects: "i=ignored", Calls: "h/i"},
				Case{Name: name + "_audit", Hosts: one(maker("i", does, audit)), Status: abi.StatusSuccess, Effects: "i=audited", Calls: "h/i"})
		}
	}
	for other, does := range answers {
		if other != abi.Sink {
			rows = append(rows, Case{Name: "wrong_type_result_sink_as_" + string(other), Hosts: one(sink("i", does)),
				Status: abi.StatusSuccess, Effects: "i=started", Sunk: "i=lost", Calls: "h/i"})
		}
	}
	return rows
}
