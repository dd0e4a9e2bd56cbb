package main

import (
	"context"
	"fmt"

	extism "github.com/extism/go-sdk"
	"github.com/tetratelabs/wazero"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/bench/guests"
)

// extismPooled calls an Extism plugin out of a pool of one, with a timeout, as
// its documentation has it. The plugin's memory stays as the call left it.
func extismPooled(ctx context.Context, b *bench, g guests.Guest) (invoke, error) {
	if g.Extism == nil {
		return nil, errNotFor
	}
	compiled, err := extism.NewCompiledPlugin(ctx, extism.Manifest{
		Wasm:    []extism.Wasm{extism.WasmData{Data: g.Extism, Name: "main"}},
		Timeout: uint64(callTime.Milliseconds()),
	}, extism.PluginConfig{EnableWasi: true, RuntimeConfig: wazero.NewRuntimeConfig().WithCompilationCache(b.cache)}, nil)
	if err != nil {
		return nil, err
	}
	b.atEnd(func() { _ = compiled.Close(context.Background()) })
	plugin, err := compiled.Instance(ctx, extism.PluginInstanceConfig{})
	if err != nil {
		return nil, err
	}
	pool := make(chan *extism.Plugin, 1)
	pool <- plugin
	return func(inv *abi.Invocation) (abi.Result, error) {
		plugin := <-pool
		defer func() { pool <- plugin }()
		status, out, err := plugin.CallWithContext(ctx, "invoke", callFrame(inv))
		if err != nil {
			return abi.Result{}, err
		}
		if status != 0 {
			return abi.Result{}, fmt.Errorf("the plugin returned %d", status)
		}
		return readAnswer(inv, out)
	}, nil
}
