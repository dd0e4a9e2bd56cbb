package library

import (
	"context"

	"github.com/weir-mcp/weir/runtime"
)

var _ Module = (*runtime.Module)(nil)

// Sandbox makes a [Loader] of a runtime. Options says, by file name, with what
// limits and grants a file is loaded; nil means abi.md's defaults and no grants.
// It may be called concurrently. The name in what it returns is replaced by the
// file's. Close the library before the runtime.
func Sandbox(rt *runtime.Runtime, options func(file string) runtime.ModuleOptions) Loader {
	return LoaderFunc(func(ctx context.Context, name string, wasm []byte) (Module, error) {
		var o runtime.ModuleOptions
		if options != nil {
			o = options(name)
		}
		o.Name = name
		m, err := rt.Load(ctx, wasm, o)
		if err != nil {
			return nil, err // not a nil *runtime.Module in a Module
		}
		return m, nil
	})
}
