//go:build wasmtime

package wasmtime

import (
	"context"
	"crypto/sha256"
	"fmt"
	goruntime "runtime"

	wasm "github.com/bytecodealliance/wasmtime-go/v44"
	"golang.org/x/sys/cpu"

	"github.com/weir-mcp/weir/runtime"
)

var _ runtime.Keeper = (*Engine)(nil)

// CodeKey implements [runtime.Keeper]. It does not name settings, which are the
// same in all engines. What the processor can do is in it so that machines that
// share a folder do not exchange each other's entries; wasmtime writes both into
// what it serialises all the same, and refuses what does not fit here.
func (e *Engine) CodeKey() string {
	features := sha256.Sum256(fmt.Append(nil, cpu.X86, cpu.ARM64, cpu.RISCV64, cpu.S390X))
	return fmt.Sprintf("%s %s/%s cpu %x", e.Name(), goruntime.GOOS, goruntime.GOARCH, features[:8])
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
