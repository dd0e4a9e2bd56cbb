package store

import (
	"context"
	"errors"
	"time"
)

// Store keeps values by space and key. Two spaces never see each other's values.
// Keys and values are any bytes, empty ones included. It is safe for concurrent
// use, and ends soon after ctx does.
//
// A TTL of 0 keeps a value until it is deleted; a TTL is never negative. A value
// whose time has come is absent.
//
// What it cannot do it says by an error: [ErrFull], [ErrNotNumber] and
// [ErrOverflow] where they fit, any other where the store cannot be reached. It
// then has changed nothing.
type Store interface {
	// Get returns a value, or false when the key is absent. The bytes must not
	// be written to.
	Get(ctx context.Context, s Space, key string) (value []byte, ok bool, err error)
	// Set replaces a value and its time. The store keeps no reference to value.
	Set(ctx context.Context, s Space, key string, value []byte, ttl time.Duration) error
	// Add adds to a counter and returns the sum, in one step: of two concurrent
	// Adds each sees the other or is seen by it. An absent key counts as 0 and
	// lives for ttl; a key that is there keeps the time it has, so that a
	// counter of a period ends with the period however often it is added to.
	// A counter is text: decimal digits, after a "-" where it is below 0.
	Add(ctx context.Context, s Space, key string, delta int64, ttl time.Duration) (int64, error)
	// Delete removes a value and reports whether it was there.
	Delete(ctx context.Context, s Space, key string) (bool, error)
}

// Errors of a [Store].
var (
	// ErrFull says that the store has no room for a new key or a larger value.
	// What it holds stays: nothing is thrown out to make room, because what is
	// thrown out may be the counter that holds a caller back.
	ErrFull = errors.New("the store is full")
	// ErrNotNumber says that Add met a value that is no counter.
	ErrNotNumber = errors.New("the value is not a decimal 64-bit integer")
	// ErrOverflow says that the sum of Add does not fit into 64 bits.
	ErrOverflow = errors.New("the sum does not fit into 64 bits")
)

// Scope says whose values a module sees (abi.md, grant kv).
type Scope string

// The scopes.
const (
	// Principal gives each authenticated principal a space of its own, and each
	// session without one.
	Principal Scope = "principal"
	// Session gives each session a space of its own.
	Session Scope = "session"
	// Module gives all callers one space: a channel between them.
	Module Scope = "module"
)

// Valid reports whether s is one of the three scopes.
func (s Scope) Valid() bool { return s == Principal || s == Session || s == Module }

// Space is one set of keys: that of a file of a host, in a scope, of one owner.
// A file keeps its spaces when it is loaded anew, and loses sight of them when
// its scope is changed.
type Space struct {
	// Host and File name whose module it is.
	Host, File string
	Scope      Scope
	// Owner is who is served, empty in the scope Module. It is bounded: a few
	// hundred bytes at most.
	Owner string
}
