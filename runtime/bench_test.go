package runtime_test

import (
	"context"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	wasm "github.com/tetratelabs/wazero"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/guestbuild"
	wt "github.com/weir-mcp/weir/internal/wasmtest"
	"github.com/weir-mcp/weir/runtime"
	"github.com/weir-mcp/weir/runtime/memory"
	"github.com/weir-mcp/weir/runtime/wazero"
)

// payloadOf is a payload of about so many bytes.
func payloadOf(size int) string {
	words := strings.Repeat("some words of a request, ", size/25+1)
	return `{"name":"decode","arguments":{"text":"` + words[:size-60] + `"}}`
}

// scanner is a small guest that looks at every byte of its input and writes to
// some pages.
func scanner() []byte {
	r := wt.NewReactor(wt.Validator("guard"))
	r.Memory(8)
	loop := wt.Loop(
		wt.Get(1), wt.Get(1), wt.Load8(wt.InputAt), wt.I32Add, wt.Set(1),
		wt.Get(2), wt.I32(1), wt.I32Add, wt.Set(2),
		wt.Get(2), wt.Get(0), wt.I32Ne, wt.BrIf(0))
	r.Invoke("ii", takeInput(r), wt.I32(0), wt.Set(1), loop,
		wt.I32(0), wt.Get(1), wt.Store(0), r.Answer(`{"result":{"valid":true}}`))
	return r.Bytes()
}

// reuse runs the module in one instance of plain wazero, without metering,
// limits and reset: what is left of a sandbox that only reuses, as the measure
// of what ours costs. It reads the answer as the runtime does.
func reuse(b *testing.B, binary []byte) func(inv abi.Invocation) {
	ctx := context.Background()
	r := wasm.NewRuntime(ctx)
	b.Cleanup(func() { r.Close(ctx) })
	return runtime.Unsafe(b, ctx, r, binary)
}

// reportCPU has the benchmark report what it uses of the processors.
func reportCPU(b *testing.B) (done func()) {
	before := cpuTime()
	return func() { b.ReportMetric(float64((cpuTime()-before).Nanoseconds())/float64(b.N), "cpu-ns/op") }
}

// BenchmarkCall compares what a call costs: in an instance that is reused as it
// was left, and with each way of being put back.
func BenchmarkCall(b *testing.B) {
	goGuest, err := guestbuild.Bytes(context.Background(), "./testdata/faults")
	require.NoError(b, err)
	for _, guest := range []struct {
		name   string
		binary []byte
	}{{"Go", goGuest}, {"small", scanner()}} {
		for _, size := range []int{1 << 10, 100 << 10} {
			inv := call(payloadOf(size))
			name := guest.name + "/" + map[int]string{1 << 10: "1KB", 100 << 10: "100KB"}[size] + "/"
			b.Run(name+"reuse, unsafe", func(b *testing.B) {
				invoke := reuse(b, guest.binary)
				for range 10 {
					invoke(inv)
				}
				defer reportCPU(b)()
				for b.Loop() {
					invoke(inv)
				}
			})
			for _, way := range []memory.Way{memory.PageScan, memory.FullCopy, memory.Fresh} {
				b.Run(name+way.String(), func(b *testing.B) {
					r := newCached(b, wazero.Options{Reset: way})
					m := settled(b, load(b, r, guest.binary))
					if _, err := m.Invoke(context.Background(), inv); err != nil {
						b.Fatal(err)
					}
					defer reportCPU(b)()
					for b.Loop() {
						if _, err := m.Invoke(context.Background(), inv); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
}

// BenchmarkClone is the first call after an idle time: an instance is made from
// the snapshot.
func BenchmarkClone(b *testing.B) {
	goGuest, err := guestbuild.Bytes(context.Background(), "./testdata/faults")
	require.NoError(b, err)
	for name, binary := range map[string][]byte{"Go": goGuest, "small": scanner()} {
		b.Run(name, func(b *testing.B) {
			r := newCached(b, wazero.Options{})
			m := settled(b, load(b, r, binary))
			defer reportCPU(b)()
			for b.Loop() {
				runtime.Drain(m)
				if _, err := invoke(m, `{"name":"fine"}`); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkStopping reports how long past a limit of 50 ms a call ends, and how
// long the host's garbage collector takes meanwhile, at worst.
func BenchmarkStopping(b *testing.B) {
	const limit = 50 * time.Millisecond
	for name, binary := range map[string][]byte{
		"loop": guard(func(*wt.Reactor) []byte { return endless }), "calls": bomb(33),
		"fills": guard(func(*wt.Reactor) []byte {
			return wt.Seq(wt.I32(1000), wt.MemoryGrow, wt.Drop,
				wt.Loop(wt.I32(0), wt.I32(1), wt.I32(60<<20), memoryFill, wt.Br(0)))
		}),
	} {
		for engine, o := range map[string]wazero.Options{"compiler": {}, "interpreter": {Interpreter: true}} {
			b.Run(name+"/"+engine, func(b *testing.B) {
				m := settled(b, load(b, newRuntime(b, o), binary, limited(func(l *runtime.Limits) { l.CallTime = limit })))
				var late, collecting time.Duration
				for b.Loop() {
					done := make(chan struct{})
					go func() {
						defer close(done)
						began := time.Now()
						_, err := invoke(m, misbehave)
						if abi.AsError(err, "", "").Reason != abi.ReasonTimeout {
							b.Error(err)
						}
						late = max(late, time.Since(began)-limit)
					}()
					time.Sleep(limit / 5)
					began := time.Now()
					goruntime.GC()
					collecting = max(collecting, time.Since(began))
					<-done
				}
				b.ReportMetric(float64(late.Microseconds())/1000, "ms-late")
				b.ReportMetric(float64(collecting.Microseconds())/1000, "ms-gc")
			})
		}
	}
}
