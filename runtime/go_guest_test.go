package runtime_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/guestbuild"
	"github.com/weir-mcp/weir/runtime"
)

// goCache is a folder for the compiled Go guest: all tests share it, since
// compiling takes seconds, under -race many.
var goCache string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "weir-runtime-test")
	if err != nil {
		panic(err)
	}
	goCache = filepath.Join(dir, "cache")
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// loadGo loads testdata/faults.
func loadGo(t testing.TB, r *runtime.Runtime, change ...func(*runtime.ModuleOptions)) *runtime.Module {
	wasm, err := guestbuild.Bytes(context.Background(), "./testdata/faults")
	require.NoError(t, err)
	return load(t, r, wasm, change...)
}

func tool(name string) string { return `{"name":"` + name + `"}` }

// The faults of a real Go guest, each with its reason; the next call works.
func TestFaultsOfAGoGuest(t *testing.T) {
	noLeaks(t)
	r := newRuntime(t, on{cacheDir: goCache})
	short := limited(func(l *runtime.Limits) { l.CallTime = 50 * time.Millisecond })
	// A fresh Go guest takes some 7 ms to start, on a busy machine far more: what
	// has to work next runs under a limit that does not matter.
	stopped, patient := loadGo(t, r, short), loadGo(t, r)
	_, err := invoke(stopped, tool("loop"))
	require.Equal(t, 50*time.Millisecond, requireReason(t, abi.ReasonTimeout, err).Limit)
	requireWorks(t, patient, tool("fine"))
	// wazero's compiler has so large a stack that time is up before its end.
	_, err = invoke(stopped, tool("recursion"))
	if e := abi.AsError(err, "", ""); e == nil || e.Reason != abi.ReasonTimeout {
		requireReason(t, abi.ReasonStack, err)
	}
	requireWorks(t, patient, tool("fine"))
	for name, reason := range map[string]abi.Reason{
		"panic": abi.ReasonGuest, "exit": abi.ReasonExit, "memory": abi.ReasonMemory,
	} {
		_, err := invoke(patient, tool(name))
		e := requireReason(t, reason, err)
		require.NotContains(t, e.Message(), "own words")
		requireWorks(t, patient, tool("fine"))
	}
	_, err = invoke(patient, tool("deadlock"))
	requireReason(t, abi.ReasonTrap, err)
	requireWorks(t, patient, tool("goroutines"))
}

func TestWhatAGoGuestCanReach(t *testing.T) {
	r := newRuntime(t, on{cacheDir: goCache})
	info := func(m *runtime.Module, name string) (facts struct {
		Slept, Open bool
		Year        int
		Env         []string
		Random      string
	}) {
		result, err := invoke(m, tool(name))
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(result.Info, &facts))
		return facts
	}
	var logs logBuffer
	m := loadGo(t, r, logged(&logs))

	slept := info(m, "sleep")
	require.True(t, slept.Slept, "an hour passes at once, for the guest")
	require.Equal(t, 2000, slept.Year)

	reach := info(m, "reach")
	require.True(t, reach.Open, "no files")
	require.Empty(t, reach.Env)
	require.NotEqual(t, reach.Random, info(m, "reach").Random)

	requireWorks(t, m, tool("print"))
	said := map[any]any{}
	for _, record := range logs.records(t) {
		said[record["msg"]] = record["level"]
	}
	require.Equal(t, map[any]any{"to stdout": "INFO", "to stderr": "WARN", "to the log": "ERROR"}, said)

	granted := loadGo(t, r, func(o *runtime.ModuleOptions) {
		o.Grants = runtime.Grants{Clock: true, Env: map[string]string{"MODE": "prod"}}
	})
	require.Equal(t, time.Now().UTC().Year(), info(granted, "sleep").Year)
	require.Equal(t, []string{"MODE=prod"}, info(granted, "reach").Env)
}

func BenchmarkInvokeGoGuest(b *testing.B) {
	r := newRuntime(b, on{cacheDir: goCache})
	m := loadGo(b, r)
	inv := call(`{"name":"fine","arguments":{"text":"some words of a request"}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.Invoke(context.Background(), inv); err != nil {
			b.Fatal(err)
		}
	}
}
