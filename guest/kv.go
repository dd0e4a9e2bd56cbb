package guest

import (
	"errors"
	"fmt"
	"time"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/guest/internal/module"
)

// Store remembers values from call to call, which nothing else does (see
// State). It is the operator's to grant, in weir.yaml:
//
//	files: {quota.wasm: {grants: {kv: {scope: principal}}}}
//
// A module that calls a method of Store does not load without.
//
// By default each principal has values of its own, or each session where the
// host does not know who calls; the operator may grant each session its own, or
// one set of values to all callers. All interceptors of a module share them, and
// so do copies made by "as". They survive a new version of the module and end
// with the host's process. Other processes have others.
//
// Keys are at most 256 bytes, values at most 64 KiB; both are any bytes. A TTL
// is rounded up to milliseconds; 0 keeps a value until it is deleted.
//
// A value may be gone or the store out of reach at any time: decide what your
// interceptor does then. Returning the error fails the call, and blocks unless
// the interceptor is fail-open. It is safe for concurrent use; natively it needs
// guesttest.KV.
type Store struct{}

// KV is the module's store.
func KV() Store { return Store{} }

// Errors of [Store], to be found with errors.Is.
var (
	// ErrKVUnavailable says that there is no store, that it is full, or that the
	// host does not know for whom it would keep values.
	ErrKVUnavailable = errors.New("the store is unavailable")
	// ErrKVTooBig says that a key or value is longer than it may be, or that a
	// sum does not fit into 64 bits.
	ErrKVTooBig = errors.New("it is too big for the store")
	// ErrKVInvalid says that a TTL is negative, or that Add met a value that is
	// not a decimal integer.
	ErrKVInvalid = errors.New("it is not valid")
)

// Get returns a value, or false when the key is absent.
func (Store) Get(key string) (value []byte, ok bool, err error) {
	buffer := make([]byte, 256)
	for {
		n := module.KVGet(key, buffer)
		switch {
		case n == abi.KVAbsent:
			return nil, false, nil
		case n < 0:
			return nil, false, kvError("get", key, n)
		case int(n) <= len(buffer):
			return buffer[:n:n], true, nil
		}
		buffer = make([]byte, n) // another call may change the value meanwhile
	}
}

// Set replaces a value and its time.
func (Store) Set(key string, value []byte, ttl time.Duration) error {
	return kvError("set", key, module.KVSet(key, value, milliseconds(ttl)))
}

// Add adds to a counter and returns the sum, atomically. An absent key counts as
// 0 and lives for ttl from now on; a key that is there keeps the time it has. So
// a counter that is added to with a TTL of a minute counts what happens in a
// minute from the first time on, and then begins anew. To Get and Set, a counter
// is decimal text.
func (Store) Add(key string, delta int64, ttl time.Duration) (int64, error) {
	sum, code := module.KVAdd(key, delta, milliseconds(ttl))
	return sum, kvError("add", key, code)
}

// Delete removes a value and reports whether it was there.
func (Store) Delete(key string) (bool, error) {
	code := module.KVDelete(key)
	if code == abi.KVAbsent {
		return false, nil
	}
	return code == 0, kvError("delete", key, code)
}

// milliseconds rounds away from 0, so that what was asked to end does, and what
// is wrong stays so.
func milliseconds(d time.Duration) int64 {
	ms := d.Milliseconds()
	switch rest := d % time.Millisecond; {
	case rest > 0:
		ms++
	case rest < 0:
		ms--
	}
	return ms
}

func kvError(what, key string, code int32) error {
	reason := ErrKVUnavailable
	switch code {
	case 0:
		return nil
	case abi.KVTooBig:
		reason = ErrKVTooBig
	case abi.KVInvalid:
		reason = ErrKVInvalid
	}
	const shown = 64
	return fmt.Errorf("kv: %s %.*q: %w", what, shown, key, reason)
}
