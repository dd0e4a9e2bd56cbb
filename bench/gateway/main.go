// Command gateway measures what `weir gateway` adds to a call, over each pair of
// transports, and what else could stand in its place adds: a bare relay of lines,
// a buffered httputil.ReverseProxy, a typed proxy on go-sdk. All of them are
// processes, in front of the same raw backend, and have their turns in the same
// run. bench/README.md says what it found.
//
//	go run ./gateway [-rounds 15] [-turn 50ms] [-pairs stdio-stdio,http-http] [-loads 1KB,list]
//
// It prints Markdown.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// size is how much is measured.
type size struct {
	rounds int
	turn   time.Duration
	pairs  []string
	loads  []string
	// binary is a weir that is built already.
	binary string
	// rows says which are measured, by their names.
	rows *regexp.Regexp
}

func main() {
	if len(os.Args) > 1 {
		if play := roles[os.Args[1]]; play != nil {
			if err := play(os.Args[2:]); err != nil {
				fmt.Fprintf(os.Stderr, "%s: %v\n", os.Args[1], err)
				os.Exit(1)
			}
			return
		}
	}
	var s size
	flag.IntVar(&s.rounds, "rounds", 15, "how many `turns` every row has")
	flag.DurationVar(&s.turn, "turn", 50*time.Millisecond, "how long a turn is")
	flag.StringVar(&s.binary, "weir", "", "the weir to measure, in place of one built from source")
	pairs := flag.String("pairs", strings.Join(pairNames, ","), "the `pairs` of transports to measure")
	sizes := flag.String("loads", strings.Join(loadNames(), ","), "the `loads` to measure")
	rows := flag.String("rows", "", "measure those rows only whose names match this `expression`")
	dir := flag.String("dir", ".", "the `folder` of the benchmarks' module")
	flag.Parse()
	s.pairs, s.loads = strings.Split(*pairs, ","), strings.Split(*sizes, ",")
	var err error
	if s.rows, err = regexp.Compile(*rows); err != nil || flag.NArg() > 0 || s.rounds < 1 || !known(s.pairs, pairNames) || !known(s.loads, loadNames()) {
		flag.Usage()
		os.Exit(2)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := measure(ctx, os.Stdout, *dir, s); err != nil {
		fmt.Fprintln(os.Stderr, "gateway:", err)
		if errors.Is(err, context.Canceled) {
			os.Exit(130)
		}
		os.Exit(1)
	}
}

func known(names, all []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(all, name) })
}
