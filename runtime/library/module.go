package library

import (
	"context"

	"github.com/weir-mcp/weir/abi"
)

// Module is a loaded module. *runtime.Module is one.
type Module interface {
	// Descriptors is what the module serves, in the order in which it named
	// them. It does not change.
	Descriptors() []abi.Descriptor
	// Invoke calls the interceptor that inv names by the module's own name for
	// it. It enforces inv.Timeout and the module's own limits, and fills in
	// interceptor, type, phase and durationMs of the result. The error is an
	// *abi.Error, or is read by abi.AsError.
	Invoke(ctx context.Context, inv abi.Invocation) (abi.Result, error)
	// Digest is the SHA-256 of the file, in hex.
	Digest() string
	// Close frees the module. The library calls it once, when no call runs any
	// more and none can start.
	Close(ctx context.Context) error
}

// Loader makes modules of the bytes of files.
type Loader interface {
	// Load loads a module or says why it cannot be served. Name is the file's
	// name without its folder. It may be called concurrently, and must end
	// soon after ctx does.
	Load(ctx context.Context, name string, wasm []byte) (Module, error)
}

// LoaderFunc is a function as a [Loader].
type LoaderFunc func(ctx context.Context, name string, wasm []byte) (Module, error)

// Load calls f.
func (f LoaderFunc) Load(ctx context.Context, name string, wasm []byte) (Module, error) {
	return f(ctx, name, wasm)
}
