// Package library serves a folder of WebAssembly modules, and interceptors
// written in Go, as one set of interceptors: it loads, watches, swaps and
// refuses, and it answers invocations with the whole error table of
// protocol.md §3.
//
// # A folder
//
// A folder's modules are its direct, non-hidden *.wasm children that are
// regular files after following links (config.md). Each is read once, and the
// same bytes are hashed, judged by their pin and signature, parsed and compiled.
// A module is all or nothing: one bad descriptor, or one name that somebody else
// serves, refuses it whole. What does not load is reported, left out and tried
// again; the last good version of the file serves on. See [Library.Open].
//
// # Native interceptors
//
// [Library.Register] adds an interceptor written in Go. It looks exactly like
// one of a module to whoever lists or invokes it. [Validator], [Mutator] and
// [Sink] take typed handlers, [Check] and [CheckTool] a plain func that returns
// a bool.
//
// # What it may not know
//
// MCP, transports, sessions, chains and policy. It knows modules through two
// small interfaces of its own, [Loader] and [Module]; [Sandbox] makes a Loader
// of a *runtime.Runtime.
//
// # Use
//
//	lib := library.New(library.Options{Loader: library.Sandbox(rt, options), Logger: log})
//	if err := lib.Open(ctx, "./interceptors"); err != nil { ... }
//	defer lib.Close(context.Background())
//	result, err := lib.Invoke(ctx, abi.Invocation{...}) // err is an *abi.Error
//
// Readers see the old set or the new one, never a mixture: the set is an
// immutable value behind one pointer. A module that was replaced is closed when
// its running calls have ended. All methods of [Library] are safe for
// concurrent use.
package library
