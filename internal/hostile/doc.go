// Package hostile is the modules that mean harm, or are as large as they may be:
// what every engine has to survive (the sandbox cases and the hostile corpus). It
// is for tests only, and knows nothing of engines.
//
// [Modules] is the corpus, each module with what becomes of it: what the refusal
// says, or how a call with [Misbehave] ends. Every one that loads is an
// interceptor module whose validator [Interceptor] lets all other payloads pass.
//
// [Shapes] is code that does not end, for whoever wants it in a module of its own.
//
//	for _, m := range hostile.Modules() {
//		module, err := runtime.Load(ctx, m.Wasm(), options)
//		…
//	}
package hostile
