package memory

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What a guest may grow to is reserved before it runs, and given back after.
func TestForeignReserves(t *testing.T) {
	account := NewAccount(100)
	reclaimed := 0
	account.OnShortage(func() { reclaimed++ })
	f := NewForeign(account, Fresh)
	require.NoError(t, f.Begin(10))
	require.Equal(t, uint64(50), f.Reserve(50))
	require.Equal(t, int64(50), account.Used())
	require.Equal(t, uint64(50), f.Reserve(20), "what is reserved stays")
	f.Settle(12)
	require.Equal(t, int64(12), account.Used())
	f.Settle(99)
	require.Equal(t, int64(12), account.Used(), "it takes nothing more")
	require.Zero(t, reclaimed)

	// No more than half of what is left, after others were asked to give up
	// what they do not use.
	require.Equal(t, uint64(12+44), f.Reserve(1000))
	require.Equal(t, 1, reclaimed)
	other := NewForeign(account, Fresh)
	require.ErrorIs(t, other.Begin(45), ErrNoRoom)
	require.NoError(t, other.Begin(44))
	require.Equal(t, uint64(44), other.Reserve(1000))
	_, err := f.Capture(make([]byte, 1))
	require.ErrorIs(t, err, ErrNoRoom)
	f.Free()
	other.Free()
	require.Zero(t, account.Used())

	unbounded := NewForeign(nil, Fresh)
	require.NoError(t, unbounded.Begin(1<<40))
	require.Equal(t, uint64(1<<41), unbounded.Reserve(1<<41))
	unbounded.Free()
}
