package main

import (
	"context"
	"path/filepath"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/bench/guests"
	"github.com/weir-mcp/weir/runtime"
	"github.com/weir-mcp/weir/runtime/cache"
	"github.com/weir-mcp/weir/runtime/memory"
	"github.com/weir-mcp/weir/runtime/wazero"
)

// weirRuntime is weir's runtime on its default engine, nothing turned off.
func weirRuntime(cacheDir string, way memory.Way) (*runtime.Runtime, error) {
	kept, err := cache.Open(cache.Options{Dir: filepath.Join(cacheDir, "code"), Logger: quiet})
	if err != nil {
		return nil, err
	}
	engine, err := wazero.New(wazero.Options{ScratchDir: filepath.Join(cacheDir, "scratch"), Reset: way, Logger: quiet})
	if err != nil {
		return nil, err
	}
	return runtime.New(engine, runtime.WithLogger(quiet), runtime.WithCache(kept)), nil
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
func weir(way memory.Way) func(context.Context, *bench, guests.Guest) (invoke, error) {
	return func(ctx context.Context, b *bench, g guests.Guest) (invoke, error) {
		r, err := weirRuntime(b.cacheDir, way)
		if err != nil {
			return nil, err
		}
		return weirCalls(ctx, b, g, r)
	}
}

// weirCalls loads the guest and calls it; the runtime is closed at the end.
func weirCalls(ctx context.Context, b *bench, g guests.Guest, r *runtime.Runtime) (invoke, error) {
	b.atEnd(func() { _ = r.Close(context.Background()) })
	m, err := loadSettled(ctx, r, g.Weir, runtime.Limits{})
	if err != nil {
		return nil, err
	}
	return func(inv *abi.Invocation) (abi.Result, error) { return m.Invoke(ctx, *inv) }, nil
}
