package conformance

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/chain"
	"github.com/weir-mcp/weir/internal/conformance/mockhost"
)

// Execution is the rest of the deadline, failure and cancellation rules of
// protocol.md §5, as rows like those of §7.
func Execution() []Case {
	const inProcess = "it is about a host that is Go code"
	half := second / 2
	timeout := func(name string, d time.Duration) chain.Entry { return chain.Entry{Interceptor: name, Timeout: &d} }
	return append([]Case{
		{Name: "nobody", Hosts: one(), Status: abi.StatusSuccess},
		{Name: "validators_see_all_mutations", Hosts: func() []*mockhost.Host {
			sees := func(_ context.Context, inv abi.Invocation) (abi.Result, error) {
				r := echo(abi.Validation, inv)
				r.Valid = string(inv.Payload) == `{"name":"t+a+b"}`
				return r, nil
			}
			return []*mockhost.Host{host("one", mutator("b", tag), validator("v", sees)), host("two", mutator("a", tag), validator("w", sees))}
		}, Status: abi.StatusSuccess, Effects: "a=applied b=applied v=passed w=passed", Calls: "one/b one/v two/a two/w", Final: `{"name":"t+a+b"}`},
		{Name: "validators_block_what_mutators_changed", Hosts: one(mutator("m", tag), validator("v", reject), sink("s", recorded)),
			Status: abi.StatusValidationFailed, Effects: "m=discarded v=blocked", Calls: "h/m h/v", Aborted: "v:rejected"},
		{Name: "receiving_all_pass", Hosts: one(mutator("m", tag), validator("v", pass), sink("s", recorded)), Direction: abi.Receiving,
			Status: abi.StatusSuccess, Effects: "v=passed s=started m=applied", Sunk: "s=recorded", Calls: "h/m h/s h/v", Final: `{"name":"t+m"}`},
		{Name: "receiving_mutation_block_after_sinks", Hosts: one(mutator("m", broken), validator("v", pass), sink("s", recorded)), Direction: abi.Receiving,
			Status: abi.StatusMutationFailed, Effects: "v=passed s=started m=blocked", Sunk: "s=recorded", Calls: "h/m h/s h/v", Aborted: "m:trap"},
		{Name: "first_in_plan_order_decides", Hosts: one(validator("a", after(half, broken)), validator("b", reject)), Took: half,
			Status: abi.StatusInterceptorFailed, Effects: "a=blocked b=blocked", Calls: "h/a h/b", Aborted: "a:trap"},
		{Name: "a_mutator_reports_a_timeout_of_its_own", Hosts: one(mutator("m", fails(abi.ReasonTimeout))),
			Status: abi.StatusTimeout, Effects: "m=blocked", Calls: "h/m", Aborted: "m:timeout"},
		{Name: "own_timeout", Hosts: one(validator("v", hangs), validator("w", pass)), Policy: []chain.Entry{timeout("v", half)}, Timeout: second, Took: half,
			Status: abi.StatusTimeout, Effects: "v=blocked w=passed", Calls: "h/v h/w", Aborted: "v:timeout"},
		{Name: "own_timeout_beyond_the_aggregate", Hosts: one(validator("v", hangs)), Policy: []chain.Entry{timeout("v", 2*second)}, Timeout: second, Took: second,
			Status: abi.StatusTimeout, Effects: "v=blocked", Calls: "h/v", Aborted: "v:timeout"},
		{Name: "own_timeout_without_an_aggregate", Hosts: one(mutator("m", hangs, failOpen), mutator("n", tag)), Policy: []chain.Entry{timeout("m", half)}, Took: half,
			Status: abi.StatusSuccess, Effects: "m=ignored n=applied", Calls: "h/m h/n", Final: `{"name":"t+n"}`},
		{Name: "fast_enough", InProcess: "its margin is a nanosecond", Hosts: one(mutator("m", after(half, tag)), validator("v", after(half-1, pass))), Timeout: second, Took: second - 1,
			Status: abi.StatusSuccess, Effects: "m=applied v=passed", Calls: "h/m h/v", Final: `{"name":"t+m"}`},
		{Name: "deadline_keeps_what_fail_open_mutators_did", Hosts: one(mutator("a", tag), mutator("b", hangs, failOpen), mutator("c", tag, failOpen), validator("v", pass, audit)),
			Timeout: second, Took: second,
			Status: abi.StatusSuccess, Effects: "a=applied b=ignored c=ignored v=audited", Calls: "h/a h/b", Final: `{"name":"t+a"}`},
		{Name: "deadline_with_validators_in_flight", Hosts: one(validator("a", after(half, pass)), validator("b", hangs, failOpen), validator("c", hangs, audit), validator("d", hangs)),
			Timeout: second, Took: second,
			Status: abi.StatusTimeout, Effects: "a=passed b=ignored c=audited d=blocked", Calls: "h/a h/b h/c h/d", Aborted: "d:timeout"},
		{Name: "a_verdict_before_the_deadline_decides", Hosts: one(validator("a", reject, failOpen), validator("b", hangs)), Timeout: second, Took: second,
			Status: abi.StatusValidationFailed, Effects: "a=blocked b=blocked", Calls: "h/a h/b", Aborted: "a:rejected"},
		{Name: "requester_leaves_during_mutation", Hosts: one(mutator("a", tag), mutator("b", hangs, failOpen), validator("v", pass), sink("s", recorded)),
			Cancel: half, Timeout: second, Took: half,
			Status: abi.StatusCancelled, Effects: "a=discarded b=cancelled", Calls: "h/a h/b"},
		{Name: "requester_leaves_during_validation", Hosts: one(validator("v", hangs, failOpen), validator("w", hangs), validator("x", reject), sink("s", recorded)),
			Cancel: half, Timeout: second, Took: half,
			Status: abi.StatusCancelled, Effects: "v=cancelled w=cancelled x=blocked", Calls: "h/v h/w h/x"},
		{Name: "requester_leaves_while_receiving", Hosts: one(mutator("m", hangs), validator("v", pass), sink("s", after(10*second, recorded))), Direction: abi.Receiving,
			Cancel: half, Timeout: second, Took: half,
			Status: abi.StatusCancelled, Effects: "v=passed s=started m=cancelled", Sunk: "s=recorded", Calls: "h/m h/s h/v"},
		{Name: "modified_to_the_same_bytes", Hosts: one(mutator("m", replace(`{"name":"t"}`))),
			Status: abi.StatusSuccess, Effects: "m=applied", Calls: "h/m"},
		{Name: "modified_there_and_back", Hosts: one(mutator("m", tag), mutator("n", replace(`{"name":"t"}`))),
			Status: abi.StatusSuccess, Effects: "m=applied n=applied", Calls: "h/m h/n"},
		{Name: "unmodified_with_an_equal_payload", Hosts: one(mutator("m", twisted(replace(`{ "arguments": {"n":1.0}, "name":"t"}`), unsay))),
			Payload: `{"name":"\u0074","arguments":{"n":1}}`,
			Status:  abi.StatusSuccess, Effects: "m=passed", Calls: "h/m"},
		{Name: "unmodified_with_a_number_beyond_floats", Hosts: one(mutator("m", twisted(replace(`{"name":"t","n":9007199254740993}`), unsay))),
			Payload: `{"name":"t","n":9007199254740992}`,
			Status:  abi.StatusMutationFailed, Effects: "m=blocked", Calls: "h/m", Aborted: "m:bad_output"},
		{Name: "host_panics", InProcess: inProcess, Hosts: one(validator("v", func(context.Context, abi.Invocation) (abi.Result, error) { panic("boom") })),
			Status: abi.StatusInterceptorFailed, Effects: "v=blocked", Calls: "h/v", Aborted: "v:unavailable"},
		{Name: "host_ends_its_goroutine", InProcess: inProcess, Hosts: one(mutator("m", func(context.Context, abi.Invocation) (abi.Result, error) { runtime.Goexit(); panic("never") }, failOpen)),
			Status: abi.StatusSuccess, Effects: "m=ignored", Calls: "h/m"},
		{Name: "host_gives_a_nil_error", InProcess: inProcess, Hosts: one(validator("v", func(context.Context, abi.Invocation) (abi.Result, error) { var e *abi.Error; return abi.Result{}, e })),
			Status: abi.StatusInterceptorFailed, Effects: "v=blocked", Calls: "h/v", Aborted: "v:unavailable"},
		{Name: "host_answers_nothing", Hosts: one(validator("v", func(context.Context, abi.Invocation) (abi.Result, error) { return abi.Result{}, nil })),
			Status: abi.StatusInterceptorFailed, Effects: "v=blocked", Calls: "h/v", Aborted: "v:bad_output"},
		{Name: "host_answers_what_is_no_result", Hosts: one(validator("v", mockhost.Raw(`{"type":"validation","interceptor":"v","phase":"request","valid":"yes"}`))),
			Status: abi.StatusInterceptorFailed, Effects: "v=blocked", Calls: "h/v", Aborted: "v:bad_output"},
		{Name: "host_answers_what_is_no_result_fail_open", Hosts: one(mutator("m", mockhost.Raw(`{"type":"mutation","interceptor":"m","phase":"request"}`), failOpen)),
			Status: abi.StatusSuccess, Effects: "m=ignored", Calls: "h/m"},
		{Name: "host_answers_an_array", Hosts: one(validator("v", mockhost.Raw(`{"type":["validation"]}`), audit)),
			Status: abi.StatusSuccess, Effects: "v=audited", Calls: "h/v"},
		{Name: "arguments_were_null_before", Payload: `{"arguments":null,"name":"t"}`, Hosts: one(mutator("m", tag)),
			Status: abi.StatusSuccess, Effects: "m=applied", Calls: "h/m", Final: `{"arguments":null,"name":"t+m"}`},
		{Name: "arguments_become_null", Payload: `{"arguments":{},"name":"t"}`, Hosts: one(mutator("m", replace(`{"arguments":null,"name":"t"}`))),
			Status: abi.StatusMutationFailed, Effects: "m=blocked", Calls: "h/m", Aborted: "m:bad_output"},
	}, wave(32))
}

// wave is validators that take 1 ms each and all start at once, on two hosts.
func wave(n int) Case {
	var list []mockhost.Interceptor
	var effects, calls []string
	for i := range n {
		name := fmt.Sprintf("v%02d", i)
		list = append(list, validator(name, after(time.Millisecond, pass)))
		effects = append(effects, name+"=passed", name+"=passed")
		calls = append(calls, "i/"+name)
	}
	for _, who := range calls[:n:n] {
		calls = append(calls, "h"+who[1:])
	}
	slices.Sort(calls)
	return Case{Name: "a_wave_takes_as_long_as_one", Hosts: func() []*mockhost.Host {
		return []*mockhost.Host{host("h", list...), host("i", list...)}
	}, Took: time.Millisecond, Status: abi.StatusSuccess, Effects: strings.Join(effects, " "), Calls: strings.Join(calls, " ")}
}
