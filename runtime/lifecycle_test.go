package runtime_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	wt "github.com/weir-mcp/weir/internal/wasmtest"
	"github.com/weir-mcp/weir/runtime"
	"github.com/weir-mcp/weir/runtime/memory"
)

func TestGuestsLogWithTheirNames(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, r *runtime.Runtime) {
		var logs logBuffer
		m := load(t, r, guard(func(r *wt.Reactor) []byte {
			return wt.Seq(
				wt.I32(3), r.Text("an error"), wt.Call(r.Log),
				wt.I32(99), r.Text("no such level"), wt.Call(r.Log),
				wt.I32(-1), r.Text("nor this"), wt.Call(r.Log),
				wt.Unreachable)
		}), logged(&logs))
		_, err := invoke(m, misbehave)
		requireReason(t, abi.ReasonTrap, err)
		records := logs.records(t)
		require.Len(t, records, 3, "also of a call that fails")
		require.Equal(t, []any{"ERROR", "ERROR", "DEBUG"}, []any{records[0]["level"], records[1]["level"], records[2]["level"]})
		for key, value := range map[string]any{
			"msg": "an error", "module": "guest.wasm", "interceptor": "guard", "event": "tools/call", "phase": "request", "source": "log",
		} {
			require.Equal(t, value, records[0][key])
		}
	})
}

func TestLogFloodsAreCounted(t *testing.T) {
	var logs logBuffer
	m := load(t, newRuntime(t, on{}), guard(func(r *wt.Reactor) []byte {
		return wt.Seq(
			wt.I32(1000), wt.Set(1),
			wt.Loop(wt.I32(1), r.Text("flood"), wt.Call(r.Log),
				wt.Get(1), wt.I32(1), wt.I32Sub, wt.Set(1), wt.Get(1), wt.BrIf(0)))
	}), logged(&logs))
	requireWorks(t, m, misbehave)
	records := logs.records(t)
	require.Len(t, records, 101)
	require.Equal(t, float64(900), records[100]["dropped"])
	require.Equal(t, float64(4500), records[100]["droppedBytes"])
}

func TestCloseWaitsForCalls(t *testing.T) {
	noLeaks(t)
	r := newRuntime(t, on{})
	b := newBlocker(t, r, runtime.Limits{Calls: 1, CallTime: time.Minute})
	stop := b.block(t, 1)
	waiting := make(chan error, 1)
	go func() {
		_, err := invoke(b.Module, `"fine"`)
		waiting <- err
	}()

	ended, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, b.Close(ended), context.Canceled, "a call runs")
	requireReason(t, abi.ReasonUnavailable, <-waiting)
	_, err := invoke(b.Module, `"fine"`)
	requireReason(t, abi.ReasonUnavailable, err)
	require.ErrorIs(t, r.Close(ended), context.Canceled, "so the engine stays open")
	_, err = tryLoad(r, wt.Allowing("guard"))
	require.ErrorIs(t, err, runtime.ErrClosed)

	closed := make(chan error, 1)
	go func() { closed <- b.Close(context.Background()) }()
	select {
	case err := <-closed:
		t.Fatalf("closed under a running call: %v", err)
	default:
	}
	requireReason(t, abi.ReasonCancelled, stop())
	require.NoError(t, <-closed)
	require.NoError(t, b.Close(context.Background()), "closing twice is fine")
	require.NoError(t, b.Close(ended), "even with no time to wait")
}

func TestCloseOfTheRuntimeClosesModules(t *testing.T) {
	noLeaks(t)
	engine := newEngine(t, on{})
	r := runtime.New(engine)
	require.Equal(t, engine.Name(), r.Engine())
	m := load(t, r, wt.Allowing("guard"))
	requireWorks(t, m, `{}`)
	require.NoError(t, r.Close(context.Background()))
	_, err := invoke(m, `{}`)
	requireReason(t, abi.ReasonUnavailable, err)
	require.NoError(t, r.Close(context.Background()))
}

// Invocations, loads and closes at once: every call ends with a result or one
// of the reasons that fit, and nothing is left.
func TestHammer(t *testing.T) {
	noLeaks(t)
	r := newRuntime(t, on{})
	wasm := guard(func(*wt.Reactor) []byte { return wt.Unreachable })
	var current atomic.Pointer[runtime.Module]
	current.Store(load(t, r, wasm))
	done := make(chan struct{})
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			payload := []string{`"fine"`, misbehave}[i%2]
			for {
				select {
				case <-done:
					return
				default:
				}
				inv := call(payload)
				if i == 5 {
					inv.Timeout = time.Microsecond
				}
				_, err := current.Load().Invoke(context.Background(), inv)
				if e := abi.AsError(err, "", ""); e != nil {
					switch e.Reason {
					case abi.ReasonTrap, abi.ReasonBusy, abi.ReasonUnavailable, abi.ReasonTimeout:
					default:
						t.Errorf("unexpected: %v", err)
					}
				}
			}
		})
	}
	for range 50 {
		next, err := tryLoad(r, wasm)
		if err != nil {
			t.Error(err)
			break
		}
		if err := current.Swap(next).Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
	close(done)
	wg.Wait()
}

// The runtime is closed while calls run and modules load.
func TestCloseUnderLoad(t *testing.T) {
	noLeaks(t)
	for range 5 {
		engine := newEngine(t, on{})
		r := runtime.New(engine, runtime.WithLogger(slog.New(slog.DiscardHandler)))
		m := load(t, r, wt.Allowing("guard"))
		var started, ended sync.WaitGroup
		started.Add(4)
		for range 2 {
			ended.Go(func() {
				requireWorks(t, m, `{}`)
				started.Done()
				for {
					if _, err := invoke(m, `{}`); err != nil {
						if e := abi.AsError(err, "", ""); e.Reason != abi.ReasonUnavailable {
							t.Errorf("unexpected: %v", err)
						}
						return
					}
				}
			})
			ended.Go(func() {
				started.Done()
				for {
					if _, err := tryLoad(r, wt.Allowing("guard")); err != nil {
						if !errors.Is(err, runtime.ErrClosed) {
							t.Errorf("unexpected: %v", err)
						}
						return
					}
				}
			})
		}
		started.Wait()
		require.NoError(t, r.Close(context.Background()))
		ended.Wait()
	}
}

// An error of an engine that is no fault of the guest's has a reason too.
func TestAnEngineThatOnlyFails(t *testing.T) {
	r := runtime.New(failingEngine{})
	_, err := tryLoad(r, wt.Allowing("guard"))
	require.ErrorContains(t, err, "guest.wasm: making an instance failed (trap): no instance today")
	require.NoError(t, r.Close(context.Background()))
}

type failingEngine struct{}

func (failingEngine) Name() string                                            { return "failing" }
func (failingEngine) Close(context.Context) error                             { return nil }
func (failingEngine) Reset() memory.Way                                       { return memory.Fresh }
func (f failingEngine) Compile(context.Context, []byte) (runtime.Code, error) { return f, nil }
func (failingEngine) Instantiate(context.Context, runtime.Room) (runtime.Instance, error) {
	return nil, errors.New("no instance today")
}

func BenchmarkInvoke(b *testing.B) {
	r := newRuntime(b, on{})
	m := load(b, r, wt.Allowing("guard"))
	inv := call(`{"name":"tool","arguments":{"text":"some words of a request"}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.Invoke(context.Background(), inv); err != nil {
			b.Fatal(err)
		}
	}
}
