//go:build wasmtime

package wasmtime

import (
	"math"

	wasm "github.com/bytecodealliance/wasmtime-go/v44"

	"github.com/weir-mcp/weir/runtime"
)

// fromWord is a word as wasmtime takes it.
func fromWord(kind wasm.ValKind, word uint64) any {
	switch kind {
	case wasm.KindI64:
		return int64(word)
	case wasm.KindF32:
		return math.Float32frombits(uint32(word))
	case wasm.KindF64:
		return math.Float64frombits(word)
	}
	return int32(uint32(word))
}

// toWord is what wasmtime gives as a word; 0 for nothing and for references.
func toWord(value any) uint64 {
	switch v := value.(type) {
	case int32:
		return uint64(uint32(v))
	case int64:
		return uint64(v)
	case float32:
		return uint64(math.Float32bits(v))
	case float64:
		return math.Float64bits(v)
	}
	return 0
}

// toVal is a word as a value of a number type.
func toVal(kind wasm.ValKind, word uint64) wasm.Val {
	switch kind {
	case wasm.KindI64:
		return wasm.ValI64(int64(word))
	case wasm.KindF32:
		return wasm.ValF32(math.Float32frombits(uint32(word)))
	case wasm.KindF64:
		return wasm.ValF64(math.Float64frombits(word))
	}
	return wasm.ValI32(int32(uint32(word)))
}

// global is a global of an instance.
type global struct {
	*wasm.Global
	store *wasm.Store
	kind  wasm.ValKind
}

var _ runtime.Global = (*global)(nil)

// Global implements [runtime.Instance].
func (i *instance) Global(export string) runtime.Global {
	e := i.instance.GetExport(i.store, export)
	if e == nil {
		return nil
	}
	g := e.Global()
	if g == nil {
		return nil
	}
	typ := g.Type(i.store)
	kind := typ.Content().Kind()
	switch kind {
	case wasm.KindI32, wasm.KindI64, wasm.KindF32, wasm.KindF64:
		if typ.Mutable() {
			return &global{g, i.store, kind}
		}
	}
	return nil
}

// Get implements [runtime.Global].
func (g *global) Get() uint64 { return toWord(g.Global.Get(g.store).Get()) }

// Set implements [runtime.Global]. wasmtime refuses values of another type and
// globals that are not mutable only, and this is neither.
func (g *global) Set(value uint64) { _ = g.Global.Set(g.store, toVal(g.kind, value)) }

// hostFunction adapts a host function. It finds its instance in the store that
// calls it. An error is kept there and ends the guest by a trap.
func hostFunction(f runtime.HostFunc) func(*wasm.Caller, []wasm.Val) ([]wasm.Val, *wasm.Trap) {
	kinds := make([]wasm.ValKind, len(f.Type.Results))
	for n, t := range f.Type.Results {
		kinds[n] = kindOf(t)
	}
	return func(caller *wasm.Caller, values []wasm.Val) ([]wasm.Val, *wasm.Trap) {
		i := caller.Data().(*instance)
		words := i.words[:max(len(values), len(kinds))]
		for n, v := range values {
			words[n] = toWord(v.Get())
		}
		if err := f.Call(i.ctx, i, words); err != nil {
			i.hostErr = err
			return nil, wasm.NewTrap("ended by the host")
		}
		if len(kinds) == 0 {
			return nil, nil
		}
		return []wasm.Val{toVal(kinds[0], words[0])}, nil
	}
}
