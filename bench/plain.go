package main

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/bench/guests"
	"github.com/weir-mcp/weir/internal/wire"
)

// descriptor is what all guests describe.
var descriptor = abi.Descriptor{Name: "redact", Type: abi.Mutation}

// frames are the input and the output of one call.
type frames struct{ in, out []byte }

type framesKey struct{}

// readAnswer reads an answer as weir's runtime does, so that every contender
// pays for it.
func readAnswer(inv *abi.Invocation, answer []byte) (abi.Result, error) {
	if err := wire.Strict(answer); err != nil {
		return abi.Result{}, err
	}
	return abi.ReadAnswer(answer, &descriptor, inv.Phase)
}

func callFrame(inv *abi.Invocation) []byte {
	return abi.AppendCall(make([]byte, 0, len(inv.Payload)+512), inv)
}

// plain is wazero without weir: host functions and nothing else.
type plain struct {
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
}

func newPlain(ctx context.Context, b *bench, wasm []byte, stoppable bool) (*plain, error) {
	p := &plain{runtime: wazero.NewRuntimeWithConfig(ctx,
		wazero.NewRuntimeConfig().WithCompilationCache(b.cache).WithCloseOnContextDone(stoppable))}
	b.atEnd(func() { _ = p.runtime.Close(context.Background()) })
	_, err := p.runtime.NewHostModuleBuilder(abi.ImportModule).
		NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(hostInput), []api.ValueType{api.ValueTypeI32}, nil).Export(abi.ImportInput).
		NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(hostOutput), []api.ValueType{api.ValueTypeI32, api.ValueTypeI32}, nil).Export(abi.ImportOutput).
		NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(hostLog), []api.ValueType{api.ValueTypeI32, api.ValueTypeI32, api.ValueTypeI32}, nil).Export(abi.ImportLog).
		Instantiate(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, p.runtime); err != nil {
		return nil, err
	}
	p.compiled, err = p.runtime.CompileModule(ctx, wasm)
	return p, err
}

func hostInput(ctx context.Context, m api.Module, words []uint64) {
	if !m.Memory().Write(uint32(words[0]), ctx.Value(framesKey{}).(*frames).in) {
		panic(errors.New("input: outside memory"))
	}
}

func hostOutput(ctx context.Context, m api.Module, words []uint64) {
	b, ok := m.Memory().Read(uint32(words[0]), uint32(words[1]))
	if !ok {
		panic(errors.New("output: outside memory"))
	}
	ctx.Value(framesKey{}).(*frames).out = append([]byte(nil), b...)
}

func hostLog(context.Context, api.Module, []uint64) {}

func (p *plain) instantiate(ctx context.Context) (api.Module, error) {
	return p.runtime.InstantiateModule(ctx, p.compiled, wazero.NewModuleConfig().WithName("").
		WithStartFunctions(abi.ExportInitialize).WithSysNanotime().WithSysWalltime().WithRandSource(rand.Reader))
}

func callPlain(ctx context.Context, f api.Function, inv *abi.Invocation) (abi.Result, error) {
	fr := &frames{in: callFrame(inv)}
	stack := [1]uint64{uint64(len(fr.in))}
	if err := f.CallWithStack(context.WithValue(ctx, framesKey{}, fr), stack[:]); err != nil {
		return abi.Result{}, err
	}
	return readAnswer(inv, fr.out)
}

// unsafeReuse calls one instance again and again: nothing stops a guest, and
// what one call leaves behind the next one finds.
func unsafeReuse(ctx context.Context, b *bench, g guests.Guest) (invoke, error) {
	p, err := newPlain(ctx, b, g.Weir, false)
	if err != nil {
		return nil, err
	}
	m, err := p.instantiate(ctx)
	if err != nil {
		return nil, err
	}
	f := m.ExportedFunction(abi.ExportInvoke)
	return func(inv *abi.Invocation) (abi.Result, error) { return callPlain(ctx, f, inv) }, nil
}

// callTime is the limit of those contenders that have one.
const callTime = time.Second

// closeOnDone calls one instance again and again, and can be stopped: in the way
// that wazero has, which closes the instance.
func closeOnDone(ctx context.Context, b *bench, g guests.Guest) (invoke, error) {
	p, err := newPlain(ctx, b, g.Weir, true)
	if err != nil {
		return nil, err
	}
	m, err := p.instantiate(ctx)
	if err != nil {
		return nil, err
	}
	f := m.ExportedFunction(abi.ExportInvoke)
	return func(inv *abi.Invocation) (abi.Result, error) {
		ctx, cancel := context.WithTimeout(ctx, callTime)
		defer cancel()
		return callPlain(ctx, f, inv)
	}, nil
}

// freshInstance makes an instance for every call; nothing stops a guest.
func freshInstance(ctx context.Context, b *bench, g guests.Guest) (invoke, error) {
	p, err := newPlain(ctx, b, g.Weir, false)
	if err != nil {
		return nil, err
	}
	return func(inv *abi.Invocation) (abi.Result, error) {
		m, err := p.instantiate(ctx)
		if err != nil {
			return abi.Result{}, err
		}
		defer m.Close(ctx)
		return callPlain(ctx, m.ExportedFunction(abi.ExportInvoke), inv)
	}, nil
}
