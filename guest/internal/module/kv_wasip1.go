package module

import "unsafe"

//go:wasmimport weir kv_get
func hostKVGet(key string, into unsafe.Pointer, capacity uint32) int32

//go:wasmimport weir kv_set
func hostKVSet(key string, value unsafe.Pointer, length uint32, ttlMs int64) int32

//go:wasmimport weir kv_add
func hostKVAdd(key string, delta, ttlMs int64, sum unsafe.Pointer) int32

//go:wasmimport weir kv_delete
func hostKVDelete(key string) int32

// KVGet reads a value into a buffer, if it fits, and returns its length.
func KVGet(key string, into []byte) int32 {
	return hostKVGet(key, unsafe.Pointer(unsafe.SliceData(into)), uint32(len(into)))
}

// KVSet replaces a value.
func KVSet(key string, value []byte, ttlMs int64) int32 {
	return hostKVSet(key, unsafe.Pointer(unsafe.SliceData(value)), uint32(len(value)), ttlMs)
}

// KVAdd adds to a counter.
func KVAdd(key string, delta, ttlMs int64) (sum int64, code int32) {
	code = hostKVAdd(key, delta, ttlMs, unsafe.Pointer(&sum))
	return sum, code
}

// KVDelete removes a value.
func KVDelete(key string) int32 { return hostKVDelete(key) }
