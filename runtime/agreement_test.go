package runtime_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	wt "github.com/weir-mcp/weir/internal/wasmtest"
	"github.com/weir-mcp/weir/runtime"
	"github.com/weir-mcp/weir/runtime/memory"
)

// observed is what a call came to, as far as engines must agree on it.
type observed struct {
	output string
	reason abi.Reason
	fuel   int64
}

func observe(m *runtime.Module, payload string) observed {
	output, fuel, err := runtime.Measured(m, call(payload))
	o := observed{output: string(output), fuel: fuel}
	if e := abi.AsError(err, "", ""); e != nil {
		o.reason = e.Reason
	}
	return o
}

// computations are modules that do something of each kind, and payloads to do it
// with.
func computations() map[string][]byte {
	importRandom := func(m *wt.Module) { m.Import("wasi_snapshot_preview1", "random_get", "ii:i") }
	bulk := func(op ...byte) []byte {
		return wt.Seq(wt.I32(16), wt.MemoryGrow, wt.Drop, wt.I32(70_000), wt.I32(1), wt.I32(900_000), op)
	}
	return map[string][]byte{
		"allow":          wt.Allowing("guard"),
		"echo":           echo(),
		"scan the input": scanner(),
		"calls":          bomb(12),
		"hide":           hider(nowhereElse),
		"hide in tables": hider(inTables),
		"loop": guard(func(*wt.Reactor) []byte {
			return wt.Seq(wt.I32(300_000), wt.Set(1),
				wt.Loop(wt.Get(1), wt.I32(1), wt.I32Sub, wt.Set(1), wt.Get(1), wt.BrIf(0)))
		}),
		"trap in a loop": guard(func(*wt.Reactor) []byte {
			return wt.Seq(wt.I32(5_000), wt.Set(1),
				wt.Loop(wt.Get(1), wt.I32(1), wt.I32Sub, wt.Set(1), wt.I32(100), wt.Get(1), wt.I32DivU, wt.Drop, wt.Br(0)))
		}),
		"grow":         guard(func(*wt.Reactor) []byte { return wt.Seq(wt.I32(100), wt.MemoryGrow, wt.Drop) }),
		"grow too far": guard(func(*wt.Reactor) []byte { return wt.Seq(wt.I32(40_000), wt.MemoryGrow, wt.Drop) }),
		"fill":         guard(func(*wt.Reactor) []byte { return bulk(memoryFill...) }),
		"copy":         guard(func(*wt.Reactor) []byte { return bulk(0xfc, 10, 0, 0) }),
		"log": guard(func(r *wt.Reactor) []byte {
			return wt.Seq(wt.I32(1), wt.I32(0), wt.I32(200<<10), wt.Call(r.Log))
		}),
		"output": guard(func(r *wt.Reactor) []byte { return wt.Seq(wt.I32(0), wt.I32(200<<10), wt.Call(r.Output)) }),
		"random": guard(func(*wt.Reactor) []byte {
			return wt.Seq(wt.I32(70_000), wt.I32(100_000), wt.Call(3), wt.Drop)
		}, importRandom),
		"tail calls": func() []byte {
			r := wt.NewReactor(wt.Validator("guard"))
			count := r.Func("i:", "", wt.Get(0), wt.If(wt.Get(0), wt.I32(1), wt.I32Sub, wt.ReturnCall(3)))
			r.Invoke("", takeInput(r), when('x', wt.I32(200_000), wt.Call(count)), r.Answer(`{"result":{"valid":true}}`))
			return r.Bytes()
		}(),
		"endless": guard(func(*wt.Reactor) []byte { return endless }),
	}
}

// Whatever a module does comes to the same on every engine, and costs the same
// fuel to the unit: in a fresh instance, in one made from the snapshot, and in
// one that was put back.
func TestEnginesAgree(t *testing.T) {
	payloads := []string{misbehave, `"fine"`, payloadOf(1 << 10), payloadOf(100 << 10)}
	for name, wasm := range computations() {
		t.Run(name, func(t *testing.T) {
			seen := map[string]observed{}
			by := map[string]string{}
			for _, engine := range engineNames() {
				for _, way := range []memory.Way{memory.Auto, memory.Fresh} {
					r := newRuntime(t, on{engine: engine, reset: way})
					m := settled(t, load(t, r, wasm, limited(func(l *runtime.Limits) { l.Fuel = 3_000_000 })))
					for range 2 {
						for _, payload := range payloads {
							got := observe(m, payload)
							want, ok := seen[payload]
							if !ok {
								want, seen[payload], by[payload] = got, got, engine
							}
							require.Equal(t, want, got, "%.40s: %s and %s (%v) do not agree", payload, by[payload], engine, way)
						}
					}
				}
			}
			t.Logf("fuel of %s: %d", misbehave, seen[misbehave].fuel)
		})
	}
}

// A Go guest, too, as long as it sees the same clock and the same randomness.
func TestEnginesAgreeOnAGoGuest(t *testing.T) {
	runtime.Repeatable(t)
	seen := map[string]observed{}
	for _, engine := range engineNames() {
		r := newRuntime(t, on{engine: engine, cacheDir: goCache})
		m := settled(t, loadGo(t, r))
		for range 2 {
			for _, payload := range []string{tool("fine"), payloadOf(1 << 10), payloadOf(20 << 10), tool("goroutines"), tool("panic")} {
				got := observe(m, payload)
				if _, ok := seen[payload]; !ok {
					seen[payload] = got
					t.Logf("%s: fuel of %.40s: %d", engine, payload, got.fuel)
				}
				require.Equal(t, seen[payload], got, "%s: %.40s", engine, payload)
			}
		}
	}
}

// What a guest logs is the same on every engine.
func TestEnginesAgreeOnLogs(t *testing.T) {
	flood := guard(func(r *wt.Reactor) []byte {
		return wt.Seq(
			wt.I32(2), r.Text("one\ntwo\r\n"+strings.Repeat("long ", 2000)), wt.Call(r.Log),
			wt.I32(150), wt.Set(1),
			wt.Loop(wt.I32(1), r.Text("flood"), wt.Call(r.Log), wt.Get(1), wt.I32(1), wt.I32Sub, wt.Set(1), wt.Get(1), wt.BrIf(0)),
			wt.Unreachable)
	})
	var want string
	for _, engine := range engineNames() {
		var logs logBuffer
		m := settled(t, load(t, newRuntime(t, on{engine: engine}), flood, func(o *runtime.ModuleOptions) {
			o.Logger = slog.New(slog.NewTextHandler(&logs, &slog.HandlerOptions{ReplaceAttr: withoutTime}))
		}))
		_, err := invoke(m, misbehave)
		requireReason(t, abi.ReasonTrap, err)
		if want == "" {
			want = logs.b.String()
		}
		require.NotEmpty(t, want)
		require.Equal(t, want, logs.b.String(), engine)
	}
}

func withoutTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

// A command spends the same everywhere: a budget that is enough by a unit is
// enough on every engine, and one that is short by a unit is not.
func TestEnginesAgreeOnTheBudgetOfACommand(t *testing.T) {
	wasm := command(func(*wt.Module, commandFuncs) []byte { return nil })
	fuel := int64(0)
	for _, engine := range engineNames() {
		r := newRuntime(t, on{engine: engine})
		passes := func(budget int64) bool {
			m := load(t, r, wasm, limited(func(l *runtime.Limits) { l.Fuel = budget }))
			_, err := invoke(m, misbehave)
			if err != nil {
				requireReason(t, abi.ReasonFuel, err)
			}
			return err == nil
		}
		if fuel == 0 {
			for fuel = 1; !passes(fuel); fuel++ {
				require.Less(t, fuel, int64(10_000))
			}
			t.Logf("%s: a command spends %d", engine, fuel)
		}
		require.True(t, passes(fuel), engine)
		require.False(t, passes(fuel-1), engine)
	}
}
