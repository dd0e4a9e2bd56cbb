package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"
)

// cell is one row of one pair under one load.
type cell struct {
	pair, row string
	load      *load
	caller    caller
	buf       []byte
	// p50 is the median of each round, all is each call of every round.
	p50, all []time.Duration
	// rate is calls a second with several in flight, of each round.
	rate []float64
}

// measure measures everything and writes the report.
func measure(ctx context.Context, w io.Writer, dir string, s size) (err error) {
	b, err := newBench(ctx, dir, s)
	if err != nil {
		return err
	}
	defer b.close()
	var cells []*cell
	for _, pair := range pairNames {
		if !slices.Contains(s.pairs, pair) {
			continue
		}
		for _, row := range rowsOf(pair) {
			if !s.rows.MatchString(row) {
				continue
			}
			c, err := b.open(pair, row)
			if err == nil {
				err = works(c, row)
			}
			if err != nil {
				return fmt.Errorf("%s, %s: %w", pair, row, err)
			}
			for _, l := range loads {
				if slices.Contains(s.loads, l.name) {
					cells = append(cells, &cell{pair: pair, row: row, load: l, caller: c})
				}
			}
		}
	}
	// One round that does not count: it ends what is slow at first.
	if err := round(ctx, cells, s.turn); err != nil {
		return err
	}
	for _, c := range cells {
		c.p50, c.all, c.rate = nil, nil, nil
	}
	for range s.rounds {
		if err := round(ctx, cells, s.turn); err != nil {
			return err
		}
	}
	r := &report{w: w, cells: cells}
	r.write(s)
	return r.err
}

// round gives every cell its turn, in a new order for each pair and load, so that
// what else the machine does meets all of them.
func round(ctx context.Context, cells []*cell, turn time.Duration) error {
	order := slices.Clone(cells)
	rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	slices.SortStableFunc(order, func(a, b *cell) int {
		if n := slices.Index(pairNames, a.pair) - slices.Index(pairNames, b.pair); n != 0 {
			return n
		}
		return slices.Index(loads, a.load) - slices.Index(loads, b.load)
	})
	for _, c := range order {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := c.turn(turn); err != nil {
			return fmt.Errorf("%s, %s, %s: %w", c.pair, c.row, c.load.name, err)
		}
	}
	return nil
}

// turn measures calls one after the other, then several in flight.
func (c *cell) turn(d time.Duration) error {
	runtime.GC() // of what others left behind
	first := len(c.all)
	for began := time.Now(); len(c.all) == first || time.Since(began) < d; {
		c.buf = c.load.next(c.buf)
		at := time.Now()
		answer, err := c.caller.exchange(c.buf)
		took := time.Since(at)
		if err == nil {
			err = checked(answer)
		}
		if err != nil {
			return err
		}
		c.all = append(c.all, took)
	}
	c.p50 = append(c.p50, quantile(c.all[first:], 50))
	if c.load.inFlight == 0 {
		return nil
	}
	n, took, err := c.caller.flood(c.load, d)
	c.rate = append(c.rate, float64(n)/took.Seconds())
	return err
}

// quantile is what so many in a hundred do not exceed.
func quantile(list []time.Duration, percent int) time.Duration {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[min(len(sorted)*percent/100, len(sorted)-1)]
}

func median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}

// times is how many times those of b the values of a are, in the median round.
func times[N time.Duration | float64](a, b []N) float64 {
	list := make([]float64, len(a))
	for i := range list {
		list[i] = float64(a[i]) / float64(b[i])
	}
	return median(list)
}
