package runtime_test

import (
	"context"
	goruntime "runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	wt "github.com/weir-mcp/weir/internal/wasmtest"
	"github.com/weir-mcp/weir/runtime"
	"github.com/weir-mcp/weir/runtime/memory"
)

// What users and reviewers of neighbouring systems reported of their sandboxes,
// each under its name. Those of whole folders are in package library. That
// nothing is left behind is looked into much further by TestIsolation.
func TestFieldCases(t *testing.T) {
	for name, test := range map[string]func(t *testing.T){
		"loop_free_bomb": func(t *testing.T) { stopped(t, bomb(33)) },
		"tight_loop": func(t *testing.T) {
			stopped(t, guard(func(*wt.Reactor) []byte { return endless }))
			t.Run("others are not held up", aLoopHoldsUpNobody)
		},
		"big_fill":           bigFill,
		"deep_recursion":     deepRecursion,
		"exit_zero":          exitZero,
		"stuck_allocator":    stuckAllocator,
		"secret_left_behind": secretLeftBehind,
		"grew_during_call":   grewDuringCall,
		"lying_output":       lyingOutput,
		"poisoned_payload":   poisonedPayload,
	} {
		t.Run(name, test)
	}
}

// stopped checks that a call of the module ends at its limit of time, and of
// fuel, and that the next one works. (How soon is measured by BenchmarkStopping.)
func stopped(t *testing.T, wasm []byte) {
	onEveryEngine(t, func(t *testing.T, r *runtime.Runtime) {
		m := settled(t, load(t, r, wasm, limited(func(l *runtime.Limits) { l.CallTime = stopAfter })))
		for range 2 {
			began := time.Now()
			_, err := invoke(m, misbehave)
			require.Equal(t, stopAfter, requireReason(t, abi.ReasonTimeout, err).Limit)
			require.Less(t, time.Since(began), 5*time.Second)
			requireWorks(t, m, `"fine"`)
		}
		m = settled(t, load(t, r, wasm, limited(func(l *runtime.Limits) { l.Fuel = 500_000 })))
		for range 2 {
			_, err := invoke(m, misbehave)
			requireReason(t, abi.ReasonFuel, err)
			requireWorks(t, m, `"fine"`)
		}
	})
}

// bomb is a module of n functions, each calling the next twice, without a loop.
func bomb(n int) []byte {
	r := wt.NewReactor(wt.Validator("guard"))
	last := r.Func("", "")
	for range n - 1 {
		last = r.Func("", "", wt.Call(last), wt.Call(last))
	}
	r.Invoke("", takeInput(r), when('x', wt.Call(last)), r.Answer(`{"result":{"valid":true}}`))
	return r.Bytes()
}

// The collector of the host goes on while a guest loops, and so do other calls,
// of its module and of others.
func aLoopHoldsUpNobody(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, r *runtime.Runtime) {
		b := newBlocker(t, r, runtime.Limits{Calls: 2, CallTime: time.Minute})
		other := load(t, r, wt.Allowing("guard"))
		stop := b.block(t, 1)
		for range 10 {
			goruntime.GC()
			requireWorks(t, b.Module, `"fine"`)
			requireWorks(t, other, `"fine"`)
		}
		requireReason(t, abi.ReasonCancelled, stop()) // so it was running all the time
	})
}

var memoryFill = []byte{0xfc, 11, 0}

// bigFill is filling all memory, in one piece after the other and in a loop.
func bigFill(t *testing.T) {
	for name, wasm := range map[string][]byte{
		"60 times": guard(func(*wt.Reactor) []byte {
			all := make([][]byte, 0, 61)
			all = append(all, wt.Seq(wt.I32(1020), wt.MemoryGrow, wt.Drop)) // to the limit of 64 MiB
			for range 60 {
				all = append(all, wt.Seq(wt.I32(0), wt.I32(1), wt.I32(64<<20), memoryFill))
			}
			// 60 of them do not last long enough on every machine.
			return wt.Loop(wt.Seq(all...), wt.Br(0))
		}),
		"a little at a time": guard(func(*wt.Reactor) []byte {
			return wt.Loop(wt.I32(0), wt.I32(1), wt.I32(4*64<<10), memoryFill, wt.Br(0))
		}),
	} {
		t.Run(name, func(t *testing.T) { stopped(t, wasm) })
	}
}

// deepRecursion ends by the stack or by time, of a guest such as C compilers make
// and of a Go guest, which has its own stack in memory, too.
func deepRecursion(t *testing.T) {
	t.Run("C", func(t *testing.T) {
		onEveryEngine(t, func(t *testing.T, r *runtime.Runtime) {
			g := wt.NewReactor(wt.Validator("guard"))
			recursive := g.Func("I:I", "", wt.Get(0), wt.Get(0), wt.I64(1), wt.I64Add, wt.Call(3), wt.I64Add)
			require.Equal(t, wt.Func(3), recursive)
			g.Invoke("", takeInput(g), when('x', wt.I64(0), wt.Call(recursive), wt.Drop), g.Answer(`{"result":{"valid":true}}`))
			m := load(t, r, g.Bytes())
			for range 2 {
				_, err := invoke(m, misbehave)
				requireReason(t, abi.ReasonStack, err)
				requireWorks(t, m, `"fine"`)
			}
		})
	})
	t.Run("Go", func(t *testing.T) {
		r := newRuntime(t, on{cacheDir: goCache})
		m := settled(t, loadGo(t, r))
		for range 2 {
			inv := call(tool("recursion"))
			inv.Timeout = stopAfter
			_, err := m.Invoke(context.Background(), inv)
			if e := abi.AsError(err, "", ""); e == nil || e.Reason != abi.ReasonTimeout {
				requireReason(t, abi.ReasonStack, err)
			}
			requireWorks(t, m, tool("fine"))
		}
	})
}

func exitZero(t *testing.T) {
	t.Run("C", func(t *testing.T) {
		onEveryEngine(t, func(t *testing.T, r *runtime.Runtime) {
			m := load(t, r, guard(func(*wt.Reactor) []byte { return wt.Seq(wt.I32(0), wt.Call(3)) },
				func(m *wt.Module) { m.Import("wasi_snapshot_preview1", "proc_exit", "i:") }))
			for range 3 {
				_, err := invoke(m, misbehave)
				requireReason(t, abi.ReasonExit, err)
				requireWorks(t, m, `"fine"`)
				settled(t, m)
			}
		})
	})
	t.Run("Go", func(t *testing.T) {
		m := settled(t, loadGo(t, newRuntime(t, on{cacheDir: goCache})))
		_, err := invoke(m, tool("exit"))
		requireReason(t, abi.ReasonExit, err)
		requireWorks(t, m, tool("fine"))
	})
}

// stuckAllocator is an allocator that never frees: a call takes all memory there
// is, and succeeds or dies of it. The next call finds it empty.
func stuckAllocator(t *testing.T) {
	const pages = 64
	g := wt.NewReactor(wt.Validator("guard"))
	top := g.Global(4 * 64 << 10) // of what is allocated
	allocate := wt.Seq(
		wt.I32(1), wt.MemoryGrow, wt.I32(-1), wt.I32Ne, wt.If(
			wt.GlobalGet(top), wt.I32(1), wt.Store(0),
			wt.GlobalGet(top), wt.I32(64<<10), wt.I32Add, wt.GlobalSet(top)))
	all := make([][]byte, 0, pages)
	for range pages {
		all = append(all, allocate)
	}
	g.Invoke("", takeInput(g),
		wt.GlobalGet(top), wt.I32(4*64<<10), wt.I32Ne, wt.If(wt.Unreachable), // it is stuck
		wt.Seq(all...),
		wt.GlobalGet(top), wt.I32(pages*64<<10), wt.I32Ne, wt.If(wt.Unreachable), // it is full
		when('x', wt.Unreachable),
		g.Answer(`{"result":{"valid":true}}`))
	for name, o := range ways() {
		t.Run(name, func(t *testing.T) {
			m := load(t, newRuntime(t, o), g.Bytes(), limited(func(l *runtime.Limits) { l.Memory = pages * 64 << 10 }))
			for range 3 {
				requireWorks(t, m, `"fine"`)
				_, err := invoke(m, misbehave)
				requireReason(t, abi.ReasonMemory, err)
				requireWorks(t, m, `"fine"`)
				settled(t, m)
			}
		})
	}
	t.Run("Go", func(t *testing.T) {
		m := settled(t, loadGo(t, newRuntime(t, on{cacheDir: goCache})))
		for range 2 {
			_, err := invoke(m, tool("memory"))
			requireReason(t, abi.ReasonMemory, err)
			requireWorks(t, m, tool("fine"))
		}
	})
}

// secretLeftBehind is one call that writes to memory, a global and a table, and
// grows, and another that looks.
func secretLeftBehind(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, r *runtime.Runtime) {
		g := wt.NewReactor(wt.Validator("guard"))
		global := g.Global(0)
		g.Table(4)
		nop := g.Func("", "")
		g.Elements(0, nop)
		leak := g.Answer(`{"result":{"valid":false,"severity":"error"}}`)
		g.Invoke("",
			// Look for what an earlier call left in memory, a global, a table or
			// the size of memory.
			wt.I32(200<<10), wt.Load(0),
			wt.GlobalGet(global), wt.I32Add,
			wt.I32(2), wt.TableGet0, wt.RefIsNull, wt.I32Eqz, wt.I32Add,
			wt.MemorySize, wt.I32(4), wt.I32Sub, wt.I32Add,
			wt.If(leak, wt.Return),
			// Leave something behind.
			wt.I32(200<<10), wt.I32(42), wt.Store(0),
			wt.I32(42), wt.GlobalSet(global),
			wt.I32(2), wt.RefFunc(nop), wt.TableSet0,
			wt.I32(1), wt.MemoryGrow, wt.Drop,
			g.Answer(`{"result":{"valid":true}}`))
		m := load(t, r, g.Bytes())
		for range 200 {
			requireWorks(t, m, `{}`)
		}
	})
}

// grewDuringCall ends with the call, and the host stays as small as it was.
func grewDuringCall(t *testing.T) {
	for name, o := range ways() {
		t.Run(name, func(t *testing.T) {
			m := settled(t, load(t, newRuntime(t, o), guard(func(*wt.Reactor) []byte {
				return wt.Seq(wt.I32(160), wt.MemoryGrow, wt.I32(4), wt.I32Ne, wt.If(wt.Unreachable),
					wt.I32(10<<20), wt.I32(1), wt.Store(0), wt.I32(5<<20), wt.I32(1), wt.Store(0))
			})))
			n := calls(500, 10_000)
			if o.reset == memory.PageScan && o.engine != "interpreter" {
				n = 10_000
			} else if o.reset == memory.Fresh {
				n = 100
			}
			for range 100 {
				requireWorks(t, m, misbehave)
			}
			goruntime.GC()
			before := resident()
			for range n {
				requireWorks(t, m, misbehave)
			}
			goruntime.GC()
			require.Less(t, resident(), before+64<<20)
		})
	}
}

// lyingOutput is an answer that is none.
func lyingOutput(t *testing.T) {
	hand := func(ptr, size int32) []byte {
		return guard(func(r *wt.Reactor) []byte { return wt.Seq(wt.I32(ptr), wt.I32(size), wt.Call(r.Output)) })
	}
	say := func(text string) []byte {
		return guard(func(r *wt.Reactor) []byte { return wt.Seq(r.Answer(text), wt.Return) })
	}
	const size = 4 * 64 << 10
	for name, c := range map[string]struct {
		wasm   []byte
		reason abi.Reason
	}{
		"past memory":                 {hand(size-8, 9), abi.ReasonBadOutput},
		"all past memory":             {hand(size, 1), abi.ReasonBadOutput},
		"address and length overflow": {hand(-16, 32), abi.ReasonBadOutput},
		"1 GiB that is not there":     {hand(0, 1<<30), abi.ReasonBadOutput},
		"over the limit": {
			guard(func(r *wt.Reactor) []byte {
				return wt.Seq(wt.I32(100), wt.MemoryGrow, wt.Drop, wt.I32(0), wt.I32(5<<20), wt.Call(r.Output))
			}), abi.ReasonOutputTooLarge,
		},
		"not JSON":      {say("valid: true"), abi.ReasonBadOutput},
		"a null result": {say(`{"result":null}`), abi.ReasonBadOutput},
	} {
		t.Run(name, func(t *testing.T) {
			onEveryEngine(t, func(t *testing.T, r *runtime.Runtime) {
				m := load(t, r, c.wasm)
				for range 2 {
					_, err := invoke(m, misbehave)
					requireReason(t, c.reason, err)
					requireWorks(t, m, `"fine"`)
				}
			})
		})
	}
}

// poisonedPayload makes a module fail a thousand times. Nothing counts that, and
// no other call fails.
func poisonedPayload(t *testing.T) {
	r := newRuntime(t, on{})
	m := load(t, r, guard(func(*wt.Reactor) []byte { return wt.Unreachable }))
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for range 500 {
				_, err := invoke(m, misbehave)
				if e := abi.AsError(err, "", ""); e == nil || e.Reason != abi.ReasonTrap {
					t.Errorf("a poisoned call: %v", err)
				}
			}
		})
		wg.Go(func() {
			for range 500 {
				if _, err := invoke(m, `"fine"`); err != nil {
					t.Errorf("another call: %v", err)
				}
			}
		})
	}
	wg.Wait()
}
