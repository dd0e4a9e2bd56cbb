package wazero

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/weir-mcp/weir/runtime"
	"github.com/weir-mcp/weir/runtime/memory"
	"github.com/weir-mcp/weir/runtime/meter"
)

// Options configures an [Engine].
type Options struct {
	// ScratchDir is a folder for handing code to wazero that is kept
	// ([runtime.Keeper]): it takes it only from files. It is made with mode
	// 0700 if it does not exist, and must belong to this user alone, since
	// whoever can write to it can run code in this process. It is empty but
	// while a module is compiled. Without it code cannot be kept.
	ScratchDir string
	// Interpreter interprets even where the compiler runs: slower by an order
	// of magnitude, but nothing is compiled and no memory is executable.
	Interpreter bool
	// Reset is how instances are put back after a call; [memory.Auto], the
	// default, takes the best way that works here. Others are there for who
	// wants to compare, or distrusts the kernel.
	Reset memory.Way
	// Logger receives what is wrong with the scratch folder and with putting
	// instances back; nil means [slog.Default].
	Logger *slog.Logger
}

// Engine is a [runtime.Engine]. It is safe for concurrent use.
type Engine struct {
	name       string
	interprets bool
	way        memory.Way
	config     wazero.RuntimeConfig
	logger     *slog.Logger
	layout     *stackLayout // nil: guests run on wazero's stacks
	main       *linked
	stage      *stage // nil: code is not kept
}

var _ runtime.Engine = (*Engine)(nil)

// linked is a wazero runtime with the host functions linked into it.
type linked struct{ wazero.Runtime }

// features are what package meter accepts, neither more nor less.
const features = api.CoreFeaturesV2 | experimental.CoreFeaturesTailCall | experimental.CoreFeaturesExtendedConst

// New makes an engine.
func New(o Options) (*Engine, error) {
	config := wazero.NewRuntimeConfig()
	if o.Interpreter {
		config = wazero.NewRuntimeConfigInterpreter()
	}
	e := &Engine{
		config: config.
			WithCoreFeatures(features).
			WithDebugInfoEnabled(false).
			WithCustomSections(false),
		logger: o.Logger,
	}
	if e.logger == nil {
		e.logger = slog.Default()
	}
	ctx := context.Background()
	var err error
	if e.main, err = link(ctx, e.config); err != nil {
		return nil, err
	}
	if err := e.probe(ctx, o.Reset); err != nil {
		return nil, errors.Join(err, e.Close(ctx))
	}
	if key := codeKey(version()); o.ScratchDir != "" && key != "" && !e.interprets {
		e.stage = &stage{scratch: o.ScratchDir, key: key, config: e.config}
	}
	return e, nil
}

// link makes a wazero runtime whose modules find the host functions.
func link(ctx context.Context, config wazero.RuntimeConfig) (*linked, error) {
	l := &linked{wazero.NewRuntimeWithConfig(ctx, config)}
	builders := map[string]wazero.HostModuleBuilder{}
	for _, f := range runtime.HostFuncs() {
		b := builders[f.Module]
		if b == nil {
			b = l.NewHostModuleBuilder(f.Module)
			builders[f.Module] = b
		}
		b.NewFunctionBuilder().
			WithGoModuleFunction(hostFunction(f), valueTypes(f.Type.Params), valueTypes(f.Type.Results)).
			Export(f.Name)
	}
	for module, b := range builders {
		if _, err := b.Instantiate(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("linking %s: %w", module, err), l.Close(ctx))
		}
	}
	return l, nil
}

// hostFunction adapts a host function. wazero leaves the upper half of a word
// that holds an i32 undefined; its way to end a guest is a panic, which it
// recovers and reports as the error of the call.
func hostFunction(f runtime.HostFunc) api.GoModuleFunction {
	return api.GoModuleFunc(func(ctx context.Context, module api.Module, words []uint64) {
		for i, p := range f.Type.Params {
			if p == meter.I32 {
				words[i] = uint64(uint32(words[i]))
			}
		}
		if err := f.Call(ctx, module.Memory(), words); err != nil {
			panic(&hostError{err})
		}
	})
}

// hostError carries the error of a host function through wazero.
type hostError struct{ err error }

func (e *hostError) Error() string { return e.err.Error() }

func valueTypes(types []meter.ValueType) []api.ValueType {
	list := make([]api.ValueType, len(types))
	for i, t := range types {
		list[i] = api.ValueType(t) // both are the binary format's encoding
	}
	return list
}

// Name says which wazero this is and whether it compiles or interprets.
func (e *Engine) Name() string { return e.name }

// Reset implements [runtime.Engine].
func (e *Engine) Reset() memory.Way { return e.way }

// Compile implements [runtime.Engine]. It ignores ctx, as wazero does: its
// duration is bounded by what package meter lets through.
func (e *Engine) Compile(_ context.Context, wasm []byte) (runtime.Code, error) {
	compiled, err := e.main.CompileModule(context.Background(), wasm)
	if err != nil {
		return nil, err
	}
	return newCode(e, e.main, compiled), nil
}

// Close implements [runtime.Engine].
func (e *Engine) Close(ctx context.Context) error {
	err := e.main.Close(ctx)
	if e.stage != nil {
		err = errors.Join(err, e.stage.close(ctx))
	}
	return err
}
