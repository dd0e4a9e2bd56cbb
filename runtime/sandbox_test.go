package runtime_test

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	wt "github.com/weir-mcp/weir/internal/wasmtest"
	"github.com/weir-mcp/weir/runtime"
	"github.com/weir-mcp/weir/runtime/memory"
)

// long has the tests of this file make a million calls instead of some
// thousands: go test ./runtime -run 'Isolation|Soak' -long -timeout 1h.
var long = flag.Bool("long", false, "make a million calls where thousands do")

// calls is how many calls a test makes.
func calls(usual, whenLong int) int {
	if *long {
		return whenLong
	}
	return usual
}

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

// hider is a module that hides a secret wherever it can, and traps when it
// finds one: in its memory, in pages that it grows, in a global, and with tables
// in a table. Its warm-up hides nothing, for it does nothing.
func hider(tables bool) []byte {
	r := wt.NewReactor(wt.Validator("guard"))
	r.Memory(4)
	global := r.Global(0)
	wide := r.GlobalOf(wt.I32(0))
	if tables {
		r.Table(1, 4)
	}
	finds := func(look ...[]byte) []byte { return wt.Seq(wt.Seq(look...), wt.If(wt.Unreachable)) }
	const size, low, high = 4 * 64 << 10, 5000, 4*64<<10 - 8
	body := []([]byte){
		takeInput(r),
		finds(wt.GlobalGet(global)), finds(wt.GlobalGet(wide)),
		finds(wt.I32(low), wt.Load(0)), finds(wt.I32(high), wt.Load(0)),
		finds(wt.I32(2*64<<10), wt.Load(0)),
		finds(wt.MemorySize, wt.I32(4), wt.I32Ne),
		// What it grows it must find empty.
		finds(wt.I32(3), wt.MemoryGrow, wt.I32(4), wt.I32Ne),
		finds(wt.I32(size), wt.Load(0)), finds(wt.I32(size+100_000), wt.Load(0)), finds(wt.I32(size+3*64<<10-8), wt.Load(0)),
	}
	if tables {
		body = append(body,
			finds(wt.TableSize0, wt.I32(1), wt.I32Ne),
			finds(wt.I32(0), wt.TableGet0, wt.RefIsNull, wt.I32Eqz))
	}
	body = append(body,
		wt.I32(0x5ec7e7), wt.GlobalSet(global), wt.I32(-1), wt.GlobalSet(wide),
		wt.I32(low), wt.I32(0x5ec7e7), wt.Store(0), wt.I32(high), wt.I32(0x5ec7e7), wt.Store(0),
		wt.I32(2*64<<10), wt.I32(0x5ec7e7), wt.Store(0),
		wt.I32(size), wt.I32(0x5ec7e7), wt.Store(0), wt.I32(size+100_000), wt.I32(0x5ec7e7), wt.Store(0),
		wt.I32(size+3*64<<10-8), wt.I32(0x5ec7e7), wt.Store(0))
	if tables {
		body = append(body,
			wt.RefNullFunc, wt.I32(1), wt.TableGrow0, wt.Drop,
			wt.I32(0), wt.RefFunc(r.Output), wt.TableSet0)
		r.Elements(0) // names nothing, but is there
	}
	// A secret that is hidden in the middle of a failure, too.
	body = append(body, when('x', wt.I32(7), wt.Return), when('y', wt.Unreachable), r.Answer(`{"result":{"valid":true}}`))
	r.Export(abi.ExportWarmup, r.Func(":i", "", wt.I32(0)))
	if tables {
		// ref.func needs its function to be named outside of code.
		r.ExportAs("named", 0, uint32(r.Output))
	}
	r.Invoke("i", body...)
	return r.Bytes()
}

// secret_left_behind: nothing that a call leaves is found by another, whichever
// way instances are put back, whoever calls at the same time, and whether calls
// succeed or fail.
func TestIsolation(t *testing.T) {
	for name, o := range ways() {
		for _, tables := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, tables %v", name, tables), func(t *testing.T) {
				noLeaks(t)
				m := settled(t, load(t, newRuntime(t, o), hider(tables)))
				n := calls(400, 20_000)
				if o.reset == memory.Fresh || tables {
					require.Contains(t, m.Reset(), memory.Fresh.String())
					n = calls(50, 1000)
				} else {
					require.Equal(t, o.reset.String(), m.Reset())
					if *long && o.engine != "interpreter" && !testing.Short() {
						n = 250_000
					}
				}
				var wg sync.WaitGroup
				for g := range 4 {
					wg.Go(func() {
						for i := range n {
							payload, reason := `"fine"`, abi.Reason("")
							switch (i + g) % 16 {
							case 0:
								payload, reason = `"x"`, abi.ReasonGuest
							case 1:
								payload, reason = `"y"`, abi.ReasonTrap
							}
							_, err := invoke(m, payload)
							if e := abi.AsError(err, "", ""); e == nil && reason != "" || e != nil && e.Reason != reason {
								t.Errorf("call %d: %v", i, err)
								return
							}
						}
					})
				}
				wg.Wait()
			})
		}
	}
}

// The same of a Go guest, whose secret is an ordinary variable.
func TestIsolationOfAGoGuest(t *testing.T) {
	r := newRuntime(t, on{cacheDir: goCache})
	m := settled(t, loadGo(t, r))
	require.Equal(t, memory.Best().String(), m.Reset())
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range calls(100, 10_000) {
				result, err := invoke(m, tool([]string{"look", "leave"}[i%2]))
				if err != nil || !result.Valid {
					t.Errorf("%v %s", err, result.Info)
					return
				}
			}
		})
	}
	wg.Wait()
}

// resident is the process's memory in bytes, or 0 where it cannot be told.
func resident() int64 {
	b, err := os.ReadFile("/proc/self/statm")
	var size, pages int64
	if err != nil {
		return 0
	}
	if _, err := fmt.Sscan(string(b), &size, &pages); err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

// grew_during_call: growth ends with the call, and the host stays as small as it
// was.
func TestGrowthEndsWithTheCall(t *testing.T) {
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

var memoryFill = []byte{0xfc, 11, 0}

// What no engine stops by itself is stopped at its limit, by time and by fuel,
// and the next call works. (How soon is measured by BenchmarkStopping.)
func TestNothingOutlivesItsLimit(t *testing.T) {
	fills := make([][]byte, 0, 400)
	for range 400 {
		fills = append(fills, wt.Seq(wt.I32(0), wt.I32(1), wt.I32(32<<20), memoryFill))
	}
	for name, wasm := range map[string][]byte{
		"loop_free_bomb": bomb(33),
		"tight_loop":     guard(func(*wt.Reactor) []byte { return endless }),
		"big_fill": guard(func(*wt.Reactor) []byte {
			return wt.Seq(wt.I32(510), wt.MemoryGrow, wt.Drop, wt.Seq(fills...))
		}),
		"bulk in a loop": guard(func(*wt.Reactor) []byte {
			return wt.Loop(wt.I32(0), wt.I32(1), wt.I32(4*64<<10), memoryFill, wt.Br(0))
		}),
	} {
		t.Run(name, func(t *testing.T) {
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
		})
	}
}

// The garbage collector of the host goes on while guests loop.
func TestGuestsDoNotHoldUpTheCollector(t *testing.T) {
	r := newRuntime(t, on{})
	b := newBlocker(t, r, runtime.Limits{Calls: 1, CallTime: time.Minute})
	stop := b.block(t, 1)
	for range 10 {
		goruntime.GC()
	}
	requireReason(t, abi.ReasonCancelled, stop())
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

	// 40 pages are left, and 4 more when the waiting instance goes.
	large := func(pages uint32) []byte {
		r := wt.NewReactor(wt.Validator("guard"))
		r.Memory(pages)
		r.Invoke("", r.Answer(`{"result":{"valid":true}}`))
		return r.Bytes()
	}
	big := settled(t, load(t, r, large(22)))
	require.Equal(t, memory.Best().String(), big.Reset())
	requireWorks(t, big, `{}`)
	_, err = tryLoad(r, large(23))
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

// state is what of the process must stay flat.
type state struct {
	goroutines, mappings, descriptors int
}

func processState() state {
	s := state{goroutines: goruntime.NumGoroutine()}
	if b, err := os.ReadFile("/proc/self/maps"); err == nil {
		s.mappings = strings.Count(string(b), "\n")
	}
	if list, err := os.ReadDir("/proc/self/fd"); err == nil {
		s.descriptors = len(list)
	}
	return s
}

// Calls with faults of every kind, reloads and closes, from several goroutines:
// mappings, descriptors, goroutines and accounted memory stay flat.
func TestSoak(t *testing.T) {
	r := newRuntime(t, on{})
	importExit := func(m *wt.Module) { m.Import("wasi_snapshot_preview1", "proc_exit", "i:") }
	kinds := [][]byte{
		guard(func(*wt.Reactor) []byte { return wt.Unreachable }),
		guard(func(*wt.Reactor) []byte { return wt.Seq(wt.I32(0), wt.Call(3)) }, importExit),
		guard(func(*wt.Reactor) []byte { return wt.Seq(wt.I32(50), wt.MemoryGrow, wt.Drop, wt.I32(3), wt.Return) }),
		guard(func(*wt.Reactor) []byte {
			return wt.Seq(wt.I32(50), wt.MemoryGrow, wt.Drop, wt.I32(1<<20), wt.I32(1), wt.Store(0))
		}),
		guard(func(*wt.Reactor) []byte { return endless }),
		hider(true),
		hider(false),
	}
	n := calls(20, 50)
	modules := make([]*runtime.Module, n)
	var locks [50]sync.RWMutex
	loadKind := func(kind int) *runtime.Module {
		return load(t, r, kinds[kind%len(kinds)], limited(func(l *runtime.Limits) { l.Fuel, l.Queue = 2_000_000, 1000 }))
	}
	for i := range modules {
		modules[i] = loadKind(i)
	}
	round := func(total int) {
		var wg sync.WaitGroup
		for g := range 4 {
			random := rand.New(rand.NewPCG(uint64(g), uint64(total)))
			wg.Go(func() {
				for range total / 4 {
					i := random.IntN(n)
					switch random.IntN(300) {
					case 0:
						next := loadKind(random.IntN(len(kinds)))
						locks[i].Lock()
						old := modules[i]
						modules[i] = next
						locks[i].Unlock()
						if err := old.Close(context.Background()); err != nil {
							t.Error(err)
						}
					default:
						locks[i].RLock()
						m := modules[i]
						locks[i].RUnlock()
						_, err := invoke(m, []string{`"fine"`, misbehave}[min(1, random.IntN(10)/7)])
						switch e := abi.AsError(err, "", ""); {
						case e == nil:
						case e.Reason == abi.ReasonBadOutput, e.Reason == abi.ReasonTimeout:
							t.Error(err)
						}
					}
				}
			})
		}
		wg.Wait()
		for _, m := range modules {
			settled(t, m)
		}
	}
	round(calls(4_000, 50_000))
	goruntime.GC()
	before, small := processState(), resident()
	round(calls(16_000, 950_000))
	goruntime.GC()
	after := processState()
	t.Logf("before %+v %d MiB, after %+v %d MiB", before, small>>20, after, resident()>>20)
	// Each module may have some more instances than before; each is 3 mappings.
	require.LessOrEqual(t, after.mappings, before.mappings+n*3*runtime.DefaultLimits().Calls)
	require.LessOrEqual(t, after.descriptors, before.descriptors+n)
	require.LessOrEqual(t, after.goroutines, before.goroutines)
	require.Less(t, resident(), small+128<<20)
	for _, m := range modules {
		require.NoError(t, m.Close(context.Background()))
	}
	used, _ := r.Memory()
	require.Zero(t, used)
	require.Less(t, processState().mappings, before.mappings)
}
