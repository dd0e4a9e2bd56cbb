// Package border is what stands between a guest of the benchmark and its host:
// weir's module ABI (abi.md, Flavour 1) or, with the build tag "extism", the
// functions that Extism's PDKs call. Both are written by hand, so that the code
// between them is the same.
package border

// answer makes the frame of the answer from the frame of the call.
var answer func(frame []byte) []byte

// Serve sets what the guest does. It is called by init functions.
func Serve(f func(frame []byte) []byte) { answer = f }
