// Command bench compares, in one run and by turns, what a call of the same
// interceptor costs on weir and elsewhere, and measures how weir loads, scales
// and stops. README.md says what it found and what its rows mean.
//
//	go run . [-rounds 15] [-turn 30ms] [-only calls,stops] [-guests C]
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
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/weir-mcp/weir/bench/guests"
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
	many   int            // small modules loaded
	only   []string       // of sections
	guests *regexp.Regexp // whose calls are measured
}

// sections are what can be measured by itself, in the order of the report.
var sections = []string{"calls", "loads", "scales", "stops"}

func main() {
	var s size
	flag.IntVar(&s.rounds, "rounds", 15, "how many `turns` every row has")
	flag.DurationVar(&s.turn, "turn", 30*time.Millisecond, "how long a turn is")
	flag.IntVar(&s.many, "modules", 100, "how many small `modules` are loaded")
	only := flag.String("only", strings.Join(sections, ","), "the `sections` to measure")
	guests := flag.String("guests", "", "measure the calls of those guests only whose names match this `expression`")
	dir := flag.String("dir", ".", "the `folder` of the benchmark's source")
	flag.Parse()
	s.only = strings.Split(*only, ",")
	unknown := slices.ContainsFunc(s.only, func(name string) bool { return !slices.Contains(sections, name) })
	var err error
	if s.guests, err = regexp.Compile(*guests); err != nil || unknown || flag.NArg() > 0 || s.rounds < 1 || s.many < 1 {
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
	built, err := guests.Build(ctx, dir)
	if err != nil {
		return err
	}
	b, err := newBench()
	if err != nil {
		return err
	}
	defer b.close()
	report := &report{w: w}
	wanted := func(section string) bool { return slices.Contains(s.only, section) }
	var called []guests.Guest
	for _, g := range built {
		if s.guests.MatchString(g.Name) {
			called = append(called, g)
		}
	}
	// First what is delayed by a large heap of the host's.
	var stops []stop
	if last := built[len(built)-1]; wanted("stops") {
		idle, err := b.idleStalls(ctx, last, s.rounds)
		if err != nil {
			return err
		}
		if stops, err = b.measureStops(ctx, last, s.rounds); err != nil {
			return err
		}
		stops = append([]stop{*idle}, stops...)
	}
	var l *loads
	if wanted("loads") {
		if l, err = measureLoads(ctx, built, min(s.rounds, 7), s.many); err != nil {
			return err
		}
	}
	var scales []*scale
	if wanted("scales") {
		if scales, err = b.measureScales(ctx, called, s.rounds, s.turn); err != nil {
			return err
		}
	}
	if wanted("calls") {
		cells, err := b.cells(ctx, called)
		if err != nil {
			return err
		}
		if err := b.measure(cells, s.rounds, s.turn); err != nil {
			return err
		}
		report.calls(called, cells)
	}
	if l != nil {
		report.loads(l)
	}
	if scales != nil {
		report.scales(scales)
	}
	if stops != nil {
		report.stops(stops)
	}
	return errors.Join(report.err, ctx.Err())
}
