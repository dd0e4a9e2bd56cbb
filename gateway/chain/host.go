package chain

import (
	"context"

	"github.com/weir-mcp/weir/abi"
)

// Host serves interceptors. Implementations are safe for concurrent use.
type Host interface {
	// Name is the configured name of the host, unique among the hosts of one
	// plan. It is what the `host` of a policy entry refers to.
	Name() string
	// Invoke runs one interceptor once. It never retries. The error, if any, is
	// read with [abi.AsError]. inv's byte slices are shared with concurrent
	// invocations: Invoke does not write to them. The result belongs to the
	// caller.
	//
	// Invoke should return when ctx ends. The executor does not rely on it,
	// see [Options.Abandoned] and [PromptHost].
	Invoke(ctx context.Context, inv abi.Invocation) (abi.Result, error)
}

// PromptHost is a Host that promises to return promptly once its context ends,
// whatever the interceptor does. The executor calls it on its own goroutine
// where that saves one. Whoever breaks the promise holds up the operation
// beyond its deadline.
type PromptHost interface {
	Host
	// ReturnsPromptly makes the promise. It is never called.
	ReturnsPromptly()
}

// Listing is what discovery found out about one configured host.
type Listing struct {
	Host Host
	// Interceptors is the list in force: fresh, or of a valid cache.
	Interceptors []abi.Descriptor
	// Skipped is what the list held and could not be used.
	Skipped []abi.Skipped
	// Err says that the host cannot be listed and has no valid cache. The lists
	// above are then ignored.
	Err error
	// FailOpen lets operations go on without a host that cannot be listed.
	FailOpen bool
}

// hostName is the host's name, "" where a listing has no host.
func (l *Listing) hostName() string {
	if l.Host == nil {
		return ""
	}
	return l.Host.Name()
}
