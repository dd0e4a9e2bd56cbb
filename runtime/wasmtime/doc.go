// Package wasmtime is another engine of package runtime: wasmtime, which needs
// cgo. It exists in builds with the tag wasmtime only; all others neither
// compile nor download anything for it.
//
// It adapts and decides nothing, like package wazero, and runs the same
// rewritten modules, so that a call spends the same fuel on both. What is not
// the same is in the README beside it.
package wasmtime
