//go:build !wasmtime

package main

// wasmtimeContenders is empty without the build tag wasmtime, which needs cgo.
func wasmtimeContenders() []contender { return nil }
