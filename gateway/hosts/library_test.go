package hosts

import "github.com/weir-mcp/weir/runtime/library"

// The set that weir itself hosts in process.
var _ Interceptors = (*library.Library)(nil)
