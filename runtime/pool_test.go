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

func fakeSnapshot(image Image) *snapshot {
	s := &snapshot{image: image}
	s.users.Store(1)
	return s
}

func closed(g *guest) int { return int(g.instance.(*fakeInstance).closed.Load()) }

func TestPool(t *testing.T) {
	p := pool{most: 2}
	g, s := p.take()
	require.Nil(t, g)
	require.Nil(t, s, "not captured yet")

	image := &fakeImage{}
	snap := fakeSnapshot(image)
	guests := fakeGuests(4)
	for _, g := range guests {
		g.from = snap
	}
	require.True(t, p.open(snap, guests[0]))
	g, s = p.take()
	require.Same(t, guests[0], g)
	require.Nil(t, s, "there is no need of it")
	g, s = p.take()
	require.Nil(t, g)
	require.Same(t, snap, s, "to make one from")
	require.Equal(t, int64(2), snap.users.Load())
	s.release()

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

// With a new snapshot nobody gets the state of the old one any more, whose image
// is freed once nobody makes a guest from it.
func TestThePoolGoesOverToANewSnapshot(t *testing.T) {
	p := pool{most: 10}
	oldImage, newImage := &fakeImage{}, &fakeImage{}
	old, next := fakeSnapshot(oldImage), fakeSnapshot(newImage)
	guests := fakeGuests(4)
	waits, runs, first, late := guests[0], guests[1], guests[2], guests[3]
	waits.from, runs.from, first.from, late.from = old, old, next, old
	require.True(t, p.open(old, runs))
	g, _ := p.take()
	require.Same(t, runs, g)
	g, making := p.take()
	require.Nil(t, g)
	require.True(t, p.put(waits))

	require.True(t, p.open(next, first))
	require.Equal(t, 1, closed(waits))
	require.False(t, p.put(runs), "it is of the old state")
	require.Zero(t, oldImage.freed, "somebody makes a guest from it")
	making.release()
	require.Equal(t, 1, oldImage.freed)
	require.False(t, p.put(late))

	g, _ = p.take()
	require.Same(t, first, g)
	require.True(t, p.put(first))
	p.close()
	require.Equal(t, 1, closed(first))
	require.Equal(t, 1, newImage.freed)
	require.Equal(t, 1, oldImage.freed)
}

func TestThePoolShrinksWhenIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pool{most: 10}
		snap := fakeSnapshot(&fakeImage{})
		guests := fakeGuests(3)
		require.True(t, p.open(snap, guests[0]))
		for _, g := range guests[1:] {
			g.from = snap
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
		again.from = snap
		require.True(t, p.put(again))
		time.Sleep(idleTime + time.Second)
		synctest.Wait()
		require.Equal(t, 1, closed(again))
		last := fakeGuests(1)[0]
		last.from = snap
		require.True(t, p.put(last))
		p.close()
	})
}
