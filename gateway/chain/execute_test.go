package chain

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
)

var input = json.RawMessage(`{"name":"t"}`)

// execute runs one operation against hosts with everything at its default.
func execute(t *testing.T, op Operation, direction abi.Direction, entries []Entry, hosts ...*mock) Outcome {
	t.Helper()
	policy, err := NewPolicy(entries)
	require.NoError(t, err)
	plan := NewPlan(listings(hosts, nil), policy, abi.ToolsCall, abi.Request, direction, "")
	return NewExecutor(Options{}).Execute(t.Context(), plan, op)
}

// TestDeafHosts: a host without an ear for its context holds up nobody.
func TestDeafHosts(t *testing.T) {
	for name, does := range map[string]behaviour{
		"answers":   deaf(time.Hour, pass),
		"rejects":   deaf(time.Hour, reject),
		"breaks":    deaf(time.Hour, broken),
		"panics":    deaf(time.Hour, func(context.Context, abi.Invocation) (abi.Result, error) { panic("late") }),
		"just late": deaf(2*time.Second, pass),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				out := execute(t, Operation{Payload: input, Timeout: time.Second}, abi.Sending, nil, host("h", validator("v", does, failOpen), validator("w", does, failOpen)))
				require.Equal(t, time.Second, time.Since(start))
				require.Equal(t, "v=ignored w=ignored", effects(&out))
				require.Equal(t, abi.ReasonTimeout, out.Results[0].Err.Reason)
				time.Sleep(2 * time.Hour) // until the goroutines have ended
			})
		})
	}
}

// TestLateAnswersAreTimeouts: an answer counts when it comes before its
// deadline, however long the others of its wave take.
func TestLateAnswersAreTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := execute(t, Operation{Payload: input}, abi.Sending,
			[]Entry{{Interceptor: "b", Timeout: ptr(time.Second)}, {Interceptor: "c", Timeout: ptr(time.Second)}},
			host("h", validator("a", after(10*time.Second, pass)), validator("b", deaf(5*time.Second, pass), failOpen), validator("c", deaf(time.Second/2, pass))))
		require.Equal(t, "a=passed b=ignored c=passed", effects(&out))
		require.Equal(t, time.Second, out.Results[1].Err.Limit)
		require.Equal(t, time.Second/2, out.Results[2].Duration)
		require.Equal(t, 10*time.Second, out.TotalDuration)
	})
}

func TestAbandonedCallsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := host("stuck", validator("v", deaf(time.Hour, pass), failOpen))
		fine := host("fine", validator("w", pass))
		plan := NewPlan(listings([]*mock{stuck, fine}, nil), nil, abi.ToolsCall, abi.Request, abi.Sending, "")
		x := NewExecutor(Options{Abandoned: 3})
		for i := range 10 {
			out := x.Execute(t.Context(), plan, Operation{Payload: input, Timeout: time.Second})
			require.Equal(t, "v=ignored w=passed", effects(&out))
			want := abi.ReasonTimeout
			if i >= 3 {
				want = abi.ReasonBusy
				require.Zero(t, out.TotalDuration, "a host that is stuck costs no time")
			}
			require.Equal(t, want, out.Results[0].Err.Reason)
		}
		require.Len(t, stuck.Calls("v"), 3)
		require.Len(t, fine.Calls("w"), 10, "the other host is none the worse")
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		require.Zero(t, x.left.total.Load())
		require.Empty(t, x.left.hosts)
		out := x.Execute(t.Context(), plan, Operation{Payload: input, Timeout: time.Second})
		require.Equal(t, abi.ReasonTimeout, out.Results[0].Err.Reason, "the host is called again")
		time.Sleep(2 * time.Hour)
	})
}

func TestAggregateRunsFromArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		arrived := time.Now()
		time.Sleep(700 * time.Millisecond) // a connect in progress, say
		h := host("h", validator("v", hangs))
		out := execute(t, Operation{Payload: input, Arrived: arrived, Timeout: time.Second}, abi.Sending, nil, h)
		require.Equal(t, abi.StatusTimeout, out.Status)
		require.Equal(t, 300*time.Millisecond, out.TotalDuration)
		require.Equal(t, time.Second, out.Results[0].Err.Limit, "the limit that fired")

		out = execute(t, Operation{Payload: input, Arrived: arrived, Timeout: time.Second}, abi.Sending, nil, h)
		require.Equal(t, abi.StatusTimeout, out.Status, "all the time is gone before the plan starts")
		require.Len(t, h.Calls("v"), 1)
	})
}

func TestRequestersDeadlineIsADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plan := NewPlan(listings([]*mock{host("h", mutator("m", hangs))}, nil), nil, abi.ToolsCall, abi.Request, abi.Sending, "")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		out := NewExecutor(Options{}).Execute(ctx, plan, Operation{Payload: input, Timeout: time.Minute})
		require.Equal(t, abi.StatusTimeout, out.Status)
		require.Equal(t, time.Second, out.Results[0].Err.Limit)
	})
}

func TestWhatAHostIsGiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := host("h", validator("v", pass), validator("w", pass))
		config := json.RawMessage(`{"deny":["x"]}`)
		policy, err := NewPolicy([]Entry{{Interceptor: "v", Config: config, Timeout: ptr(time.Minute)}})
		require.NoError(t, err)
		who := &abi.Context{SessionID: "s"}
		request := json.RawMessage(`{"name":"asked"}`)
		for _, phase := range []abi.Phase{abi.Request, abi.Response} {
			plan := NewPlan(listings([]*mock{h}, nil), policy, abi.ToolsCall, phase, abi.Sending, "")
			out := NewExecutor(Options{}).Execute(t.Context(), plan, Operation{Payload: input, Request: request, Context: who, Timeout: time.Second})
			require.True(t, out.Released())
		}
		first, second := h.Calls("v")[0], h.Calls("v")[1]
		require.Equal(t, abi.Invocation{Name: "v", Event: abi.ToolsCall, Phase: abi.Request, Payload: input, Config: config, Timeout: time.Second, Context: who}, first,
			"the timeout is what is left of the aggregate, where that is less")
		require.Equal(t, request, second.Request, "the request goes with a response")
		require.Zero(t, h.Calls("w")[0].Timeout, "no timeout travels where policy sets none")
		require.Nil(t, h.Calls("w")[0].Config)
	})
}

func TestEmptyPayload(t *testing.T) {
	h := host("h", validator("v", pass), mutator("m", unmodified))
	plan := NewPlan(listings([]*mock{h}, nil), nil, abi.ToolsList, abi.Request, abi.Sending, "")
	out := NewExecutor(Options{}).Execute(t.Context(), plan, Operation{})
	require.True(t, out.Released())
	require.False(t, out.Modified)
	require.Nil(t, out.FinalPayload, "an unmodified pass adds no params")
	require.Equal(t, "{}", string(h.Calls("v")[0].Payload))
}

// TestUntouchedBytes: what nobody changed is the very memory that came in.
func TestUntouchedBytes(t *testing.T) {
	payload := json.RawMessage("{\"name\":\"t\", \"n\":1e400,\n \"u\":\"<>&\\ud800\"}")
	for _, direction := range []abi.Direction{abi.Sending, abi.Receiving} {
		out := execute(t, Operation{Payload: payload}, direction, nil, host("h", validator("v", pass), mutator("m", unmodified), mutator("o", tag, audit), sink("s", recorded)))
		require.True(t, out.Released())
		require.Same(t, &payload[0], &out.FinalPayload[0])
		require.Len(t, out.FinalPayload, len(payload))
	}
}

// TestSinksSeeWhatValidationSaw, whatever a mutator does afterwards.
func TestSinksSeeWhatValidationSaw(t *testing.T) {
	for direction, want := range map[abi.Direction]string{abi.Sending: `{"name":"t+m"}`, abi.Receiving: `{"name":"t"}`} {
		synctest.Test(t, func(t *testing.T) {
			h := host("h", mutator("m", tag), validator("v", pass), sink("s", recorded))
			out := execute(t, Operation{Payload: input}, direction, nil, h)
			synctest.Wait()
			require.Equal(t, `{"name":"t+m"}`, string(out.FinalPayload))
			require.Equal(t, want, string(h.Calls("v")[0].Payload))
			require.Equal(t, want, string(h.Calls("s")[0].Payload))
		})
	}
}

func TestAbortSaysWhoAndWhy(t *testing.T) {
	findings := []abi.Message{{Path: "$.name", Message: "no", Severity: abi.SeverityError}}
	out := execute(t, Operation{Payload: input}, abi.Sending, []Entry{{Interceptor: "v", As: "x"}},
		host("h", validator("v", verdict(false, "", findings...)), validator("w", verdict(false, "", abi.Message{Message: "later"}))))
	require.Equal(t, &Abort{Interceptor: "w", Host: "h", Type: abi.Validation, Reason: ReasonRejected, Messages: []abi.Message{{Message: "later"}}}, out.Aborted)
	require.Equal(t, findings, out.Results[1].Result.Messages, "the copy's verdict is kept too")
	require.Equal(t, "x", out.Results[1].Name)
}

func TestSummary(t *testing.T) {
	e, w, i, none := abi.SeverityError, abi.SeverityWarn, abi.SeverityInfo, abi.Severity("")
	msgs := func(severities ...abi.Severity) (list []abi.Message) {
		for _, s := range severities {
			list = append(list, abi.Message{Message: "m", Severity: s})
		}
		return list
	}
	for name, c := range map[string]struct {
		does behaviour
		want Summary
	}{
		"pass":                                {pass, Summary{}},
		"rejection without messages":          {verdict(false, e), Summary{Errors: 1}},
		"rejection without anything":          {verdict(false, none), Summary{Errors: 1}},
		"unknown severity":                    {verdict(false, "critical"), Summary{Errors: 1}},
		"warning without messages":            {verdict(false, w), Summary{Warnings: 1}},
		"each message counts":                 {verdict(false, e, msgs(e, w, w, i)...), Summary{1, 2, 1}},
		"a message without one takes it over": {verdict(false, w, msgs(none, e)...), Summary{1, 1, 0}},
		"an error message under a warning":    {verdict(false, w, msgs(e)...), Summary{Errors: 1}},
		"valid with messages":                 {verdict(true, none, msgs(w, none)...), Summary{0, 1, 1}},
		"valid, whatever its severity":        {verdict(true, e), Summary{}},
		"failure":                             {broken, Summary{}},
	} {
		t.Run(name, func(t *testing.T) {
			out := execute(t, Operation{Payload: input}, abi.Sending, nil, host("h", validator("v", c.does, audit)))
			require.Equal(t, c.want, out.Validation)
		})
	}
}

// TestSingleCallsSpawnNothing: a host that returns promptly runs on the
// caller's goroutine where it is alone or the last of a wave.
func TestSingleCallsSpawnNothing(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]bool{}
	mine := func(then behaviour) behaviour {
		return func(ctx context.Context, inv abi.Invocation) (abi.Result, error) {
			stack := make([]byte, 1<<16)
			inline := bytes.Contains(stack[:runtime.Stack(stack, false)], []byte("TestSingleCallsSpawnNothing("))
			mu.Lock()
			defer mu.Unlock()
			seen[inv.Name] = inline
			return then(ctx, inv)
		}
	}
	h := host("h", mutator("m", mine(tag)), mutator("n", mine(tag)), validator("v", mine(pass)), validator("w", mine(pass)))
	ls := listings([]*mock{h}, nil)
	ls[0].Host = promptMock{h}
	plan := NewPlan(ls, nil, abi.ToolsCall, abi.Request, abi.Sending, "")
	out := NewExecutor(Options{}).Execute(t.Context(), plan, Operation{Payload: input, Timeout: time.Minute})
	require.True(t, out.Released(), "%+v", out)
	require.Equal(t, map[string]bool{"m": true, "n": true, "v": false, "w": true}, seen)
}

// TestPromptHostsFailAlike: inline or not, the rules are the same.
func TestPromptHostsFailAlike(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			does behaviour
			want abi.Reason
		}{
			"panics":  {func(context.Context, abi.Invocation) (abi.Result, error) { panic("boom") }, abi.ReasonUnavailable},
			"hangs":   {hangs, abi.ReasonTimeout},
			"is late": {deaf(2*time.Second, pass), abi.ReasonTimeout},
			"breaks":  {broken, abi.ReasonTrap},
		} {
			h := host("h", validator("v", c.does))
			ls := listings([]*mock{h}, nil)
			ls[0].Host = promptMock{h}
			plan := NewPlan(ls, nil, abi.ToolsCall, abi.Request, abi.Sending, "")
			out := NewExecutor(Options{}).Execute(t.Context(), plan, Operation{Payload: input, Timeout: time.Second})
			require.False(t, out.Released(), name)
			require.Equal(t, c.want, out.Results[0].Err.Reason, name)
		}
	})
}

// TestOnePlanManyAtOnce hammers one plan, executor and sink runner.
func TestOnePlanManyAtOnce(t *testing.T) {
	hosts := []*mock{
		host("one", mutator("a", tag), validator("v", pass), sink("s", recorded), validator("flaky", func(ctx context.Context, inv abi.Invocation) (abi.Result, error) {
			if string(inv.Payload) == `{"name":"7+a+b"}` {
				return reject(ctx, inv)
			}
			return pass(ctx, inv)
		})),
		host("two", mutator("b", tag), validator("w", broken, failOpen), sink("s", broken)),
	}
	plan := NewPlan(listings(hosts, nil), nil, abi.ToolsCall, abi.Request, abi.Sending, "")
	var mu sync.Mutex
	reports := map[Effect]int{}
	sinks := NewSinks(SinkOptions{PerSink: 1000, Observe: func(r SinkReport) {
		mu.Lock()
		defer mu.Unlock()
		reports[r.Effect]++
	}})
	x := NewExecutor(Options{Sinks: sinks})
	const n = 400
	var wg sync.WaitGroup
	errs := make(chan error, n)
	for i := range n {
		wg.Go(func() {
			name := fmt.Sprint(i % 10)
			out := x.Execute(t.Context(), plan, Operation{Payload: json.RawMessage(`{"name":"` + name + `"}`), Timeout: time.Minute})
			want := `{"name":"` + name + `+a+b"}`
			if name == "7" {
				want = ""
			}
			if string(out.FinalPayload) != want {
				errs <- errors.New(effects(&out))
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
	require.NoError(t, sinks.Drain(t.Context()))
	require.Equal(t, map[Effect]int{EffectRecorded: n * 9 / 10, EffectLost: n * 9 / 10}, reports)
}

// TestOfTwoDeadlinesTheEarlierIsNamed: the limit in the error is the one that
// fired.
func TestOfTwoDeadlinesTheEarlierIsNamed(t *testing.T) {
	for _, c := range []struct{ own, aggregate, want time.Duration }{
		{time.Minute, time.Second, time.Second},
		{time.Second, time.Minute, time.Second},
		{time.Second, 0, time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			plan := NewPlan(listings([]*mock{host("h", mutator("m", hangs))}, nil), nil, abi.ToolsCall, abi.Request, abi.Sending, "")
			ctx, cancel := context.WithTimeout(t.Context(), c.own)
			defer cancel()
			out := NewExecutor(Options{}).Execute(ctx, plan, Operation{Payload: input, Timeout: c.aggregate})
			require.Equal(t, abi.StatusTimeout, out.Status)
			require.Equal(t, c.want, out.Results[0].Err.Limit)
		})
	}
}

// TestTheRequesterLeavesDuringAWave: nobody is told of a verdict that came
// before.
func TestTheRequesterLeavesDuringAWave(t *testing.T) {
	for _, direction := range []abi.Direction{abi.Sending, abi.Receiving} {
		synctest.Test(t, func(t *testing.T) {
			h := host("h", validator("v", reject), validator("w", hangs), mutator("m", tag), sink("s", recorded))
			plan := NewPlan(listings([]*mock{h}, nil), nil, abi.ToolsCall, abi.Request, direction, "")
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			out := NewExecutor(Options{}).Execute(ctx, plan, Operation{Payload: input, Timeout: time.Minute})
			require.Equal(t, abi.StatusCancelled, out.Status)
			require.Nil(t, out.Aborted)
			require.Nil(t, out.FinalPayload)
			require.Empty(t, h.Calls("s"))
		})
	}
}
