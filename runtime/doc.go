// Package runtime is the sandbox: it runs one WebAssembly module as one or more
// interceptors (abi.md), within limits, reaching nothing that was not granted.
//
// It knows modules, limits, grants, engines and instances. It knows nothing of
// MCP transports, folders of modules, chains or configuration files; who does,
// package library for one, builds on it.
//
// # Use
//
//	engine, err := wazero.New(wazero.Options{CacheDir: dir})
//	r := runtime.New(engine)
//	defer r.Close(ctx)
//	m, err := r.Load(ctx, wasm, runtime.ModuleOptions{Name: "redactor.wasm"})
//	result, err := m.Invoke(ctx, invocation)
//
// [Inspect] tells what a module is without running it.
//
// # What is promised
//
// Modules, payloads and answers are untrusted. No engine sees bytes that package
// meter has not accepted, and none of their custom sections. Every call starts
// from the state that loading leaves: today on an instance of its own. Every
// limit of [Limits] holds and is told by its reason in [abi.Error]; the guest's
// own words are in the error's Cause and in the log, never in what goes out. A
// failure of a call affects no other call, and nothing counts failures. A panic
// inside an engine ends the call, not the process.
//
// Who calls decides what failures mean and logs them: this package logs only
// what guests say.
//
// # What is not, yet
//
// Time is kept by the engine's own means, which is to look at loop headers only:
// code without loops, such as functions that call each other in a tree, runs
// past every deadline, and so does one long instruction, such as a fill of all
// memory. Metering closes this (sandbox.md, A). Compiling cannot be cancelled;
// its length is bounded by the limits of package meter. There is no fuel, no
// warm-up and no reuse of instances. The README of this folder lists the rest.
package runtime
