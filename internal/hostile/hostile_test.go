package hostile_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	goruntime "runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/hostile"
	"github.com/weir-mcp/weir/internal/wasmtest"
	"github.com/weir-mcp/weir/runtime"
	"github.com/weir-mcp/weir/runtime/meter"
	"github.com/weir-mcp/weir/runtime/wazero"
)

// engines makes each of the engines that this build has.
var engines = map[string]func() (runtime.Engine, error){
	"compiler":    func() (runtime.Engine, error) { return wazero.New(wazero.Options{}) },
	"interpreter": func() (runtime.Engine, error) { return wazero.New(wazero.Options{Interpreter: true}) },
}

const (
	// account is what all guests may have together: two of the corpus at their
	// limit, with the image of one, and the neighbour, and the stacks of calls.
	account = 4 * hostile.Memory
	// soon is when an endless call is stopped, and an endless start.
	soon = 20 * time.Millisecond
	// spent is a budget of fuel that every endless call passes.
	spent = 200_000
	// whole is how much a refusal may allocate for each byte of the file and
	// besides: what the parser notes of it, and a metered copy.
	whole, besides = 64, 8 << 20
)

// host is a runtime with a good module in it, whose calls work whatever others do.
type host struct {
	*runtime.Runtime
	good *runtime.Module
	base int64 // what the account says when only the good one is there
	most atomic.Int64
}

func newHost(t *testing.T, engine string) *host {
	e, err := engines[engine]()
	require.NoError(t, err)
	h := &host{Runtime: runtime.New(e, runtime.WithMemory(account), runtime.WithLogger(slog.New(slog.DiscardHandler)))}
	h.good = h.load(t, wasmtest.Allowing(hostile.Interceptor), runtime.Limits{})
	<-h.good.Settled()
	h.base, _ = h.Memory()
	require.Positive(t, h.base)

	done := make(chan struct{})
	go func() {
		for tick := time.NewTicker(time.Millisecond); ; {
			select {
			case <-done:
				tick.Stop()
				return
			case <-tick.C:
				used, _ := h.Memory()
				h.most.Store(max(h.most.Load(), used))
			}
		}
	}()
	t.Cleanup(func() {
		close(done)
		require.LessOrEqual(t, h.most.Load(), int64(account))
		require.NoError(t, h.Close(context.Background()))
		used, _ := h.Memory()
		require.Zero(t, used)
	})
	return h
}

func (h *host) try(wasm []byte, limits runtime.Limits) (*runtime.Module, error) {
	limits.Memory = hostile.Memory
	if limits.LoadTime == 0 {
		limits.LoadTime = time.Minute
	}
	limits.CallTime, limits.CompileTime = time.Minute, time.Hour // the host is busy
	return h.Load(context.Background(), wasm, runtime.ModuleOptions{Name: "guest.wasm", Limits: limits})
}

func (h *host) load(t *testing.T, wasm []byte, limits runtime.Limits) *runtime.Module {
	t.Helper()
	m, err := h.try(wasm, limits)
	require.NoError(t, err)
	return m
}

func invoke(m *runtime.Module, payload string, timeout time.Duration) *abi.Error {
	_, err := m.Invoke(context.Background(), abi.Invocation{
		Name: hostile.Interceptor, Event: hostile.Event, Phase: abi.Request, Payload: json.RawMessage(payload), Timeout: timeout,
	})
	return abi.AsError(err, "", "")
}

// unharmed checks that only the good module is left, and works.
func (h *host) unharmed(t *testing.T) {
	t.Helper()
	require.Nil(t, invoke(h.good, hostile.Fine, 0))
	used, _ := h.Memory()
	require.Equal(t, h.base, used, "bytes in the account")
}

// The corpus on every engine: what is refused says why, on one line, and costs
// next to nothing where it is no module that an engine could see; what loads ends as it is to end, within its time and its fuel,
// and the next call works, of the same module and of another; and nothing of it
// stays.
func TestEveryEngineSurvivesTheCorpus(t *testing.T) {
	for _, engine := range slices.Sorted(maps.Keys(engines)) {
		t.Run(engine, func(t *testing.T) {
			h := newHost(t, engine)
			for i, m := range hostile.Modules() {
				if raced && (i%3 != 0 || m.Name == "50,000 exported functions") {
					continue // it takes ten times as long, and little of it is concurrent
				}
				t.Run(m.Name, func(t *testing.T) {
					defer h.unharmed(t)
					if m.Refused != "" {
						h.refuses(t, m)
					} else {
						h.survives(t, m)
					}
				})
			}
		})
	}
}

func (h *host) refuses(t *testing.T, m hostile.Module) {
	wasm := m.Wasm()
	before := bytes.Clone(wasm)
	var memory goruntime.MemStats
	goruntime.ReadMemStats(&memory)
	allocated := memory.TotalAlloc
	module, err := h.try(wasm, runtime.Limits{LoadTime: 4 * soon})
	goruntime.ReadMemStats(&memory)
	if err == nil {
		require.NoError(t, module.Close(context.Background()))
	}
	var refused *runtime.LoadError
	require.ErrorAs(t, err, &refused)
	require.ErrorContains(t, err, "guest.wasm: ")
	require.ErrorContains(t, err, m.Refused)
	require.NotContains(t, err.Error(), "\n")
	require.Less(t, len(err.Error()), 8<<10)
	require.Equal(t, before, wasm)
	if _, parsed := errors.AsType[*meter.Error](err); parsed {
		require.Less(t, memory.TotalAlloc-allocated, uint64(besides+whole*len(wasm)), "bytes allocated")
	}
}

func (h *host) survives(t *testing.T, m hostile.Module) {
	wasm := m.Wasm()
	module := h.load(t, wasm, runtime.Limits{})
	defer func() { require.NoError(t, module.Close(context.Background())) }()
	timeout := time.Duration(0)
	if m.Endless() {
		timeout = soon
	}
	for range 2 { // on a fresh instance, as a rule, and on one that is put back
		ended(t, m.Ends, invoke(module, hostile.Misbehave, timeout))
		require.Nil(t, invoke(module, hostile.Fine, 0), "the next call")
		require.Nil(t, invoke(h.good, hostile.Fine, 0), "a call of another module")
		<-module.Settled()
	}
	if !m.Endless() {
		return
	}
	frugal := h.load(t, wasm, runtime.Limits{Fuel: spent})
	defer func() { require.NoError(t, frugal.Close(context.Background())) }()
	ends := slices.DeleteFunc(slices.Clone(m.Ends), func(r abi.Reason) bool { return r == abi.ReasonTimeout })
	ended(t, append(ends, abi.ReasonFuel), invoke(frugal, hostile.Misbehave, 0))
	require.Nil(t, invoke(frugal, hostile.Fine, 0), "the next call")
}

// ended checks how a call ended, and that what is said of it goes on one line.
func ended(t *testing.T, ends []abi.Reason, e *abi.Error) {
	t.Helper()
	if len(ends) == 0 {
		require.Nil(t, e)
		return
	}
	require.NotNil(t, e, "the call succeeds")
	require.Contains(t, ends, e.Reason, "%v", e)
	require.NotContains(t, e.Error(), "\n")
}

func TestNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range hostile.Modules() {
		require.False(t, seen[m.Name], m.Name)
		seen[m.Name] = true
	}
	require.Greater(t, len(seen), 200)
}

func Example() {
	for _, m := range hostile.Modules() {
		if m.Name == "18 bytes, 2^32-1 types" {
			fmt.Println(len(m.Wasm()), m.Refused)
		}
	}
	// Output: 18 over a limit: type
}
