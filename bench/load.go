package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/weir-mcp/weir/bench/guests"
	"github.com/weir-mcp/weir/runtime"
	"github.com/weir-mcp/weir/runtime/memory"
)

// loads are the times of loading, in the order of the rounds.
type loads struct {
	goBytes              int // the size of the Go module
	goFirst, goCached    times
	many                 int
	manyFirst, manyAgain times
}

// measureLoads loads a Go module and many small ones, each with an empty cache
// on disk and again, by another engine, with what the first one left there.
func measureLoads(ctx context.Context, built []guests.Guest, rounds, many int) (*loads, error) {
	l := &loads{many: many}
	small := make([][]byte, many)
	for _, g := range built {
		switch g.Name {
		case guests.GoAny:
			l.goBytes = len(g.Weir)
		case guests.C:
			for i := range small {
				// A name of its own makes it a module of its own.
				small[i] = bytes.ReplaceAll(g.Weir, []byte(`"name":"redact"`), fmt.Appendf(nil, `"name":"job%03d"`, i))
			}
		}
	}
	for range rounds {
		for _, g := range built {
			if g.Name != guests.GoAny {
				continue
			}
			if err := twice(ctx, [][]byte{g.Weir}, &l.goFirst, &l.goCached); err != nil {
				return nil, err
			}
		}
		if err := twice(ctx, small, &l.manyFirst, &l.manyAgain); err != nil {
			return nil, err
		}
	}
	return l, nil
}

func twice(ctx context.Context, modules [][]byte, first, again *times) error {
	dir, err := os.MkdirTemp("", "weir-bench-cache-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, times := range []*times{first, again} {
		r, err := weirRuntime(dir, memory.Auto)
		if err != nil {
			return err
		}
		err = times.measured(1, func() error {
			for _, wasm := range modules {
				if _, err := r.Load(ctx, wasm, runtime.ModuleOptions{Name: "module.wasm"}); err != nil {
					return err
				}
			}
			return nil
		})
		if err := errors.Join(err, r.Close(ctx)); err != nil {
			return err
		}
	}
	return nil
}
