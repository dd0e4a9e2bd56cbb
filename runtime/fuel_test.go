package runtime

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
)

// use has a guest take so much fuel, in steps, as metered code does: it asks for
// more when it is below zero. It returns what it could take.
func use(t *tank, total, step int64) (used int64, err error) {
	for used < total {
		left := int64(t.gauge.Get()) - step
		t.gauge.Set(uint64(left))
		used += step
		if left < 0 {
			more, err := t.refuel(context.Background(), left)
			if err != nil {
				return used, err
			}
			t.gauge.Set(uint64(more))
		}
	}
	return used, nil
}

// A budget ends a call at the same unit, however large the slices were.
func TestBudgetsDoNotDependOnSlices(t *testing.T) {
	for _, budget := range []int64{1, 1000, firstSlice, firstSlice + 1, 10 * mostSlice} {
		for _, took := range []time.Duration{0, 700 * time.Microsecond, time.Second} {
			synctest.Test(t, func(t *testing.T) {
				var tank tank
				tank.fill(new(fakeGlobal), nil, deadline{}, budget)
				clocked := func(left int64) (int64, error) {
					time.Sleep(took)
					return tank.refuel(context.Background(), left)
				}
				used, gauge := int64(0), tank.gauge
				for {
					left := int64(gauge.Get()) - 10
					gauge.Set(uint64(left))
					used += 10
					if left >= 0 {
						continue
					}
					more, err := clocked(left)
					if err != nil {
						require.Equal(t, abi.ReasonFuel, failureOf(err).reason)
						break
					}
					gauge.Set(uint64(more))
				}
				require.Equal(t, budget/10*10+10, used)
			})
		}
	}
}

// Slices become larger while they are short and smaller while they are long.
func TestSlicesFollowTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tank tank
		tank.fill(new(fakeGlobal), nil, deadline{}, 0)
		require.Equal(t, uint64(firstSlice), tank.gauge.Get())
		last := int64(0)
		for range 20 {
			last, _ = tank.refuel(context.Background(), -1)
		}
		require.Equal(t, int64(mostSlice), last)
		for range 20 {
			time.Sleep(time.Second)
			last, _ = tank.refuel(context.Background(), -1)
		}
		require.Equal(t, int64(leastSlice), last)
	})
}

func TestWhatEndsARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tank tank
		tank.fill(new(fakeGlobal), nil, within(time.Second), 0)
		_, err := use(&tank, 10*mostSlice, 100)
		require.NoError(t, err)
		time.Sleep(time.Second + 1)
		_, err = use(&tank, 10*mostSlice, 100)
		f := failureOf(err)
		require.Equal(t, abi.ReasonTimeout, f.reason)
		require.Equal(t, time.Second, f.limit)

		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		tank.fill(new(fakeGlobal), nil, within(time.Second), 0)
		_, err = tank.refuel(ctx, -1)
		require.Equal(t, abi.ReasonCancelled, failureOf(err).reason)

		early, late := within(time.Second), within(time.Minute)
		require.Equal(t, early, early.or(late))
		require.Equal(t, early, late.or(early))
		require.Equal(t, late, late.or(deadline{}))
		require.Equal(t, late, deadline{}.or(late))
	})
}

// Work of the host is paid for with the next step, or at the end.
func TestChargesOfTheHost(t *testing.T) {
	var tank tank
	tank.fill(new(fakeGlobal), nil, deadline{}, 1000)
	tank.charge(7)
	require.Equal(t, uint64(1000), tank.gauge.Get(), "too little to count")
	tank.charge(800)
	require.Equal(t, uint64(900), tank.gauge.Get())
	require.NoError(t, tank.settle())
	tank.charge(8000)
	require.Equal(t, abi.ReasonFuel, failureOf(tank.settle()).reason)
	_, err := tank.refuel(context.Background(), int64(tank.gauge.Get()))
	require.Equal(t, abi.ReasonFuel, failureOf(err).reason)
}
