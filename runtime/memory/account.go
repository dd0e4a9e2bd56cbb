package memory

import (
	"errors"
	"fmt"
	"sync/atomic"
)

// ErrNoRoom is the error of everything that the account had no room for, or the
// system: for now, since others may give theirs back.
var ErrNoRoom = errors.New("there is no room for more memory")

// Account bounds what all memories and images that are charged to it have
// together, in bytes. It is safe for concurrent use. A nil account bounds
// nothing.
type Account struct {
	limit   int64
	used    atomic.Int64
	reclaim atomic.Pointer[func()]
}

// NewAccount returns an account of so many bytes.
func NewAccount(limit int64) *Account { return &Account{limit: limit} }

// OnShortage has f called whenever the account is short, before anything is
// refused: f may free memories that nobody uses. It may be called from several
// goroutines at once, and while the caller is inside a guest's call.
func (a *Account) OnShortage(f func()) { a.reclaim.Store(&f) }

// Used is what is taken, in bytes.
func (a *Account) Used() int64 { return a.used.Load() }

// Limit is what may be taken, in bytes.
func (a *Account) Limit() int64 { return a.limit }

// take charges n bytes, or changes nothing.
func (a *Account) take(n uint64) error {
	if a == nil || n == 0 || a.try(int64(n)) {
		return nil
	}
	if a.shortage() && a.try(int64(n)) {
		return nil
	}
	return fmt.Errorf("%w: %d bytes are asked for, %d of %d are taken", ErrNoRoom, n, a.Used(), a.limit)
}

// shortage has memories freed that nobody uses, and reports whether it could.
func (a *Account) shortage() bool {
	if a == nil {
		return false
	}
	f := a.reclaim.Load()
	if f != nil {
		(*f)()
	}
	return f != nil
}

func (a *Account) try(n int64) bool {
	if a.used.Add(n) <= a.limit {
		return true
	}
	a.used.Add(-n)
	return false
}

func (a *Account) give(n uint64) {
	if a != nil {
		a.used.Add(-int64(n))
	}
}
