package main

import (
	"context"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/runtime"
	"github.com/weir-mcp/weir/runtime/memory"
	"github.com/weir-mcp/weir/runtime/wazero"
)

// weirRuntime is weir's runtime on its default engine, nothing turned off.
func weirRuntime(cacheDir string, way memory.Way) (*runtime.Runtime, error) {
	engine, err := wazero.New(wazero.Options{CacheDir: cacheDir, Reset: way})
	if err != nil {
		return nil, err
	}
	return runtime.New(engine, runtime.WithLogger(quiet)), nil
}

// loadSettled loads a module and waits until its calls start from the snapshot.
func loadSettled(ctx context.Context, r *runtime.Runtime, wasm []byte, limits runtime.Limits) (*runtime.Module, error) {
	m, err := r.Load(ctx, wasm, runtime.ModuleOptions{Name: "redact.wasm", Limits: limits})
	if err != nil {
		return nil, err
	}
	<-m.Settled()
	return m, nil
}

// weir calls through the public API: metered, every limit in force, every call
// on a pristine instance.
func weir(way memory.Way) func(context.Context, *bench, guest) (invoke, error) {
	return func(ctx context.Context, b *bench, g guest) (invoke, error) {
		r, err := weirRuntime(b.cacheDir, way)
		if err != nil {
			return nil, err
		}
		b.atEnd(func() { _ = r.Close(context.Background()) })
		m, err := loadSettled(ctx, r, g.weir, runtime.Limits{})
		if err != nil {
			return nil, err
		}
		return func(inv *abi.Invocation) (abi.Result, error) { return m.Invoke(ctx, *inv) }, nil
	}
}
