//go:build wasip1 && !extism

package border

import "unsafe"

//go:wasmimport weir input
func hostInput(at unsafe.Pointer)

//go:wasmimport weir output
func hostOutput(at unsafe.Pointer, length uint32)

//go:wasmexport weir_abi_v1
func marker() {}

//go:wasmexport weir_describe
func describe() int32 {
	handOver([]byte(`{"interceptors":[{"name":"redact","type":"mutation","hooks":[{"events":["tools/call"],"phase":"request"}]}]}`))
	return 0
}

//go:wasmexport weir_invoke
func invoke(length int32) int32 {
	frame := make([]byte, length)
	hostInput(unsafe.Pointer(unsafe.SliceData(frame)))
	handOver(answer(frame))
	return 0
}

func handOver(b []byte) { hostOutput(unsafe.Pointer(unsafe.SliceData(b)), uint32(len(b))) }
