package memory

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCharge(t *testing.T) {
	account := NewAccount(100)
	reclaimed := 0
	account.OnShortage(func() { reclaimed++ })
	a, b := NewCharge(account), NewCharge(account)
	require.NoError(t, a.Set(20))
	require.NoError(t, a.Set(20))
	require.NoError(t, a.Set(12))
	require.Equal(t, int64(12), account.Used())

	require.ErrorIs(t, b.Set(89), ErrNoRoom)
	require.Equal(t, 1, reclaimed, "others were asked to give up what they do not use")
	require.Zero(t, b.Bytes())
	require.NoError(t, b.Set(44))
	require.ErrorIs(t, b.Set(89), ErrNoRoom)
	require.Equal(t, uint64(44), b.Bytes(), "as it was")

	// 44 are left, an eighth of which is 5.
	require.Equal(t, uint64(17), a.Share(1000))
	require.Equal(t, uint64(17), a.Share(17))
	require.Equal(t, uint64(18), a.Share(18))
	require.Equal(t, uint64(3), a.Share(3), "what is too much is given back")
	require.Equal(t, int64(47), account.Used())
	require.Equal(t, 2, reclaimed, "sharing asks nobody")

	a.Free()
	a.Free()
	b.Free()
	require.Zero(t, account.Used())
}

func TestChargeWithoutAnAccount(t *testing.T) {
	var c Charge
	require.NoError(t, c.Set(1<<50))
	require.Equal(t, uint64(1<<60), c.Share(1<<60))
	c.Free()
	require.Zero(t, c.Bytes())
}
