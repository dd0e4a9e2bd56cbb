// Package wazero is the default engine of package runtime: wazero, in pure Go.
// It compiles modules to machine code on amd64 and arm64 and interprets them
// elsewhere, or where it is told to.
//
// It adapts and decides nothing: limits, grants and what a module may import
// are the runtime's. What it adds to wazero is a memory limit for each instance,
// which wazero has for whole runtimes only, and a cache folder that is refused
// when others can write to it.
//
// # Limits of wazero that show through
//
//   - A call is stopped at loop headers only (WithCloseOnContextDone), which
//     also makes loops slower, 3 to 20 times; code without loops is not stopped.
//   - CompileModule ignores its context.
//   - The stack ends at some 50 MB of frames with the compiler, and at 2,000
//     calls deep with the interpreter; a Go guest takes seconds to get to the
//     former, so its endless recursion ends by the deadline.
//   - Entries of the cache carry a checksum and are not authenticated: hence the
//     demands on the folder. The folder is not bounded in size.
package wazero
