package runtime

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// fakeInstance counts how often it was closed.
type fakeInstance struct {
	Instance
	closed atomic.Int32
}

func (i *fakeInstance) Close(context.Context) error {
	i.closed.Add(1)
	return nil
}

type fakeImage struct{ freed int }

func (*fakeImage) Size() uint64 { return 0 }
func (i *fakeImage) Free()      { i.freed++ }

func fakeGuests(n int) (list []*guest) {
	for range n {
		list = append(list, &guest{instance: &fakeInstance{}})
	}
	return list
}

func closed(g *guest) int { return int(g.instance.(*fakeInstance).closed.Load()) }

func TestPool(t *testing.T) {
	p := pool{most: 2}
	g, s := p.take()
	require.Nil(t, g)
	require.Nil(t, s, "not captured yet")

	image := &fakeImage{}
	snap := &snapshot{image: image}
	guests := fakeGuests(4)
	require.True(t, p.open(snap, guests[0]))
	g, s = p.take()
	require.Same(t, guests[0], g)
	require.Same(t, snap, s)
	g, s = p.take()
	require.Nil(t, g)
	require.Same(t, snap, s, "to make one from")

	require.True(t, p.put(guests[0]))
	require.True(t, p.put(guests[1]))
	require.False(t, p.put(guests[2]), "there are two already")
	g, _ = p.take()
	require.Same(t, guests[1], g, "who came last: its memory is warm")
	require.True(t, p.put(g))
	p.drain()
	require.Equal(t, 1, closed(guests[0]))
	require.Equal(t, 1, closed(guests[1]))

	require.True(t, p.put(guests[3]))
	p.close()
	require.Equal(t, 1, closed(guests[3]))
	require.Equal(t, 1, image.freed)
	require.False(t, p.put(guests[2]))
	require.False(t, p.open(snap, guests[2]))
	require.Zero(t, closed(guests[2]), "it is still the caller's")
}

func TestThePoolShrinksWhenIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pool{most: 10}
		guests := fakeGuests(3)
		require.True(t, p.open(&snapshot{image: &fakeImage{}}, guests[0]))
		for _, g := range guests[1:] {
			time.Sleep(idleTime / 3)
			require.True(t, p.put(g))
		}
		for i := range guests {
			time.Sleep(idleTime/3 + time.Second)
			synctest.Wait()
			for k, g := range guests {
				require.Equal(t, k <= i, closed(g) == 1, "after %d", i)
			}
		}
		require.Nil(t, p.sweep)

		// It begins anew, and ends with the pool.
		again := fakeGuests(1)[0]
		require.True(t, p.put(again))
		time.Sleep(idleTime + time.Second)
		synctest.Wait()
		require.Equal(t, 1, closed(again))
		require.True(t, p.put(fakeGuests(1)[0]))
		p.close()
	})
}
