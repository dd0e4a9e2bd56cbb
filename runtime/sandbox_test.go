package runtime_test

import (
	"context"
	"encoding/binary"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	wt "github.com/weir-mcp/weir/internal/wasmtest"
	"github.com/weir-mcp/weir/runtime"
	"github.com/weir-mcp/weir/runtime/memory"
)

// settled waits for the end of a module's warm-up.
func settled(t testing.TB, m *runtime.Module) *runtime.Module {
	t.Helper()
	select {
	case <-m.Settled():
	case <-time.After(time.Minute):
		t.Fatal("the warm-up does not end")
	}
	return m
}

// A budget is spent by the same call on every engine, to the unit, whether the
// instance is new, cloned or put back.
func TestFuelIsTheSameEverywhere(t *testing.T) {
	wasm := guard(func(r *wt.Reactor) []byte {
		return wt.Seq(wt.I32(50_000), wt.Set(1),
			wt.Loop(wt.Get(1), wt.I32(1), wt.I32Sub, wt.Set(1), wt.Get(1), wt.BrIf(0)))
	})
	passes := func(m *runtime.Module) bool {
		_, err := invoke(m, misbehave)
		if err != nil {
			requireReason(t, abi.ReasonFuel, err)
		}
		return err == nil
	}
	budget := func(fuel int64) func(*runtime.ModuleOptions) {
		return limited(func(l *runtime.Limits) { l.Fuel = fuel })
	}
	r := newRuntime(t, on{})
	low, high := int64(1), int64(10_000_000)
	for low+1 < high {
		middle := (low + high) / 2
		m := settled(t, load(t, r, wasm, budget(middle)))
		if passes(m) {
			high = middle
		} else {
			low = middle
		}
		require.NoError(t, m.Close(context.Background()))
	}
	t.Log("the call takes", high)
	for name, o := range ways() {
		t.Run(name, func(t *testing.T) {
			r := newRuntime(t, o)
			enough, short := load(t, r, wasm, budget(high)), load(t, r, wasm, budget(low))
			for range 3 {
				require.True(t, passes(enough))
				require.False(t, passes(short))
				settled(t, enough)
				settled(t, short)
			}
		})
	}
}

// What the host does on a guest's behalf is paid for by the guest.
func TestHostWorkIsCharged(t *testing.T) {
	m := settled(t, load(t, newRuntime(t, on{}), guard(func(r *wt.Reactor) []byte {
		return wt.Seq(wt.I32(0), wt.I32(200<<10), wt.Call(r.Output))
	}), limited(func(l *runtime.Limits) { l.Fuel = 20_000 })))
	_, err := invoke(m, misbehave)
	requireReason(t, abi.ReasonFuel, err)
	requireWorks(t, m, `"fine"`)
}

// stages is a module that does the same in its start function, _initialize,
// weir_describe or weir_warmup.
func stages(stage string, body ...[]byte) []byte {
	r := wt.NewReactor(wt.Validator("guard"))
	do := r.Func("", "", body...)
	switch stage {
	case "start":
		r.Start(do)
	case abi.ExportInitialize:
		r.Export(stage, do)
	case abi.ExportWarmup:
		r.Export(stage, r.Func(":i", "", wt.Call(do), wt.I32(0)))
	}
	r.Invoke("", r.Answer(`{"result":{"valid":true}}`))
	return r.Bytes()
}

func TestLoadingIsStoppedToo(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, r *runtime.Runtime) {
		for stage, named := range map[string]string{"start": "the start function", abi.ExportInitialize: abi.ExportInitialize} {
			_, err := tryLoad(r, stages(stage, endless), limited(func(l *runtime.Limits) { l.LoadTime = stopAfter }))
			require.ErrorContains(t, err, named+" did not end within 100ms, the limit for loading")
			_, err = tryLoad(r, stages(stage, wt.Unreachable))
			require.ErrorContains(t, err, named+" failed (trap)")
		}
		used, limit := r.Memory()
		require.Zero(t, used, "nothing stays behind")
		require.Equal(t, int64(runtime.DefaultMemory), limit)
	})
}

// A warm-up that fails costs what it did, not the module: calls start from a new
// instance's state.
func TestWarmUpsThatFail(t *testing.T) {
	for name, body := range map[string][]byte{"trap": wt.Unreachable, "endless": endless} {
		t.Run(name, func(t *testing.T) {
			var logs logBuffer
			m := load(t, newRuntime(t, on{}), stages(abi.ExportWarmup, body), logged(&logs))
			requireWorks(t, m, `{}`)
			settled(t, m)
			require.Equal(t, memory.Best().String(), m.Reset())
			requireWorks(t, m, `{}`)
			records := logs.records(t)
			require.Len(t, records, 1)
			require.Contains(t, records[0]["msg"], "warm-up of the module failed")
		})
	}
}

// What a warm-up does stays, for every call, and what it logs does not.
func TestWarmUpsThatWork(t *testing.T) {
	seen := func(warm func(r *wt.Reactor, mark []byte)) []byte {
		r := wt.NewReactor(wt.Validator("guard"))
		global := r.Global(0)
		mark := wt.Seq(wt.GlobalGet(global), wt.I32(1), wt.I32Add, wt.GlobalSet(global))
		warm(r, mark)
		r.Invoke("", wt.I32(1), r.Text("called"), wt.Call(r.Log), mark,
			wt.GlobalGet(global), wt.I32(2), wt.I32Eq, wt.If(r.Answer(`{"result":{"valid":true}}`), wt.Return),
			r.Answer(`{"result":{"valid":true,"info":{"fresh":true}}}`))
		return r.Bytes()
	}
	for name, wasm := range map[string][]byte{
		"weir_warmup": seen(func(r *wt.Reactor, mark []byte) {
			r.Export(abi.ExportWarmup, r.Func(":i", "", mark, wt.I32(1), r.Text("warm"), wt.Call(r.Log), wt.I32(0)))
		}),
		"made-up calls": seen(func(*wt.Reactor, []byte) {}),
	} {
		t.Run(name, func(t *testing.T) {
			var logs logBuffer
			m := settled(t, load(t, newRuntime(t, on{}), wasm, logged(&logs)))
			for range 3 {
				result, err := invoke(m, `{}`)
				require.NoError(t, err)
				require.Empty(t, result.Info)
			}
			require.Len(t, logs.records(t), 3)
		})
	}
}

// The clock of a guest never goes back: not from the time that it slept through
// in its warm-up, and not from one call to the next.
func TestTheClockGoesOnOverAReset(t *testing.T) {
	r := wt.NewReactorWith(func(m *wt.Module) {
		m.Import("wasi_snapshot_preview1", "poll_oneoff", "iiii:i")
		m.Import("wasi_snapshot_preview1", "clock_time_get", "iIi:i")
	}, wt.Validator("guard"))
	const poll, now = wt.Func(3), wt.Func(4)
	const hour, subscription, before, after = 3600_000_000_000, 8192, 9000, 9008
	subscribe := make([]byte, 48)
	subscribe[16] = 1 // the monotonic clock
	binary.LittleEndian.PutUint64(subscribe[24:], hour)
	r.Data(subscription, subscribe)
	clock := func(to int32) []byte { return wt.Seq(wt.I32(1), wt.I64(0), wt.I32(to), wt.Call(now), wt.Drop) }
	sleep := wt.Seq(wt.I32(subscription), wt.I32(subscription+100), wt.I32(1), wt.I32(subscription+200), wt.Call(poll), wt.Drop)
	r.Export(abi.ExportWarmup, r.Func(":i", "", sleep, clock(before), wt.I32(0)))
	r.Invoke("", clock(after),
		wt.I32(after), wt.Load64(0), wt.I32(before), wt.Load64(0), wt.I64LtU, wt.If(wt.Unreachable),
		sleep, clock(before), r.Answer(`{"result":{"valid":true}}`))
	m := settled(t, load(t, newRuntime(t, on{}), r.Bytes()))
	require.Equal(t, memory.Best().String(), m.Reset())
	for range 3 {
		requireWorks(t, m, `{}`)
	}
}

// A module is closed while it warms up.
func TestCloseDuringWarmUp(t *testing.T) {
	noLeaks(t)
	r := newRuntime(t, on{})
	for range 20 {
		m := load(t, r, stages(abi.ExportWarmup, endless))
		require.NoError(t, m.Close(context.Background()))
		settled(t, m)
	}
	used, _ := r.Memory()
	require.Zero(t, used)
}

// A guest's last words are in the cause of its failure, whether its limits let
// them through or not, and nowhere else.
func TestLastWords(t *testing.T) {
	m := settled(t, load(t, newRuntime(t, on{}), guard(func(r *wt.Reactor) []byte {
		return wt.Seq(
			wt.I32(200), wt.Set(1),
			wt.Loop(wt.I32(1), r.Text("flood"), wt.Call(r.Log), wt.Get(1), wt.I32(1), wt.I32Sub, wt.Set(1), wt.Get(1), wt.BrIf(0)),
			wt.I32(0), r.Text("about to trap\nbecause of \x1b[31mthis"), wt.Call(r.Log), wt.Unreachable)
	})))
	_, err := invoke(m, misbehave)
	e := requireReason(t, abi.ReasonTrap, err)
	require.ErrorContains(t, e.Cause, `"flood" "flood" "about to trap" "because of \x1b[31mthis"`)
	require.NotContains(t, e.Message(), "flood")
	require.Less(t, len(e.Cause.Error()), 5000)
}

// The memory of all modules together is bounded: what waits makes room, a call
// that gets none is told so, and a guest that grows is refused.
func TestMemoryOfTheProcess(t *testing.T) {
	noLeaks(t)
	const page, mib = 64 << 10, 1 << 20
	engine := newEngine(t, on{})
	r := runtime.New(engine, runtime.WithMemory(3*mib), runtime.WithLogger(slog.New(slog.DiscardHandler)))
	grow := guard(func(*wt.Reactor) []byte {
		return wt.Seq(wt.I32(100), wt.MemoryGrow, wt.I32(-1), wt.I32Eq, wt.If(wt.Unreachable))
	})

	m := settled(t, load(t, r, grow)) // 4 pages, and 4 of a snapshot
	requireWorks(t, m, `"fine"`)
	used, limit := r.Memory()
	require.Equal(t, int64(3*mib), limit)
	require.Equal(t, int64(8*page), used)
	_, err := invoke(m, misbehave)
	requireReason(t, abi.ReasonMemory, err)
	requireWorks(t, m, `"fine"`)

	// 40 pages are left, and 4 more when the waiting instance goes. A call needs
	// 7 at least for its stack.
	large := func(pages uint32) []byte {
		r := wt.NewReactor(wt.Validator("guard"))
		r.Memory(pages)
		r.Invoke("", r.Answer(`{"result":{"valid":true}}`))
		return r.Bytes()
	}
	big := settled(t, load(t, r, large(18)))
	require.Equal(t, memory.Best().String(), big.Reset())
	requireWorks(t, big, `{}`)
	_, err = tryLoad(r, large(27))
	require.ErrorContains(t, err, "making an instance failed (busy)")
	require.ErrorIs(t, err, memory.ErrNoRoom)
	requireWorks(t, big, `{}`)
	requireWorks(t, m, `"fine"`)
	require.NoError(t, big.Close(context.Background()))
	requireWorks(t, m, `"fine"`)
	require.NoError(t, r.Close(context.Background()))
	used, _ = r.Memory()
	require.Zero(t, used)
}
