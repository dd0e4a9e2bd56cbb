//go:build wasmtime

package wasmtime

import (
	"context"
	"fmt"
	goruntime "runtime"

	wasm "github.com/bytecodealliance/wasmtime-go/v44"

	"github.com/weir-mcp/weir/runtime"
)

var _ runtime.Keeper = (*Engine)(nil)

// CodeKey implements [runtime.Keeper]. It does not name settings, which are the
// same in all engines, nor what the processor can do: wasmtime writes both into
// what it serialises, and refuses what was made for a processor that can do more
// than this one.
func (e *Engine) CodeKey() string {
	return fmt.Sprintf("%s %s/%s", e.Name(), goruntime.GOOS, goruntime.GOARCH)
}

// CompileToKeep implements [runtime.Keeper].
func (e *Engine) CompileToKeep(_ context.Context, binary []byte) (runtime.Code, []byte, error) {
	module, err := wasm.NewModule(e.engine, binary)
	if err != nil {
		return nil, nil, err
	}
	made, err := newCode(e, module)
	if err != nil {
		return nil, nil, err
	}
	kept, err := module.Serialize()
	if err != nil {
		e.logger.Warn("code cannot be kept: a module is compiled at every start", "error", err)
		return made, nil, nil
	}
	return made, kept, nil
}

// CompileKept implements [runtime.Keeper]. It does not look at the module:
// wasmtime copies what was kept and maps it as machine code.
func (e *Engine) CompileKept(_ context.Context, _, kept []byte) (runtime.Code, error) {
	module, err := wasm.NewModuleDeserialize(e.engine, kept)
	if err != nil {
		return nil, err
	}
	return newCode(e, module)
}
