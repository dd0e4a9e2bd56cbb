package guest_test

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/guest"
	"github.com/weir-mcp/weir/guest/guesttest"
)

func TestKV(t *testing.T) {
	guesttest.KV(t)
	kv := guest.KV()
	_, ok, err := kv.Get("k")
	require.NoError(t, err)
	require.False(t, ok)
	for _, value := range [][]byte{nil, []byte("v"), bytes.Repeat([]byte("x"), 257), bytes.Repeat([]byte("y"), 64<<10)} {
		require.NoError(t, kv.Set("k", value, 0))
		got, ok, err := kv.Get("k")
		require.NoError(t, err)
		require.True(t, ok)
		require.True(t, bytes.Equal(value, got))
	}
	for _, want := range []bool{true, false} {
		was, err := kv.Delete("k")
		require.NoError(t, err)
		require.Equal(t, want, was)
	}
	for want := range int64(3) {
		n, err := kv.Add("n", 1, time.Minute)
		require.NoError(t, err)
		require.Equal(t, want+1, n)
	}
	text, _, err := kv.Get("n")
	require.NoError(t, err)
	require.Equal(t, "3", string(text))
}

func TestKVRefuses(t *testing.T) {
	guesttest.KV(t)
	kv := guest.KV()
	long, fits := strings.Repeat("k", 257), strings.Repeat("k", 256)
	require.NoError(t, kv.Set(fits, nil, 0))
	require.NoError(t, kv.Set("word", []byte("word"), 0))
	require.NoError(t, kv.Set("top", fmt.Append(nil, math.MaxInt64), 0))
	for name, c := range map[string]struct {
		do   func() error
		want error
	}{
		"get of a long key":    {func() error { _, _, err := kv.Get(long); return err }, guest.ErrKVTooBig},
		"set of a long key":    {func() error { return kv.Set(long, nil, 0) }, guest.ErrKVTooBig},
		"delete of a long key": {func() error { _, err := kv.Delete(long); return err }, guest.ErrKVTooBig},
		"a long value":         {func() error { return kv.Set("k", make([]byte, 64<<10+1), 0) }, guest.ErrKVTooBig},
		"a sum past the end":   {func() error { _, err := kv.Add("top", 1, 0); return err }, guest.ErrKVTooBig},
		"adding to a word":     {func() error { _, err := kv.Add("word", 1, 0); return err }, guest.ErrKVInvalid},
		"a negative TTL":       {func() error { return kv.Set("k", nil, -1) }, guest.ErrKVInvalid},
		"a negative TTL, add":  {func() error { _, err := kv.Add("k", 1, -time.Second); return err }, guest.ErrKVInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.do()
			require.ErrorIs(t, err, c.want)
			require.Less(t, len(err.Error()), 150)
		})
	}
}

func TestKVWithoutAStore(t *testing.T) {
	kv := guest.KV()
	_, _, err := kv.Get("k")
	require.ErrorIs(t, err, guest.ErrKVUnavailable)
	require.ErrorIs(t, kv.Set("k", nil, 0), guest.ErrKVUnavailable)
	_, err = kv.Add("k", 1, 0)
	require.EqualError(t, err, `kv: add "k": the store is unavailable`)
	_, err = kv.Delete("k")
	require.ErrorIs(t, err, guest.ErrKVUnavailable)
	t.Run("but only there", func(t *testing.T) {
		guesttest.KV(t)
		require.NoError(t, kv.Set("k", nil, 0))
	})
	require.ErrorIs(t, kv.Set("k", nil, 0), guest.ErrKVUnavailable)
}

func TestKVTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		guesttest.KV(t)
		kv := guest.KV()
		count := func() int64 {
			n, err := kv.Add("n", 1, time.Minute)
			require.NoError(t, err)
			return n
		}
		require.EqualValues(t, 1, count())
		time.Sleep(time.Minute - 1)
		require.EqualValues(t, 2, count(), "the time of a counter is that of its first addition")
		time.Sleep(time.Nanosecond)
		require.EqualValues(t, 1, count())

		require.NoError(t, kv.Set("k", nil, time.Microsecond))
		_, ok, err := kv.Get("k")
		require.NoError(t, err)
		require.True(t, ok, "rounded up, not down to for ever")
		time.Sleep(time.Millisecond)
		_, ok, err = kv.Get("k")
		require.NoError(t, err)
		require.False(t, ok)
	})
}

func TestKVHammer(t *testing.T) {
	guesttest.KV(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				if _, err := guest.KV().Add("n", 1, 0); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	text, _, err := guest.KV().Get("n")
	require.NoError(t, err)
	require.Equal(t, "800", string(text))
}
