// Package runtime is the sandbox: it runs one WebAssembly module as one or more
// interceptors (abi.md), within limits, reaching nothing that was not granted.
//
// It knows modules, limits, grants, engines and instances. It knows nothing of
// MCP transports, folders of modules, chains or configuration files; who does,
// package library for one, builds on it.
//
// # Use
//
//	engine, err := wazero.New(wazero.Options{})
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
// meter has not accepted and rewritten, so that every guest stops itself: at its
// deadline, when it is cancelled, at its budget of fuel, in loading and warming
// up as in calls, whatever its code looks like. Every call starts from the state
// that loading leaves; nothing that a call writes is seen by another. Every
// limit of [Limits] holds and is told by its reason in [abi.Error]; the guest's
// own words are in the error's Cause and in the log, never in what goes out. A
// failure of a call affects no other call, and nothing counts failures. A panic
// inside an engine ends the call, not the process.
//
// # How calls are made pristine
//
// After a load the module serves at once, on a fresh instance for each call.
// Meanwhile it is warmed up, and the state it is then in is captured: memory as
// an image (package memory) and the mutable globals. From then on an instance is
// made from the snapshot, or put back to it after each call and kept for the
// next. What cannot be put back, such as a table that the module writes to, has
// the module run on fresh instances for good; [Module.Reset] and [Inspect] say
// so. There is no mode in which calls share state. What was random in the state
// would repeat for ever, so it is captured again from time to time.
//
// Who calls decides what failures mean and logs them: this package logs what
// guests say, and what became of a module's warm-up.
//
// # What is not, yet
//
// Compiling cannot be cancelled; its length is bounded by the limits of package
// meter. The README of this folder lists the rest.
package runtime
