// Command bench compares, in one run and by turns, what a call of the same
// interceptor costs on weir and elsewhere, and measures how weir loads, scales
// and stops. README.md says what it found and what its rows mean.
//
//	go run . [-rounds 15] [-turn 30ms]
//	go run -tags wasmtime .          # with wasmtime, which needs cgo
//
// It prints Markdown.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/tetratelabs/wazero"
)

// quiet drops what guests log.
var quiet = slog.New(slog.DiscardHandler)

// bench is what all measurements share.
type bench struct {
	cacheDir string // of weir's engines
	cache    wazero.CompilationCache
	ends     []func()
}

// newBench makes a bench whose compiled code lives as long as it does.
func newBench() (*bench, error) {
	dir, err := os.MkdirTemp("", "weir-bench-")
	if err != nil {
		return nil, err
	}
	b := &bench{cacheDir: filepath.Join(dir, "weir")}
	b.atEnd(func() { _ = os.RemoveAll(dir) })
	b.cache, err = wazero.NewCompilationCacheWithDir(filepath.Join(dir, "wazero"))
	if err != nil {
		b.close()
		return nil, err
	}
	b.atEnd(func() { _ = b.cache.Close(context.Background()) })
	return b, nil
}

func (b *bench) atEnd(f func()) { b.ends = append(b.ends, f) }

func (b *bench) close() {
	for i := len(b.ends) - 1; i >= 0; i-- {
		b.ends[i]()
	}
}

// size is how much is measured.
type size struct {
	rounds int
	turn   time.Duration
	many   int // small modules loaded
}

func main() {
	var s size
	flag.IntVar(&s.rounds, "rounds", 15, "how many `turns` every row has")
	flag.DurationVar(&s.turn, "turn", 30*time.Millisecond, "how long a turn is")
	flag.IntVar(&s.many, "modules", 100, "how many small `modules` are loaded")
	dir := flag.String("dir", ".", "the `folder` of the benchmark's source")
	flag.Parse()
	if flag.NArg() > 0 || s.rounds < 1 || s.many < 1 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	if err := measure(ctx, os.Stdout, *dir, s); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// measure measures everything and writes the report.
func measure(ctx context.Context, w io.Writer, dir string, s size) (err error) {
	guests, err := buildGuests(ctx, dir)
	if err != nil {
		return err
	}
	b, err := newBench()
	if err != nil {
		return err
	}
	defer b.close()
	report := &report{w: w}
	// First what is delayed by a large heap of the host's.
	last := guests[len(guests)-1]
	idle, err := b.idleStalls(ctx, last, s.rounds)
	if err != nil {
		return err
	}
	stops, err := b.measureStops(ctx, last, s.rounds)
	if err != nil {
		return err
	}
	l, err := measureLoads(ctx, guests, min(s.rounds, 7), s.many)
	if err != nil {
		return err
	}
	scales, err := b.measureScales(ctx, guests, s.rounds, s.turn)
	if err != nil {
		return err
	}
	cells, err := b.cells(ctx, guests)
	if err != nil {
		return err
	}
	if err := b.measure(cells, s.rounds, s.turn); err != nil {
		return err
	}
	report.calls(guests, cells)
	report.loads(l)
	report.scales(scales)
	report.stops(append([]stop{*idle}, stops...))
	return errors.Join(report.err, ctx.Err())
}
