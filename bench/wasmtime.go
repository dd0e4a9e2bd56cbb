//go:build wasmtime

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bytecodealliance/wasmtime-go/v44"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/bench/guests"
	"github.com/weir-mcp/weir/runtime"
	weirwasmtime "github.com/weir-mcp/weir/runtime/wasmtime"
)

func wasmtimeContenders() []contender {
	return []contender{
		{"wasmtime, fresh instance, epochs", wasmtimeFresh},
		{"weir on wasmtime, pristine, metered", weirOnWasmtime},
	}
}

// weirOnWasmtime is weir with its other engine, nothing turned off.
func weirOnWasmtime(ctx context.Context, b *bench, g guests.Guest) (invoke, error) {
	engine, err := weirwasmtime.New(weirwasmtime.Options{Logger: quiet})
	if err != nil {
		return nil, err
	}
	return weirCalls(ctx, b, g, runtime.New(engine, runtime.WithLogger(quiet)))
}

// epoch is how often wasmtime's guests look whether they are late.
const epoch = callTime / 10

// wasmtimeFresh makes an instance for every call, which wasmtime is good at, and
// can stop it after some epochs.
func wasmtimeFresh(_ context.Context, b *bench, g guests.Guest) (invoke, error) {
	config := wasmtime.NewConfig()
	config.SetEpochInterruption(true)
	engine := wasmtime.NewEngineWithConfig(config)
	module, err := wasmtime.NewModule(engine, g.Weir)
	if err != nil {
		return nil, err
	}
	var fr *frames // of the call that runs: there is one at a time
	linker := wasmtime.NewLinker(engine)
	memory := func(caller *wasmtime.Caller, at, length int32) []byte {
		all := caller.GetExport(abi.ExportMemory).Memory().UnsafeData(caller)
		return all[uint32(at):][:uint32(length)]
	}
	err = errors.Join(
		linker.DefineWasi(),
		linker.FuncWrap(abi.ImportModule, abi.ImportInput, func(caller *wasmtime.Caller, at int32) {
			copy(memory(caller, at, int32(len(fr.in))), fr.in)
		}),
		linker.FuncWrap(abi.ImportModule, abi.ImportOutput, func(caller *wasmtime.Caller, at, length int32) {
			fr.out = append([]byte(nil), memory(caller, at, length)...)
		}),
		linker.FuncWrap(abi.ImportModule, abi.ImportLog, func(_, _, _ int32) {}),
	)
	if err != nil {
		return nil, err
	}
	ticker := time.NewTicker(epoch)
	ended := make(chan struct{})
	go func() {
		for {
			select {
			case <-ticker.C:
				engine.IncrementEpoch()
			case <-ended:
				return
			}
		}
	}()
	b.atEnd(func() {
		ticker.Stop()
		close(ended)
	})
	return func(inv *abi.Invocation) (abi.Result, error) {
		store := wasmtime.NewStore(engine)
		defer store.Close()
		store.SetWasi(wasmtime.NewWasiConfig())
		store.SetEpochDeadline(uint64(callTime / epoch))
		instance, err := linker.Instantiate(store, module)
		if err != nil {
			return abi.Result{}, err
		}
		if f := instance.GetFunc(store, abi.ExportInitialize); f != nil {
			if _, err := f.Call(store); err != nil {
				return abi.Result{}, err
			}
		}
		fr = &frames{in: callFrame(inv)}
		status, err := instance.GetFunc(store, abi.ExportInvoke).Call(store, int32(len(fr.in)))
		if err != nil {
			return abi.Result{}, err
		}
		if status != int32(0) {
			return abi.Result{}, fmt.Errorf("the guest returned %v", status)
		}
		return readAnswer(inv, fr.out)
	}, nil
}
