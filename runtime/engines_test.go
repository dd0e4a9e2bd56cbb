package runtime_test

import (
	"context"
	"flag"
	"log/slog"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/runtime"
	"github.com/weir-mcp/weir/runtime/cache"
	"github.com/weir-mcp/weir/runtime/memory"
	"github.com/weir-mcp/weir/runtime/wazero"
)

// The tests of this package are one acceptance suite for all engines. What may
// depend on the engine runs on every one there is (onEveryEngine, ways), and the
// whole of it on a single one:
//
//	go test ./runtime -engine interpreter
//	CGO_ENABLED=1 go test -tags wasmtime ./runtime -engine wasmtime
var engineFlag = flag.String("engine", "compiler", "what the tests run on that do not run on every engine")

// on says what a test runs on.
type on struct {
	engine   string // a key of engines; "" for what -engine says
	reset    memory.Way
	cacheDir string // of a compile cache; "" for none
}

// engines makes each of the engines that this build has.
var engines = map[string]func(on) (runtime.Engine, error){
	"compiler": func(o on) (runtime.Engine, error) {
		return wazero.New(o.wazero())
	},
	"interpreter": func(o on) (runtime.Engine, error) {
		options := o.wazero()
		options.Interpreter = true
		return wazero.New(options)
	},
}

func (o on) wazero() wazero.Options {
	options := wazero.Options{Reset: o.reset, Logger: slog.New(slog.DiscardHandler)}
	if o.cacheDir != "" {
		options.ScratchDir = o.cacheDir + "-scratch"
	}
	return options
}

func engineNames() []string { return slices.Sorted(maps.Keys(engines)) }

func newEngine(t testing.TB, o on) runtime.Engine {
	t.Helper()
	if o.engine == "" {
		o.engine = *engineFlag
	}
	require.Contains(t, engines, o.engine, "no such engine in this build")
	engine, err := engines[o.engine](o)
	require.NoError(t, err)
	return engine
}

// newRuntime returns a runtime that the test closes.
func newRuntime(t testing.TB, o on) *runtime.Runtime {
	t.Helper()
	options := []runtime.Option{runtime.WithLogger(slog.New(slog.DiscardHandler))}
	if o.cacheDir != "" {
		kept, err := cache.Open(cache.Options{Dir: o.cacheDir, Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		options = append(options, runtime.WithCache(kept))
	}
	r := runtime.New(newEngine(t, o), options...)
	t.Cleanup(func() { require.NoError(t, r.Close(context.Background())) })
	return r
}

// onEveryEngine runs the test on each engine.
func onEveryEngine(t *testing.T, test func(t *testing.T, r *runtime.Runtime)) {
	for _, name := range engineNames() {
		t.Run(name, func(t *testing.T) { test(t, newRuntime(t, on{engine: name})) })
	}
}

// ways are the engines with each way of being put back.
func ways() map[string]on {
	list := map[string]on{}
	for _, way := range []memory.Way{memory.PageScan, memory.FullCopy, memory.Fresh} {
		if way == memory.PageScan && memory.Best() != memory.PageScan {
			continue
		}
		for _, name := range engineNames() {
			list[name+", "+way.String()] = on{engine: name, reset: way}
		}
	}
	return list
}
