package wazero

import (
	"context"
	"crypto/rand"
	"errors"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/sys"

	"github.com/weir-mcp/weir/runtime"
)

// code is a compiled module.
type code struct {
	linked   *linked
	compiled wazero.CompiledModule
}

var _ runtime.Code = (*code)(nil)

// moduleConfig gives a guest nothing. Names must be empty, since instances of
// one module would clash, and no start function may run on its own. Nothing
// draws from the source of randomness, which belongs to wazero's own WASI; but
// its default is deterministic, and costs 5 µs an instance to seed.
var moduleConfig = wazero.NewModuleConfig().WithName("").WithStartFunctions().WithRandSource(rand.Reader)

// Instantiate implements [runtime.Code].
func (c *code) Instantiate(ctx context.Context, maxPages uint32) (runtime.Instance, error) {
	memory := &linearMemory{max: uint64(maxPages) << 16}
	module, err := c.linked.InstantiateModule(experimental.WithMemoryAllocator(ctx, memory), c.compiled, moduleConfig)
	if err != nil {
		return nil, fault(ctx, err, memory)
	}
	return &instance{module, memory}, nil
}

// Close implements [runtime.Code].
func (c *code) Close(ctx context.Context) error { return c.compiled.Close(ctx) }

type instance struct {
	module api.Module
	memory *linearMemory
}

var _ runtime.Instance = (*instance)(nil)

// Call implements [runtime.Instance].
func (i *instance) Call(ctx context.Context, export string, args ...uint64) (uint64, error) {
	f := i.module.ExportedFunction(export)
	if f == nil {
		return 0, errors.New("no such export: " + export)
	}
	results, err := f.Call(ctx, args...)
	if err != nil {
		return 0, fault(ctx, err, i.memory)
	}
	if len(results) == 0 {
		return 0, nil
	}
	return results[0], nil
}

// Close implements [runtime.Instance].
func (i *instance) Close(ctx context.Context) error { return i.module.Close(ctx) }

// fault tells what wazero's error of a call is.
func fault(ctx context.Context, err error, memory *linearMemory) error {
	f := &runtime.Fault{Kind: runtime.FaultTrap, GrowthRefused: memory.refused, Err: err}
	if host, ok := errors.AsType[*hostError](err); ok {
		f.Kind, f.Err = runtime.FaultHost, host.err
		return f
	}
	// Guests leave by a host function of ours, so that this is always the end
	// of the context.
	if _, ok := errors.AsType[*sys.ExitError](err); ok {
		f.Kind, f.Err = runtime.FaultInterrupted, context.Cause(ctx)
		return f
	}
	if innermost(err).Error() == "stack overflow" {
		f.Kind = runtime.FaultStack
	}
	return f
}

func innermost(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}
