package runtime_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	goruntime "runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	wt "github.com/weir-mcp/weir/internal/wasmtest"
	"github.com/weir-mcp/weir/runtime"
)

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

// state is what of the process must stay flat.
type state struct {
	accounted                         int64
	resident                          int64 // bytes
	goroutines, mappings, descriptors int
}

// stateOf is that with no instance waiting for a call.
func stateOf(r *runtime.Runtime) state {
	runtime.CloseIdle(r)
	debug.FreeOSMemory()
	s := state{resident: resident(), goroutines: goruntime.NumGoroutine()}
	s.accounted, _ = r.Memory()
	if b, err := os.ReadFile("/proc/self/maps"); err == nil {
		s.mappings = strings.Count(string(b), "\n")
	}
	if list, err := os.ReadDir("/proc/self/fd"); err == nil {
		s.descriptors = len(list)
	}
	return s
}

// soaked is a kind of module, with the reason that its bad calls end for.
type soaked struct {
	load   func(t testing.TB, r *runtime.Runtime) *runtime.Module
	bad    string // payload; "" for misbehave
	reason abi.Reason
	or     abi.Reason // or this one
	short  bool       // its time is so short that any call may be late
}

func soakedKinds() (kinds []soaked) {
	importExit := func(m *wt.Module) { m.Import("wasi_snapshot_preview1", "proc_exit", "i:") }
	add := func(reason abi.Reason, wasm []byte, change ...func(*runtime.Limits)) {
		limits := limited(func(l *runtime.Limits) {
			l.Fuel, l.Queue = hiderFuel, 1000
			for _, f := range change {
				f(l)
			}
		})
		kinds = append(kinds, soaked{reason: reason, load: func(t testing.TB, r *runtime.Runtime) *runtime.Module {
			return load(t, r, wasm, limits)
		}})
	}
	add(abi.ReasonTrap, guard(func(*wt.Reactor) []byte { return wt.Unreachable }))
	add(abi.ReasonExit, guard(func(*wt.Reactor) []byte { return wt.Seq(wt.I32(0), wt.Call(3)) }, importExit))
	add(abi.ReasonGuest, guard(func(*wt.Reactor) []byte { return wt.Seq(wt.I32(50), wt.MemoryGrow, wt.Drop, wt.I32(3), wt.Return) }))
	add("", guard(func(*wt.Reactor) []byte {
		return wt.Seq(wt.I32(50), wt.MemoryGrow, wt.Drop, wt.I32(1<<20), wt.I32(1), wt.Store(0))
	}))
	add(abi.ReasonMemory, guard(func(*wt.Reactor) []byte {
		return wt.Seq(wt.Loop(wt.I32(1), wt.MemoryGrow, wt.I32(-1), wt.I32Ne, wt.BrIf(0)), wt.Unreachable)
	}), func(l *runtime.Limits) { l.Memory = 1 << 20 })
	add(abi.ReasonFuel, guard(func(*wt.Reactor) []byte { return endless }))
	add(abi.ReasonFuel, recursive())
	kinds[len(kinds)-1].or = abi.ReasonStack // where the engine's is small
	add(abi.ReasonTimeout, guard(func(*wt.Reactor) []byte { return endless }), func(l *runtime.Limits) { l.CallTime, l.Fuel = time.Millisecond, 0 })
	kinds[len(kinds)-1].short = true
	add(abi.ReasonBadOutput, guard(func(*wt.Reactor) []byte { return wt.Seq(wt.I32(0), wt.Return) }))
	add(abi.ReasonOutputTooLarge, guard(func(r *wt.Reactor) []byte {
		return wt.Seq(wt.I32(0), wt.I32(100<<10), wt.Call(r.Output))
	}), func(l *runtime.Limits) { l.OutputBytes = 1 << 10 })
	add("", guard(func(r *wt.Reactor) []byte {
		return wt.Seq(wt.I32(200), wt.Set(1),
			wt.Loop(wt.I32(1), r.Text("flood"), wt.Call(r.Log), wt.Get(1), wt.I32(1), wt.I32Sub, wt.Set(1), wt.Get(1), wt.BrIf(0)))
	}))
	add("", command(func(*wt.Module, commandFuncs) []byte { return nil }))
	add(abi.ReasonTrap, command(func(*wt.Module, commandFuncs) []byte { return wt.Unreachable }))
	for _, also := range hideouts {
		add(abi.ReasonGuest, hider(also))
	}
	kinds = append(kinds, soaked{
		load: func(t testing.TB, r *runtime.Runtime) *runtime.Module {
			return loadGo(t, r, limited(func(l *runtime.Limits) { l.Queue = 1000 }))
		},
		bad: tool("panic"), reason: abi.ReasonGuest,
	})
	return kinds
}

// recursive is a module that calls itself for ever.
func recursive() []byte {
	r := wt.NewReactor(wt.Validator("guard"))
	const itself = wt.Func(3)
	f := r.Func("i:i", "", wt.Get(0), wt.Call(itself), wt.I32(1), wt.I32Add)
	r.Invoke("", takeInput(r), when('x', wt.I32(1), wt.Call(f), wt.Drop), r.Answer(`{"result":{"valid":true}}`))
	return r.Bytes()
}

// soakedModule is one that is exchanged while it is called.
type soakedModule struct {
	soaked
	mu     sync.RWMutex
	module *runtime.Module // nil while there is none
}

func (s *soakedModule) get() *runtime.Module {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.module
}

func (s *soakedModule) exchange(t *testing.T, m *runtime.Module) {
	s.mu.Lock()
	old := s.module
	s.module = m
	s.mu.Unlock()
	if old != nil {
		if err := old.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// Calls of 50 modules with faults of every kind, cancelled and late ones, among
// reloads, closes, loads that fail and states that are captured again, from four
// goroutines: memory, mappings, descriptors and goroutines stay flat.
func TestSoak(t *testing.T) {
	r := newRuntime(t, on{cacheDir: goCache})
	kinds := soakedKinds()
	modules := make([]*soakedModule, 50)
	for i := range modules {
		kind := kinds[i%len(kinds)]
		if kind.bad != "" && i >= len(kinds) {
			kind = kinds[0] // one Go guest is enough
		}
		modules[i] = &soakedModule{soaked: kind, module: kind.load(t, r)}
	}
	act := func(random *rand.Rand) {
		s := modules[random.IntN(len(modules))]
		switch dice := random.IntN(10_000); {
		case dice < 20 || s.get() == nil && dice < 2000:
			s.exchange(t, s.load(t, r))
		case dice < 30:
			s.exchange(t, nil)
		case dice < 40:
			if m := s.get(); m != nil {
				runtime.Renew(m)
			}
		case dice < 45:
			runtime.CloseIdle(r)
		case dice < 55:
			if _, err := tryLoad(r, stages("start", wt.Unreachable)); err == nil {
				t.Error("a module that traps when it starts was loaded")
			}
		default:
			s.call(t, random)
		}
	}
	round := func(total int) {
		var wg sync.WaitGroup
		for g := range 4 {
			random := rand.New(rand.NewPCG(uint64(g), uint64(total)))
			wg.Go(func() {
				for range total / 4 {
					act(random)
				}
			})
		}
		wg.Wait()
		for _, s := range modules {
			if s.get() == nil {
				s.exchange(t, s.load(t, r))
			}
			settled(t, s.get())
		}
	}
	round(calls(4_000, 50_000))
	before := stateOf(r)
	round(calls(16_000, 950_000))
	after := stateOf(r)
	t.Logf("before %+v, after %+v", before, after)
	require.Equal(t, before.accounted, after.accounted)
	require.LessOrEqual(t, after.mappings, before.mappings+30, "Go's own heap has some")
	require.LessOrEqual(t, after.descriptors, before.descriptors)
	require.LessOrEqual(t, after.goroutines, before.goroutines)
	if !raced { // the detector's own memory grows
		require.Less(t, after.resident, before.resident+64<<20)
	}
	for _, s := range modules {
		s.exchange(t, nil)
	}
	used, _ := r.Memory()
	require.Zero(t, used)
	require.Less(t, stateOf(r).mappings, before.mappings)
}

// call makes one call, good or bad, and checks that it ends as it should.
func (s *soakedModule) call(t *testing.T, random *rand.Rand) {
	m := s.get()
	if m == nil {
		return
	}
	inv, reason := call(`"fine"`), abi.Reason("")
	if random.IntN(10) < 3 {
		inv, reason = call(misbehave), s.reason
		if s.bad != "" {
			inv = call(s.bad)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	may := map[abi.Reason]bool{reason: true, abi.ReasonUnavailable: true, abi.ReasonTimeout: s.short}
	if reason != "" && s.or != "" {
		may[s.or] = true
	}
	switch random.IntN(50) {
	case 0:
		cancel()
		may[abi.ReasonCancelled] = true
	case 1:
		inv.Timeout = time.Duration(1+random.IntN(100)) * time.Microsecond
		may[abi.ReasonTimeout] = true
	}
	_, err := m.Invoke(ctx, inv)
	got := abi.Reason("")
	if e := abi.AsError(err, "", ""); e != nil {
		got = e.Reason
	}
	if !may[got] {
		t.Errorf("a call ended for %q instead of one of %v: %v", got, may, err)
	}
}
