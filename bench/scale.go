package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weir-mcp/weir/bench/guests"
	"github.com/weir-mcp/weir/bench/guests/go/redact"
	"github.com/weir-mcp/weir/runtime"
	"github.com/weir-mcp/weir/runtime/memory"
)

// scale is what two goroutines make of the calls of one.
type scale struct {
	guest    string
	one, two times // of a call, for everybody together
}

// measureScale has one goroutine call, and two, by turns.
func measureScale(name string, call func() error, rounds int, turn time.Duration) (*scale, error) {
	calls := 0
	for began := time.Now(); calls == 0 || time.Since(began) < turn; calls++ {
		if err := call(); err != nil {
			return nil, err
		}
	}
	s := &scale{guest: name}
	for range rounds {
		for goroutines, times := range map[int]*times{1: &s.one, 2: &s.two} {
			err := times.measured(goroutines*calls, func() error {
				var wg sync.WaitGroup
				errs := make([]error, goroutines)
				for i := range goroutines {
					wg.Go(func() {
						for n := 0; n < calls && errs[i] == nil; n++ {
							errs[i] = call()
						}
					})
				}
				wg.Wait()
				return errors.Join(errs...)
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

// measureScales measures every guest on weir, and first what the machine gives
// to two goroutines that share nothing.
func (b *bench) measureScales(ctx context.Context, built []guests.Guest, rounds int, turn time.Duration) ([]*scale, error) {
	inv := call(sizes[0])
	machine, err := measureScale("none: the job in native Go", func() error {
		redact.Append(nil, inv.Payload)
		return nil
	}, rounds, turn)
	if err != nil {
		return nil, err
	}
	list := []*scale{machine}
	r, err := weirRuntime(b.cacheDir, memory.Auto)
	if err != nil {
		return nil, err
	}
	defer r.Close(context.Background())
	for _, g := range built {
		m, err := loadSettled(ctx, r, g.Weir, runtime.Limits{})
		if err != nil {
			return nil, err
		}
		s, err := measureScale(g.Name, func() error {
			_, err := m.Invoke(ctx, *inv)
			return err
		}, rounds, turn)
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}
