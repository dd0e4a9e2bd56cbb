package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weir-mcp/weir/runtime"
	"github.com/weir-mcp/weir/runtime/memory"
)

// scale is what two goroutines make of the calls of one.
type scale struct {
	guest    string
	one, two times // of a call, for everybody together
}

// measureScale has one goroutine call, and two, by turns.
func (b *bench) measureScale(ctx context.Context, g guest, rounds int, turn time.Duration) (*scale, error) {
	r, err := weirRuntime(b.cacheDir, memory.Auto)
	if err != nil {
		return nil, err
	}
	defer r.Close(context.Background())
	m, err := loadSettled(ctx, r, g.weir, runtime.Limits{})
	if err != nil {
		return nil, err
	}
	inv := call(sizes[0])
	calls := 0
	for began := time.Now(); calls == 0 || time.Since(began) < turn; calls++ {
		if _, err := m.Invoke(ctx, *inv); err != nil {
			return nil, err
		}
	}
	s := &scale{guest: g.name}
	for range rounds {
		for goroutines, times := range map[int]*times{1: &s.one, 2: &s.two} {
			err := times.measured(goroutines*calls, func() error {
				var wg sync.WaitGroup
				errs := make([]error, goroutines)
				for i := range goroutines {
					wg.Go(func() {
						for n := 0; n < calls && errs[i] == nil; n++ {
							_, errs[i] = m.Invoke(ctx, *inv)
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
