package guest

import (
	"unsafe"

	"github.com/weir-mcp/weir/guest/internal/module"
)

// The border of abi.md, Flavour 1. The buffers belong to one call: nothing here
// keeps them, so what a handler keeps stays what it was, and what it does not
// keep is garbage when the call is over.

//go:wasmimport weir input
func hostInput(at unsafe.Pointer)

//go:wasmimport weir output
func hostOutput(at unsafe.Pointer, length uint32)

//go:wasmexport weir_abi_v1
func marker() {}

//go:wasmexport weir_describe
func describe() int32 {
	page, err := module.Default.Describe()
	if err != nil {
		module.Logf(module.LevelError, "%v", err)
		return 1
	}
	handOver(page)
	return 0
}

//go:wasmexport weir_invoke
func invoke(length int32) int32 {
	if length <= 0 {
		return 1
	}
	input := make([]byte, length)
	hostInput(unsafe.Pointer(unsafe.SliceData(input)))
	handOver(module.Default.Invoke(input))
	return 0
}

//go:wasmexport weir_reseed
func reseed(seed int64) { setSeed(uint64(seed)) }

func handOver(b []byte) { hostOutput(unsafe.Pointer(unsafe.SliceData(b)), uint32(len(b))) }
