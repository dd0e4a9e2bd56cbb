package chain

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
)

// reports collects what an observer is told.
type reports struct {
	mu   sync.Mutex
	list []SinkReport
}

func (r *reports) observe(s SinkReport) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, s)
}

// of gives the effects told about one sink.
func (r *reports) of(name string) (effects []Effect, reasons []abi.Reason) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.list {
		if s.Name != name {
			continue
		}
		effects = append(effects, s.Effect)
		if s.Err != nil {
			reasons = append(reasons, s.Err.Reason)
		}
	}
	return effects, reasons
}

// TestSlowSink is slow_sink of field-cases.md: nothing is delayed, everything
// is recorded, shutdown keeps its grace.
func TestSlowSink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told reports
		sinks := NewSinks(SinkOptions{Observe: told.observe})
		h := host("h", sink("slow", after(10*time.Second, recorded)), sink("never", hangs), sink("deaf", deaf(time.Hour, recorded)),
			sink("fails", broken), sink("wrong", pass), sink("panics", func(context.Context, abi.Invocation) (abi.Result, error) { panic("boom") }),
			sink("not recorded", func(_ context.Context, inv abi.Invocation) (abi.Result, error) { return echo(abi.Sink, inv), nil }))
		policy, err := NewPolicy([]Entry{{Interceptor: "never", Timeout: ptr(time.Minute)}})
		require.NoError(t, err)
		plan := NewPlan(listings([]*mock{h}, nil), policy, abi.ToolsCall, abi.Request, abi.Sending, "")
		ctx, cancel := context.WithCancel(t.Context())
		out := NewExecutor(Options{Sinks: sinks}).Execute(ctx, plan, Operation{Payload: input, Timeout: time.Second})
		cancel() // the operation is over; its sinks are not
		require.Zero(t, out.TotalDuration)
		require.Len(t, out.Results, 7)

		grace, stop := context.WithTimeout(t.Context(), 45*time.Second)
		defer stop()
		start := time.Now()
		err = sinks.Drain(grace)
		require.ErrorContains(t, err, "1 sinks were cut off")
		require.Equal(t, 45*time.Second, time.Since(start))
		for name, want := range map[string]struct {
			effect Effect
			reason []abi.Reason
		}{
			"slow":         {EffectRecorded, nil},
			"never":        {EffectLost, []abi.Reason{abi.ReasonCancelled}},
			"deaf":         {EffectLost, []abi.Reason{abi.ReasonTimeout}},
			"fails":        {EffectLost, []abi.Reason{abi.ReasonTrap}},
			"wrong":        {EffectLost, []abi.Reason{abi.ReasonBadOutput}},
			"panics":       {EffectLost, []abi.Reason{abi.ReasonUnavailable}},
			"not recorded": {EffectLost, nil},
		} {
			effects, reasons := told.of(name)
			require.Equal(t, []Effect{want.effect}, effects, name)
			require.Equal(t, want.reason, reasons, name)
		}
		require.Zero(t, sinks.InFlight())
		time.Sleep(time.Hour)
	})
}

func TestSinksAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told reports
		sinks := NewSinks(SinkOptions{InFlight: 5, Observe: told.observe})
		stuck, good := sink("stuck", hangs), sink("good", after(time.Second, recorded))
		h, other := host("h", stuck, good), host("other", stuck, good)
		plan := NewPlan(listings([]*mock{h, other}, nil), nil, abi.ToolsCall, abi.Request, abi.Sending, "")
		x := NewExecutor(Options{Sinks: sinks})
		run := func() string {
			out := x.Execute(t.Context(), plan, Operation{Payload: input})
			require.True(t, out.Released())
			return effects(&out)
		}
		require.Equal(t, "good=started good=started stuck=started stuck=started", run())
		require.Equal(t, "good=started good=lost stuck=lost stuck=lost", run(), "five at once")
		time.Sleep(2 * time.Second)
		require.Equal(t, "good=started good=started stuck=started stuck=lost", run())
		time.Sleep(2 * time.Second)
		require.Equal(t, "good=started good=started stuck=lost stuck=lost", run(), "those that are done make room")
		time.Sleep(2 * time.Second)
		require.Equal(t, 3, sinks.InFlight())
		_, reasons := told.of("stuck")
		require.Equal(t, abi.ReasonBusy, reasons[0])
		time.Sleep(DefaultSinkTimeout + time.Second)
		require.Zero(t, sinks.InFlight(), "one that never returns gives its place back")
	})
}

// TestStuckSinkLeavesRoom: it takes its own places only, host by host.
func TestStuckSinkLeavesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sinks := NewSinks(SinkOptions{InFlight: 100, PerSink: 2})
		hosts := []*mock{host("h", sink("stuck", hangs), sink("good", recorded)), host("other", sink("stuck", recorded))}
		plan := NewPlan(listings(hosts, nil), nil, abi.ToolsCall, abi.Request, abi.Sending, "")
		x := NewExecutor(Options{Sinks: sinks})
		for i := range 5 {
			out := x.Execute(t.Context(), plan, Operation{Payload: input})
			want := "good=started stuck=started stuck=started"
			if i >= 2 {
				want = "good=started stuck=lost stuck=started"
			}
			require.Equal(t, want, effects(&out))
			synctest.Wait()
		}
		time.Sleep(DefaultSinkTimeout + time.Second)
		out := x.Execute(t.Context(), plan, Operation{Payload: input})
		require.Equal(t, "good=started stuck=started stuck=started", effects(&out))
		require.NoError(t, sinks.Drain(t.Context()))
	})
}

func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told reports
		sinks := NewSinks(SinkOptions{Observe: told.observe})
		h := host("h", sink("s", after(time.Second, recorded)))
		plan := NewPlan(listings([]*mock{h}, nil), nil, abi.ToolsCall, abi.Request, abi.Sending, "")
		x := NewExecutor(Options{Sinks: sinks})
		run := func() string {
			out := x.Execute(t.Context(), plan, Operation{Payload: input})
			return effects(&out)
		}
		require.Equal(t, "s=started", run())
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { require.NoError(t, sinks.Drain(t.Context())) })
		}
		synctest.Wait()
		require.Equal(t, "s=lost", run(), "none is started while draining")
		wg.Wait()
		require.NoError(t, sinks.Drain(t.Context()))
		require.Equal(t, "s=lost", run())
		require.Len(t, h.Calls("s"), 1)
		effects, _ := told.of("s")
		require.Equal(t, []Effect{EffectLost, EffectRecorded, EffectLost}, effects)
	})
}

// TestSinksRunAfterTheDeadline: nobody waits for them, so the aggregate
// deadline does not concern them.
func TestSinksRunAfterTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := host("h", mutator("m", hangs, failOpen), sink("s", after(10*time.Second, recorded)))
		var told reports
		sinks := NewSinks(SinkOptions{Observe: told.observe})
		plan := NewPlan(listings([]*mock{h}, nil), nil, abi.ToolsCall, abi.Request, abi.Sending, "")
		out := NewExecutor(Options{Sinks: sinks}).Execute(t.Context(), plan, Operation{Payload: input, Timeout: time.Second})
		require.Equal(t, "m=ignored s=started", effects(&out))
		require.NoError(t, sinks.Drain(t.Context()))
		effects, _ := told.of("s")
		require.Equal(t, []Effect{EffectRecorded}, effects)
	})
}
