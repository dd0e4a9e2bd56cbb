// Package wasmtest assembles small WebAssembly modules for tests, instruction
// by instruction, so that a test says exactly what a guest does and needs no
// toolchain. It knows nothing of engines.
//
// [Module] is a bare module. [Reactor] is one that is an interceptor module
// already (abi.md, Flavour 1), of which the test writes what matters to it:
//
//	r := wasmtest.NewReactor(descriptor)
//	r.Invoke("", r.Answer(`{"result":{"valid":true}}`))
//	wasm := r.Bytes()
//
// Modules are not checked: a test may want one that is wrong.
package wasmtest
