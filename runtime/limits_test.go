package runtime_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	wt "github.com/weir-mcp/weir/internal/wasmtest"
	"github.com/weir-mcp/weir/runtime"
)

const misbehave = `"x"` // the payload for which a guard does what its test wants

// tooMuchMemory grows memory past the limit of 1 MiB and checks that it gets -1.
func tooMuchMemory(then []byte) func(r *wt.Reactor) []byte {
	return func(*wt.Reactor) []byte {
		return wt.Seq(wt.I32(100), wt.MemoryGrow, wt.I32(-1), wt.I32Eq, wt.If(then))
	}
}

// stopAfter is the limit of calls that are to be stopped: long enough for a call
// that is not to, on a busy machine.
const stopAfter = 100 * time.Millisecond

var endless = wt.Loop(wt.Br(0))

// Every fault of a guest has its reason, end to end, and the next call of the
// same module works.
func TestFaultsHaveReasons(t *testing.T) {
	importExit := func(m *wt.Module) { m.Import("wasi_snapshot_preview1", "proc_exit", "i:") }
	const procExit = wt.Func(3) // the fourth import
	for name, c := range map[string]struct {
		wasm   []byte
		limit  func(l *runtime.Limits)
		reason abi.Reason
	}{
		"trap": {
			wasm:   guard(func(*wt.Reactor) []byte { return wt.Unreachable }),
			reason: abi.ReasonTrap,
		},
		"division by zero": {
			wasm:   guard(func(*wt.Reactor) []byte { return wt.Seq(wt.I32(1), wt.I32(0), wt.I32DivU, wt.Drop) }),
			reason: abi.ReasonTrap,
		},
		"access outside memory": {
			wasm:   guard(func(*wt.Reactor) []byte { return wt.Seq(wt.I32(-1), wt.Load(0), wt.Drop) }),
			reason: abi.ReasonTrap,
		},
		"input to an address outside memory": {
			wasm:   guard(func(r *wt.Reactor) []byte { return wt.Seq(wt.I32(-1), wt.Call(r.Input)) }),
			reason: abi.ReasonTrap,
		},
		"log from an address outside memory": {
			wasm: guard(func(r *wt.Reactor) []byte {
				return wt.Seq(wt.I32(1), wt.I32(-1), wt.I32(1), wt.Call(r.Log))
			}),
			reason: abi.ReasonTrap,
		},
		"exit zero": {
			wasm:   guard(func(*wt.Reactor) []byte { return wt.Seq(wt.I32(0), wt.Call(procExit)) }, importExit),
			reason: abi.ReasonExit,
		},
		"exit with the code that the engine uses for deadlines": {
			wasm:   guard(func(*wt.Reactor) []byte { return wt.Seq(wt.I32(-0x10000001), wt.Call(procExit)) }, importExit),
			reason: abi.ReasonExit,
		},
		"exit with the code that the engine uses for cancellations": {
			wasm:   guard(func(*wt.Reactor) []byte { return wt.Seq(wt.I32(-1), wt.Call(procExit)) }, importExit),
			reason: abi.ReasonExit,
		},
		"memory, then a trap": {
			wasm:   guard(tooMuchMemory(wt.Unreachable)),
			limit:  func(l *runtime.Limits) { l.Memory = 1 << 20 },
			reason: abi.ReasonMemory,
		},
		"memory, then an exit": {
			wasm:   guard(tooMuchMemory(wt.Seq(wt.I32(2), wt.Call(procExit))), importExit),
			limit:  func(l *runtime.Limits) { l.Memory = 1 << 20 },
			reason: abi.ReasonMemory,
		},
		"table growth": {
			wasm: func() []byte {
				r := wt.NewReactor(wt.Validator("guard"))
				r.Table(1)
				r.Invoke("", takeInput(r), when('x',
					wt.RefNullFunc, wt.I32(1<<30), wt.TableGrow0, wt.I32(-1), wt.I32Eq, wt.If(wt.Unreachable)),
					// Within the limit it works.
					wt.RefNullFunc, wt.I32(9), wt.TableGrow0, wt.I32(1), wt.I32Ne, wt.If(wt.Unreachable),
					r.Answer(`{"result":{"valid":true}}`))
				return r.Bytes()
			}(),
			limit:  func(l *runtime.Limits) { l.TableElements = 10 },
			reason: abi.ReasonMemory,
		},
		"a loop without end": {
			wasm:   guard(func(*wt.Reactor) []byte { return endless }),
			limit:  func(l *runtime.Limits) { l.CallTime = stopAfter },
			reason: abi.ReasonTimeout,
		},
		"a loop that logs without end": {
			wasm: guard(func(r *wt.Reactor) []byte {
				return wt.Loop(wt.I32(1), wt.I32(0), wt.I32(200<<10), wt.Call(r.Log), wt.Br(0))
			}),
			limit:  func(l *runtime.Limits) { l.CallTime = stopAfter },
			reason: abi.ReasonTimeout,
		},
		"a loop that outputs without end": {
			wasm: guard(func(r *wt.Reactor) []byte {
				return wt.Loop(wt.I32(0), wt.I32(200<<10), wt.Call(r.Output), wt.Br(0))
			}),
			limit:  func(l *runtime.Limits) { l.CallTime = stopAfter },
			reason: abi.ReasonTimeout,
		},
		"randomness without end": {
			wasm: guard(func(*wt.Reactor) []byte {
				return wt.Loop(wt.I32(0), wt.I32(200<<10), wt.Call(3), wt.Drop, wt.Br(0))
			}, func(m *wt.Module) { m.Import("wasi_snapshot_preview1", "random_get", "ii:i") }),
			limit:  func(l *runtime.Limits) { l.CallTime = stopAfter },
			reason: abi.ReasonTimeout,
		},
		"output outside memory": {
			wasm: guard(func(r *wt.Reactor) []byte {
				return wt.Seq(wt.I32(4*64<<10-1), wt.I32(2), wt.Call(r.Output))
			}),
			reason: abi.ReasonBadOutput,
		},
		"output whose address and length overflow": {
			wasm: guard(func(r *wt.Reactor) []byte {
				return wt.Seq(wt.I32(-16), wt.I32(32), wt.Call(r.Output))
			}),
			reason: abi.ReasonBadOutput,
		},
		"output of 1 GiB": {
			wasm:   guard(func(r *wt.Reactor) []byte { return wt.Seq(wt.I32(0), wt.I32(1<<30), wt.Call(r.Output)) }),
			reason: abi.ReasonBadOutput,
		},
		"output over the limit": {
			wasm: guard(func(r *wt.Reactor) []byte {
				return wt.Seq(wt.I32(0), wt.I32(64<<10+1025), wt.Call(r.Output))
			}),
			limit:  func(l *runtime.Limits) { l.OutputBytes = 1024 },
			reason: abi.ReasonOutputTooLarge,
		},
		"a return that is not zero": {
			wasm: guard(func(r *wt.Reactor) []byte {
				return wt.Seq(r.Answer(`{"result":{"valid":true}}`), wt.Drop, wt.I32(1), wt.Return)
			}),
			reason: abi.ReasonGuest,
		},
		"a negative return": {
			wasm:   guard(func(*wt.Reactor) []byte { return wt.Seq(wt.I32(-1), wt.Return) }),
			reason: abi.ReasonGuest,
		},
		"no answer": {
			wasm:   guard(func(*wt.Reactor) []byte { return wt.Seq(wt.I32(0), wt.Return) }),
			reason: abi.ReasonBadOutput,
		},
	} {
		t.Run(name, func(t *testing.T) {
			onEveryEngine(t, func(t *testing.T, r *runtime.Runtime) {
				m := load(t, r, c.wasm, limited(func(l *runtime.Limits) {
					if c.limit != nil {
						c.limit(l)
					}
				}))
				for range 2 {
					_, err := invoke(m, misbehave)
					e := requireReason(t, c.reason, err)
					require.Equal(t, "guard", e.Interceptor)
					require.Equal(t, abi.Request, e.Phase)
					if c.reason == abi.ReasonTimeout {
						require.Equal(t, stopAfter, e.Limit)
					}
					requireWorks(t, m, `"fine"`)
				}
			})
		})
	}
}

// A module can reach its limits exactly.
func TestWhatLimitsAllow(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, r *runtime.Runtime) {
		t.Run("memory", func(t *testing.T) {
			m := load(t, r, guard(func(*wt.Reactor) []byte {
				return wt.Seq(wt.I32(12), wt.MemoryGrow, wt.I32(4), wt.I32Ne, wt.If(wt.Unreachable),
					wt.I32(1<<20-4), wt.I32(7), wt.Store(0),
					wt.I32(1<<20-4), wt.Load(0), wt.I32(7), wt.I32Ne, wt.If(wt.Unreachable))
			}), limited(func(l *runtime.Limits) { l.Memory = 1 << 20 }))
			requireWorks(t, m, misbehave)
		})
		t.Run("a refused growth need not kill", func(t *testing.T) {
			m := load(t, r, guard(tooMuchMemory(nil)), limited(func(l *runtime.Limits) { l.Memory = 1 << 20 }))
			requireWorks(t, m, misbehave)
		})
		t.Run("a module's own maximum holds", func(t *testing.T) {
			g := wt.NewReactor(wt.Validator("guard"))
			g.Memory(4, 5)
			g.Invoke("", takeInput(g), when('x',
				wt.I32(1), wt.MemoryGrow, wt.I32(4), wt.I32Ne, wt.If(wt.Unreachable),
				wt.I32(1), wt.MemoryGrow, wt.I32(-1), wt.I32Ne, wt.If(wt.Unreachable)),
				g.Answer(`{"result":{"valid":true}}`))
			m := load(t, r, g.Bytes())
			requireWorks(t, m, misbehave)
			requireWorks(t, settled(t, m), misbehave)
		})
		t.Run("a table's own maximum holds", func(t *testing.T) {
			g := wt.NewReactor(wt.Validator("guard"))
			g.Table(1, 2)
			g.Invoke("", wt.RefNullFunc, wt.I32(1), wt.TableGrow0, wt.I32(1), wt.I32Ne, wt.If(wt.Unreachable),
				wt.RefNullFunc, wt.I32(1), wt.TableGrow0, wt.I32(-1), wt.I32Ne, wt.If(wt.Unreachable),
				g.Answer(`{"result":{"valid":true}}`))
			requireWorks(t, load(t, r, g.Bytes()), `{}`)
		})
		t.Run("input", func(t *testing.T) {
			m := load(t, r, wt.Allowing("guard"), limited(func(l *runtime.Limits) { l.InputBytes = 10 }))
			requireWorks(t, m, `"12345678"`)
			_, err := invoke(m, `"123456789"`)
			requireReason(t, abi.ReasonPayloadTooLarge, err)
		})
		t.Run("output", func(t *testing.T) {
			g := wt.NewReactor(wt.Validator("guard"))
			answer := g.Text(`{"result":{"valid":true}}` + strings.Repeat(" ", 64<<10))
			g.Memory(8)
			g.Invoke("", answer, wt.Call(g.Output), wt.I32(0))
			m := load(t, r, g.Bytes(), limited(func(l *runtime.Limits) { l.OutputBytes = 25 }))
			requireWorks(t, m, `{}`)
		})
	})
}

// The three deadlines of a call are told apart.
func TestWhoseDeadlineItWas(t *testing.T) {
	r := newRuntime(t, on{})
	wasm := guard(func(*wt.Reactor) []byte { return endless })
	long := load(t, r, wasm)
	short := load(t, r, wasm, limited(func(l *runtime.Limits) { l.CallTime = stopAfter }))

	inv := call(misbehave)
	_, err := short.Invoke(context.Background(), inv)
	require.Equal(t, stopAfter, requireReason(t, abi.ReasonTimeout, err).Limit, "the module's own")

	inv.Timeout = 30 * time.Millisecond
	_, err = long.Invoke(context.Background(), inv)
	e := requireReason(t, abi.ReasonTimeout, err)
	require.Equal(t, 30*time.Millisecond, e.Limit, "the invocation's")
	require.JSONEq(t, `{"interceptor":"guard","reason":"timeout","timeoutMs":30,"phase":"request"}`, string(e.AppendData(nil)))

	inv.Timeout = time.Minute
	_, err = short.Invoke(context.Background(), inv)
	require.Equal(t, stopAfter, requireReason(t, abi.ReasonTimeout, err).Limit, "timeoutMs lowers only")

	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Millisecond)
	defer cancel()
	_, err = long.Invoke(ctx, inv)
	e = requireReason(t, abi.ReasonTimeout, err)
	require.Positive(t, e.Limit, "the caller's: what was left of it when the call came")
	require.LessOrEqual(t, e.Limit, 40*time.Millisecond)

	_, err = long.Invoke(ctx, inv)
	requireReason(t, abi.ReasonTimeout, err)

	ctx, cancel = context.WithCancel(context.Background())
	time.AfterFunc(20*time.Millisecond, cancel)
	_, err = long.Invoke(ctx, inv)
	requireReason(t, abi.ReasonCancelled, err)
	_, err = long.Invoke(ctx, inv)
	requireReason(t, abi.ReasonCancelled, err)

	requireWorks(t, long, `"fine"`)
	requireWorks(t, short, `"fine"`)
}

// blocker loads a module, and makes calls that run until they are cancelled.
type blocker struct {
	*runtime.Module
	logs logBuffer
}

func newBlocker(t *testing.T, r *runtime.Runtime, l runtime.Limits) *blocker {
	b := &blocker{}
	b.Module = load(t, r, guard(func(r *wt.Reactor) []byte {
		return wt.Seq(wt.I32(1), r.Text("running"), wt.Call(r.Log), endless)
	}), logged(&b.logs), limited(func(to *runtime.Limits) { *to = l }))
	return b
}

// block starts a call that runs until stop, and waits until n calls have begun.
func (b *blocker) block(t *testing.T, n int) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		_, err := b.Invoke(ctx, call(misbehave))
		done <- err
	}()
	require.Eventually(t, func() bool { return len(b.logs.records(t)) >= n }, 10*time.Second, time.Millisecond)
	return func() error {
		cancel()
		return <-done
	}
}

func TestBusyPastTheQueue(t *testing.T) {
	noLeaks(t)
	r := newRuntime(t, on{})
	b := newBlocker(t, r, runtime.Limits{Calls: 1, Queue: 1, CallTime: time.Minute})
	stop := b.block(t, 1)

	// Of three more calls one waits and the others are refused at once.
	ctx, leave := context.WithCancel(context.Background())
	ended := make(chan error, 3)
	for range 3 {
		go func() {
			_, err := b.Invoke(ctx, call(`"fine"`))
			ended <- err
		}()
	}
	requireReason(t, abi.ReasonBusy, <-ended)
	requireReason(t, abi.ReasonBusy, <-ended)

	// Who gives up waiting makes room.
	leave()
	requireReason(t, abi.ReasonCancelled, <-ended)

	// timeoutMs includes the queue.
	inv := call(`"fine"`)
	inv.Timeout = 5 * time.Millisecond
	_, err := b.Invoke(context.Background(), inv)
	require.Equal(t, 5*time.Millisecond, requireReason(t, abi.ReasonTimeout, err).Limit)

	requireReason(t, abi.ReasonCancelled, stop())
	requireWorks(t, b.Module, `"fine"`)
}

// A module's own limit is running time only: waiting longer than it is no fault.
func TestTheWaitIsNotRunningTime(t *testing.T) {
	r := newRuntime(t, on{})
	m := load(t, r, guard(func(*wt.Reactor) []byte { return endless }),
		limited(func(l *runtime.Limits) { *l = runtime.Limits{Calls: 1, Queue: 100, CallTime: stopAfter} }))
	results := make(chan error, 6)
	for range 5 { // in turn, half a second in all
		go func() {
			_, err := invoke(m, misbehave)
			results <- err
		}()
	}
	for range 5 {
		require.Equal(t, stopAfter, requireReason(t, abi.ReasonTimeout, <-results).Limit)
	}
	requireWorks(t, m, `"fine"`)
}

func TestLimitsThatMakeNoSense(t *testing.T) {
	r := newRuntime(t, on{})
	for want, f := range map[string]func(l *runtime.Limits){
		"limit CallTime: -1s is negative":       func(l *runtime.Limits) { l.CallTime = -time.Second },
		"limit Memory: 1 bytes are less than":   func(l *runtime.Limits) { l.Memory = 1 },
		"limit Memory: 1099511627776 bytes are": func(l *runtime.Limits) { l.Memory = 1 << 40 },
		"limit Calls: -1 is negative":           func(l *runtime.Limits) { l.Calls = -1 },
	} {
		_, err := tryLoad(r, wt.Allowing("guard"), limited(f))
		require.ErrorContains(t, err, "guest.wasm: "+want)
	}
}

func TestNoQueue(t *testing.T) {
	r := newRuntime(t, on{})
	b := newBlocker(t, r, runtime.Limits{Calls: 1, Queue: -1, CallTime: time.Minute})
	stop := b.block(t, 1)
	_, err := invoke(b.Module, `"fine"`)
	requireReason(t, abi.ReasonBusy, err)
	requireReason(t, abi.ReasonCancelled, stop())
}

// A gateway bounds its own calls; a burst of them is served, not refused.
func TestWhoIsPatientWaitsPastTheQueue(t *testing.T) {
	r := newRuntime(t, on{})
	b := newBlocker(t, r, runtime.Limits{Calls: 1, Queue: -1, CallTime: time.Minute})
	stop := b.block(t, 1)
	const burst = 50
	results := make(chan error, burst)
	inv := call(`"fine"`)
	inv.Patient = true
	for range burst {
		go func() {
			_, err := b.Invoke(context.Background(), inv)
			results <- err
		}()
	}
	hurried := inv
	hurried.Timeout = 5 * time.Millisecond
	_, err := b.Invoke(context.Background(), hurried)
	require.Equal(t, 5*time.Millisecond, requireReason(t, abi.ReasonTimeout, err).Limit, "patience ends with the time")

	requireReason(t, abi.ReasonCancelled, stop())
	for range burst {
		require.NoError(t, <-results)
	}
}
