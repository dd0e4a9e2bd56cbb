package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	goruntime "runtime"
	"slices"
	"time"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/bench/guests"
	"github.com/weir-mcp/weir/runtime/memory"
)

// invoke makes one call.
type invoke func(inv *abi.Invocation) (abi.Result, error)

// contender is one way to run a guest.
type contender struct {
	name string
	// open makes it ready for calls. The error is errNotFor where the guest
	// does not exist for it.
	open func(context.Context, *bench, guests.Guest) (invoke, error)
}

var errNotFor = errors.New("no such guest")

// The contenders that others are compared with by name.
const (
	nameUnsafe = "wazero, reused, unsafe"
	nameWeir   = "**weir, pristine, metered**"
	nameExtism = "Extism go-sdk, pooled, timeout"
)

func contenders() []contender {
	list := []contender{
		{"native Go", native},
		{nameUnsafe, unsafeReuse},
		{nameWeir, weir(memory.Auto)},
	}
	for _, way := range []memory.Way{memory.FullCopy, memory.Fresh} {
		if way > memory.Best() {
			list = append(list, contender{"weir, " + way.String(), weir(way)})
		}
	}
	list = append(list,
		contender{"wazero, reused, CloseOnContextDone", closeOnDone},
		contender{"wazero, fresh instance, unsafe", freshInstance},
		contender{nameExtism, extismPooled})
	return append(list, wasmtimeContenders()...)
}

// cell is one contender with one guest at one size.
type cell struct {
	guest, contender string
	size             int
	invoke           invoke
	calls            int // of a round
	times                // of a call, the mean of each round
}

// cells opens every contender with every guest and checks that all give the same
// result: a benchmark of something that does not do the job is worth nothing.
func (b *bench) cells(ctx context.Context, built []guests.Guest) ([]*cell, error) {
	var list []*cell
	for _, g := range built {
		for _, contender := range contenders() {
			invoke, err := contender.open(ctx, b, g)
			if errors.Is(err, errNotFor) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", contender.name, g.Name, err)
			}
			for _, size := range sizes {
				if err := agrees(invoke, call(size)); err != nil {
					return nil, fmt.Errorf("%s, %s, %s: %w", contender.name, g.Name, sizeName(size), err)
				}
				list = append(list, &cell{guest: g.Name, contender: contender.name, size: size, invoke: invoke})
			}
		}
	}
	return list, nil
}

// measure runs the rounds. In each, every cell has its turn, in a new order for
// each guest and size, so that what else the machine does meets all of them.
func (b *bench) measure(cells []*cell, rounds int, turn time.Duration) error {
	for _, c := range cells {
		if err := c.calibrate(turn); err != nil {
			return err
		}
	}
	for range rounds {
		for from := 0; from < len(cells); {
			to := from
			for to < len(cells) && cells[to].guest == cells[from].guest {
				to++
			}
			order := slices.Clone(cells[from:to])
			rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
			slices.SortStableFunc(order, func(a, b *cell) int { return a.size - b.size })
			for _, c := range order {
				if err := c.turn(); err != nil {
					return err
				}
			}
			from = to
		}
	}
	return nil
}

// calibrate finds how many calls fill a turn.
func (c *cell) calibrate(turn time.Duration) error {
	inv := call(c.size)
	began := time.Now()
	for c.calls = 0; c.calls == 0 || time.Since(began) < turn; c.calls++ {
		if _, err := c.invoke(inv); err != nil {
			return fmt.Errorf("%s, %s: %w", c.contender, c.guest, err)
		}
	}
	return nil
}

func (c *cell) turn() error {
	inv := call(c.size)
	goruntime.GC() // of what others left behind
	return c.measured(c.calls, func() error {
		for range c.calls {
			if _, err := c.invoke(inv); err != nil {
				return fmt.Errorf("%s, %s: %w", c.contender, c.guest, err)
			}
		}
		return nil
	})
}
