package runtime_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	wt "github.com/weir-mcp/weir/internal/wasmtest"
	"github.com/weir-mcp/weir/runtime"
)

// recursions are modules that call themselves for ever, with frames of every
// shape.
func recursions() map[string][]byte {
	const itself = wt.Func(3)
	recursion := func(signature, locals string, call []byte, body ...[]byte) []byte {
		r := wt.NewReactor(wt.Validator("guard"))
		f := r.Func(signature, locals, body...)
		if f != itself {
			panic("it is another function")
		}
		r.Invoke("", takeInput(r), when('x', call), r.Answer(`{"result":{"valid":true}}`))
		return r.Bytes()
	}
	// Locals that cost nothing to have, since what writes and reads them is in a
	// branch that is not taken, but that an engine must keep over the call.
	many := func(letter string, n int, load, store []byte) []byte {
		var set, use []byte
		for i := range n {
			local, offset := uint32(1+i), wt.Uint(uint64(16*i))
			set = append(set, wt.Seq(wt.I32(0), load, offset, wt.Set(local))...)
			use = append(use, wt.Seq(wt.I32(0), wt.Get(local), store, offset)...)
		}
		return recursion("i:", strings.Repeat(letter, n), wt.Seq(wt.I32(0), wt.Call(itself)),
			wt.Get(0), wt.If(set), wt.I32(0), wt.Call(itself), wt.Get(0), wt.If(use))
	}
	params := func(n int) []byte {
		var pass []byte
		for i := range n {
			pass = append(pass, wt.Get(uint32(i))...)
		}
		return recursion(strings.Repeat("I", n)+":", "", wt.Seq(wt.Seq(repeated(n, wt.I64(1))...), wt.Call(itself)),
			pass, wt.Call(itself), pass, wt.Seq(repeated(n, wt.Drop)...))
	}
	return map[string][]byte{
		"nothing":       recursion(":", "", wt.Call(itself), wt.Call(itself), wt.I32(0), wt.Drop),
		"a parameter":   recursive(),
		"8 i64":         many("I", 8, []byte{0x29, 0}, []byte{0x37, 0}),
		"2,000 i64":     many("I", 2000, []byte{0x29, 0}, []byte{0x37, 0}),
		"2,000 v128":    many("V", 2000, []byte{0xfd, 0, 0}, []byte{0xfd, 11, 0}),
		"1,000 params":  params(1000),
		"calls in args": recursion("i:i", "", wt.Seq(wt.I32(0), wt.Call(itself), wt.Drop), wt.Get(0), wt.Get(0), wt.Call(itself), wt.I32Add),
	}
}

func repeated(n int, code []byte) [][]byte {
	list := make([][]byte, n)
	for i := range list {
		list[i] = code
	}
	return list
}

// touchedStack is how much of a stack of that size has been touched, of the one
// mapping of its size that has the most.
func touchedStack(size uint64) (most uint64) {
	b, _ := os.ReadFile("/proc/self/smaps")
	of := uint64(0)
	for line := range strings.Lines(string(b)) {
		var n uint64
		if _, err := fmt.Sscanf(line, "Size: %d kB", &n); err == nil {
			of = n << 10
		} else if _, err := fmt.Sscanf(line, "Rss: %d kB", &n); err == nil && of == size {
			most = max(most, n<<10)
		}
	}
	return most
}

// deep_recursion: what a stack takes of the host is bounded, whatever the frames
// are like, and was charged before it was taken.
func TestStacksAreCharged(t *testing.T) {
	for name, wasm := range recursions() {
		t.Run(name, func(t *testing.T) {
			onEveryEngine(t, func(t *testing.T, r *runtime.Runtime) {
				m := settled(t, load(t, r, wasm))
				before, _ := r.Memory()
				for range 2 {
					largest, uncharged, err := runtime.MeasuredStack(m, call(misbehave), touchedStack)
					requireReason(t, abi.ReasonStack, err)
					require.Zero(t, uncharged, "of %d", largest)
					require.LessOrEqual(t, largest, uint64(128<<20))
					t.Logf("%d KiB", largest>>10)
					_, uncharged, err = runtime.MeasuredStack(m, call(`"fine"`), touchedStack)
					require.NoError(t, err)
					require.Zero(t, uncharged)
				}
				after, _ := r.Memory()
				require.LessOrEqual(t, after, before, "it is given back")
			})
		})
	}
}

// Where there is little room for stacks, recursion ends earlier, many at once
// included, and other calls go on.
func TestStacksShareTheMemoryOfTheProcess(t *testing.T) {
	for _, name := range engineNames() {
		t.Run(name, func(t *testing.T) {
			const limit = 24 << 20
			engine := newEngine(t, on{engine: name})
			r := runtime.New(engine, runtime.WithMemory(limit), runtime.WithLogger(slog.New(slog.DiscardHandler)))
			calls := limited(func(l *runtime.Limits) { l.Calls, l.Queue = 4, 100 })
			deep, other := settled(t, load(t, r, recursive(), calls)), settled(t, load(t, r, wt.Allowing("guard"), calls))
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					for range 5 {
						_, err := invoke(deep, misbehave)
						if e := abi.AsError(err, "", ""); e == nil || e.Reason != abi.ReasonStack && e.Reason != abi.ReasonBusy {
							t.Errorf("a recursion: %v", err)
						}
						if _, err := invoke(other, `{}`); err != nil && abi.AsError(err, "", "").Reason != abi.ReasonBusy {
							t.Errorf("another call: %v", err)
						}
						if used, _ := r.Memory(); used > limit {
							t.Errorf("%d bytes are charged", used)
						}
					}
				})
			}
			wg.Wait()
			requireWorks(t, deep, `"fine"`)
			requireWorks(t, other, `{}`)
			require.NoError(t, r.Close(context.Background()))
			used, _ := r.Memory()
			require.Zero(t, used)
		})
	}
}

// Without room for the least stack, a call is told to come again.
func TestNoRoomForAStack(t *testing.T) {
	const page = 64 << 10
	engine := newEngine(t, on{})
	r := runtime.New(engine, runtime.WithMemory(16*page), runtime.WithLogger(slog.New(slog.DiscardHandler)))
	m := settled(t, load(t, r, wt.Allowing("guard"))) // 4 pages, and 4 of an image
	requireWorks(t, m, `{}`)
	tenant := runtime.Charge(r, 7*page)
	_, err := invoke(m, `{}`)
	e := requireReason(t, abi.ReasonBusy, err)
	require.ErrorContains(t, e.Cause, "there is no room for more memory")
	tenant.Free()
	requireWorks(t, m, `{}`)
	require.NoError(t, r.Close(context.Background()))
}

// A call that takes long is no deep one: it goes on while there is room for the
// stack that it has.
func TestALongCallIsNotADeepOne(t *testing.T) {
	long := guard(func(*wt.Reactor) []byte {
		return wt.Seq(wt.I32(3_000_000), wt.Set(1),
			wt.Loop(wt.Get(1), wt.I32(1), wt.I32Sub, wt.Set(1), wt.Get(1), wt.BrIf(0)))
	})
	for _, name := range engineNames() {
		t.Run(name, func(t *testing.T) {
			engine := newEngine(t, on{engine: name})
			r := runtime.New(engine, runtime.WithMemory(4<<20), runtime.WithLogger(slog.New(slog.DiscardHandler)))
			m := settled(t, load(t, r, long))
			for range 3 {
				requireWorks(t, m, misbehave)
			}
			require.NoError(t, r.Close(context.Background()))
		})
	}
}
