//go:build wasip1 && extism

package border

import "encoding/binary"

//go:wasmimport extism:host/env input_length
func inputLength() uint64

//go:wasmimport extism:host/env input_load_u8
func inputLoadU8(at uint64) uint32

//go:wasmimport extism:host/env input_load_u64
func inputLoadU64(at uint64) uint64

//go:wasmimport extism:host/env alloc
func alloc(length uint64) uint64

//go:wasmimport extism:host/env store_u8
func storeU8(at uint64, b uint32)

//go:wasmimport extism:host/env store_u64
func storeU64(at, word uint64)

//go:wasmimport extism:host/env output_set
func outputSet(at, length uint64)

// invoke moves input and output eight bytes a call, as the PDKs do.
//
//go:wasmexport invoke
func invoke() int32 {
	frame := make([]byte, inputLength())
	i := 0
	for ; i+8 <= len(frame); i += 8 {
		binary.LittleEndian.PutUint64(frame[i:], inputLoadU64(uint64(i)))
	}
	for ; i < len(frame); i++ {
		frame[i] = byte(inputLoadU8(uint64(i)))
	}

	out := answer(frame)
	at := alloc(uint64(len(out)))
	i = 0
	for ; i+8 <= len(out); i += 8 {
		storeU64(at+uint64(i), binary.LittleEndian.Uint64(out[i:]))
	}
	for ; i < len(out); i++ {
		storeU8(at+uint64(i), uint32(out[i]))
	}
	outputSet(at, uint64(len(out)))
	return 0
}
