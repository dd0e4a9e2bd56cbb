//go:build !wasip1

package module

import (
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/weir-mcp/weir/abi"
)

// The functions KVGet, KVSet, KVAdd and KVDelete return what the host does, in
// Wasm and here. Whoever does not call one does not import it, so that a module
// needs the grant kv only when it uses the store.

// KVDouble is a store for tests: what a host keeps for one caller, without
// bounds on the whole.
type KVDouble struct {
	mu     sync.Mutex
	values map[string]kvValue
}

type kvValue struct {
	bytes []byte
	ends  time.Time // zero for never
}

// NewKVDouble returns an empty store.
func NewKVDouble() *KVDouble { return &KVDouble{values: map[string]kvValue{}} }

var (
	kvMu   sync.Mutex
	kvHere *KVDouble
)

// UseKV makes d the store of the program, nil for none, until restore is called.
func UseKV(d *KVDouble) (restore func()) {
	kvMu.Lock()
	defer kvMu.Unlock()
	before := kvHere
	kvHere = d
	return func() {
		kvMu.Lock()
		defer kvMu.Unlock()
		kvHere = before
	}
}

// withKV calls f with the values that have not ended, unless there are none to
// be had or the key is too long.
func withKV(key string, f func(values map[string]kvValue) int32) int32 {
	kvMu.Lock()
	d := kvHere
	kvMu.Unlock()
	switch {
	case d == nil:
		return abi.KVUnavailable
	case len(key) > abi.MaxKVKey:
		return abi.KVTooBig
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if v, ok := d.values[key]; ok && !v.ends.IsZero() && !time.Now().Before(v.ends) {
		delete(d.values, key)
	}
	return f(d.values)
}

func endOf(ttlMs int64) time.Time {
	if ttlMs == 0 {
		return time.Time{}
	}
	const century = 100 * 365 * 24 * time.Hour
	return time.Now().Add(time.Duration(min(ttlMs, century.Milliseconds())) * time.Millisecond)
}

// KVGet reads a value into a buffer, if it fits, and returns its length.
func KVGet(key string, into []byte) int32 {
	return withKV(key, func(values map[string]kvValue) int32 {
		v, ok := values[key]
		if !ok {
			return abi.KVAbsent
		}
		if len(v.bytes) <= len(into) {
			copy(into, v.bytes)
		}
		return int32(len(v.bytes))
	})
}

// KVSet replaces a value.
func KVSet(key string, value []byte, ttlMs int64) int32 {
	return withKV(key, func(values map[string]kvValue) int32 {
		switch {
		case len(value) > abi.MaxKVValue:
			return abi.KVTooBig
		case ttlMs < 0:
			return abi.KVInvalid
		}
		values[key] = kvValue{append([]byte{}, value...), endOf(ttlMs)}
		return 0
	})
}

// KVAdd adds to a counter.
func KVAdd(key string, delta, ttlMs int64) (sum int64, code int32) {
	code = withKV(key, func(values map[string]kvValue) int32 {
		if ttlMs < 0 {
			return abi.KVInvalid
		}
		v, ok := values[key]
		if !ok {
			v = kvValue{[]byte("0"), endOf(ttlMs)}
		}
		n, err := strconv.ParseInt(string(v.bytes), 10, 64)
		switch {
		case err != nil || v.bytes[0] == '+':
			return abi.KVInvalid
		case delta > 0 && n > math.MaxInt64-delta || delta < 0 && n < math.MinInt64-delta:
			return abi.KVTooBig
		}
		sum = n + delta
		v.bytes = strconv.AppendInt(nil, sum, 10)
		values[key] = v
		return 0
	})
	return sum, code
}

// KVDelete removes a value.
func KVDelete(key string) int32 {
	return withKV(key, func(values map[string]kvValue) int32 {
		if _, ok := values[key]; !ok {
			return abi.KVAbsent
		}
		delete(values, key)
		return 0
	})
}
