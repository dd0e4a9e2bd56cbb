//go:build wasmtime

package wasmtime

import (
	"context"
	"fmt"
	"log/slog"

	wasm "github.com/bytecodealliance/wasmtime-go/v44"

	"github.com/weir-mcp/weir/runtime"
	"github.com/weir-mcp/weir/runtime/memory"
	"github.com/weir-mcp/weir/runtime/meter"
)

// version is that of the wasmtime that is linked in. It must be go.mod's: a test
// sees to it.
const version = "44.0.0"

// Options configures an [Engine].
type Options struct {
	// Reset is how instances are put back after a call; [memory.Auto], the
	// default, takes the best way that works here.
	Reset memory.Way
	// Logger receives what is wrong with putting instances back and with
	// keeping code; nil means [slog.Default].
	Logger *slog.Logger
}

// Engine is a [runtime.Engine]. It is safe for concurrent use.
type Engine struct {
	engine *wasm.Engine
	linker *wasm.Linker
	way    memory.Way
	logger *slog.Logger
}

var _ runtime.Engine = (*Engine)(nil)

// New makes an engine.
func New(o Options) (*Engine, error) {
	e := &Engine{logger: o.Logger}
	if e.logger == nil {
		e.logger = slog.Default()
	}
	e.engine = wasm.NewEngineWithConfig(config())
	e.linker = wasm.NewLinker(e.engine)
	for _, f := range runtime.HostFuncs() {
		typ := wasm.NewFuncType(valTypes(f.Type.Params), valTypes(f.Type.Results))
		if err := e.linker.FuncNew(f.Module, f.Name, typ, hostFunction(f)); err != nil {
			e.free()
			return nil, fmt.Errorf("linking %s.%s: %w", f.Module, f.Name, err)
		}
	}
	if err := e.probe(context.Background(), o.Reset); err != nil {
		e.free()
		return nil, err
	}
	return e, nil
}

// stackBytes is how much of the thread's stack a guest may use. It is what
// wasmtime has by default, and fits the stacks that C libraries give threads.
const stackBytes = 512 << 10

// config allows what package meter accepts and nothing else.
func config() *wasm.Config {
	c := wasm.NewConfig()
	c.SetStrategy(wasm.StrategyCranelift)
	c.SetWasmMultiValue(true)
	c.SetWasmBulkMemory(true)
	c.SetWasmReferenceTypes(true)
	c.SetWasmSIMD(true)
	c.SetWasmTailCall(true)
	c.SetWasmRelaxedSIMD(false)
	c.SetWasmThreads(false)
	c.SetWasmMultiMemory(false)
	c.SetWasmMemory64(false)
	c.SetWasmFunctionReferences(false)
	c.SetWasmGC(false)
	c.SetWasmWideArithmetic(false)
	c.SetWasmComponentModel(false)
	// Guests stop themselves and count for themselves.
	c.SetConsumeFuel(false)
	c.SetEpochInterruption(false)
	c.SetMaxWasmStack(stackBytes)
	c.SetMemoryInitCOWSet(true)
	c.SetDebugInfo(false)
	// Compilations run beside each other already, within a budget of memory
	// that is reckoned for one function at a time.
	c.SetParallelCompilation(false)
	return c
}

func valTypes(types []meter.ValueType) []*wasm.ValType {
	list := make([]*wasm.ValType, len(types))
	for i, t := range types {
		list[i] = wasm.NewValType(kindOf(t))
	}
	return list
}

// kindOf is the kind of a parameter of a host function, of which there are two.
func kindOf(t meter.ValueType) wasm.ValKind {
	if t == meter.I64 {
		return wasm.KindI64
	}
	return wasm.KindI32
}

// Name implements [runtime.Engine].
func (e *Engine) Name() string { return "wasmtime " + version }

// Reset implements [runtime.Engine].
func (e *Engine) Reset() memory.Way { return e.way }

// Compile implements [runtime.Engine]. It ignores ctx, as wasmtime does: its
// duration is bounded by what package meter lets through.
func (e *Engine) Compile(_ context.Context, binary []byte) (runtime.Code, error) {
	module, err := wasm.NewModule(e.engine, binary)
	if err != nil {
		return nil, err
	}
	return newCode(e, module)
}

// Close implements [runtime.Engine].
func (e *Engine) Close(context.Context) error {
	e.free()
	return nil
}

func (e *Engine) free() {
	e.linker.Close()
	e.engine.Close()
}
