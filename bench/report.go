package main

import (
	"fmt"
	"io"
	goruntime "runtime"
	"slices"
	"strings"
	"time"

	"github.com/weir-mcp/weir/bench/guests"
	"github.com/weir-mcp/weir/runtime/memory"
)

// report writes Markdown.
type report struct {
	w   io.Writer
	err error // the first of writing
}

func (r *report) printf(format string, args ...any) {
	if _, err := fmt.Fprintf(r.w, format, args...); r.err == nil {
		r.err = err
	}
}

func (r *report) row(cells ...string) { r.printf("| %s |\n", strings.Join(cells, " | ")) }

func (r *report) head(cells ...string) {
	r.row(cells...)
	r.printf("|%s\n", strings.Repeat("---|", len(cells)))
}

// micros and millis spell a time with three digits or more.
func micros(d time.Duration) string { return number(float64(d.Nanoseconds()) / 1e3) }
func millis(d time.Duration) string { return number(float64(d.Nanoseconds()) / 1e6) }

func number(f float64) string {
	switch {
	case f >= 100:
		return fmt.Sprintf("%.0f", f)
	case f >= 10:
		return fmt.Sprintf("%.1f", f)
	}
	return fmt.Sprintf("%.2f", f)
}

// calls writes a table of times for each size and one of what they are compared
// with.
func (r *report) calls(built []guests.Guest, cells []*cell) {
	r.printf("%s/%s, %d processors, %s; instances are put back by %s.\n", goruntime.GOOS, goruntime.GOARCH, goruntime.GOMAXPROCS(0), goruntime.Version(), memory.Best())
	find := func(guest, contender string, size int) *cell {
		i := slices.IndexFunc(cells, func(c *cell) bool { return c.guest == guest && c.contender == contender && c.size == size })
		if i < 0 {
			return nil
		}
		return cells[i]
	}
	heads := func(first string) []string {
		list := []string{first}
		for _, g := range built {
			list = append(list, g.Name)
		}
		return list
	}
	for _, size := range sizes {
		r.printf("\n### A call at %s, µs of processor time (and time that passed, in the best round)\n\n", sizeName(size))
		r.head(heads("")...)
		for _, contender := range contenders() {
			row := []string{contender.name}
			for _, g := range built {
				text := "–"
				if c := find(g.Name, contender.name, size); c != nil {
					text = micros(median(c.cpu)) + " (" + micros(slices.Min(c.wall)) + ")"
				}
				row = append(row, text)
			}
			r.row(row...)
		}
	}
	r.printf("\n### In proportion, by processor time\n\n")
	r.head(heads("")...)
	for _, size := range sizes {
		for _, other := range []string{nameUnsafe, nameExtism} {
			name := "weir / unsafe reuse, " + sizeName(size)
			if other == nameExtism {
				name = "Extism / weir, same guest, " + sizeName(size)
			}
			row := []string{name}
			for _, g := range built {
				text := "–"
				if c, w := find(g.Name, other, size), find(g.Name, nameWeir, size); c != nil && other == nameExtism {
					text = number(ratio(c.cpu, w.cpu)) + "x"
				} else if c != nil {
					text = number(ratio(w.cpu, c.cpu)) + "x"
				}
				row = append(row, text)
			}
			r.row(row...)
		}
		any := find(guests.GoAny, nameExtism, size)
		if any == nil {
			continue
		}
		row := []string{"Extism map any / weir, " + sizeName(size)}
		for _, g := range built {
			text := "–"
			if strings.HasPrefix(g.Name, "Go") {
				text = number(ratio(any.cpu, find(g.Name, nameWeir, size).cpu)) + "x"
			}
			row = append(row, text)
		}
		r.row(row...)
	}
}

func (r *report) loads(l *loads) {
	r.printf("\n### Loading, ms\n\n")
	r.head("", "processor time, median", "time that passed, best")
	for _, line := range []struct {
		name string
		times
	}{
		{fmt.Sprintf("a Go module of %.1f MB, nothing cached", float64(l.goBytes)/1e6), l.goFirst},
		{"the same, compiled code cached on disk", l.goCached},
		{fmt.Sprintf("%d C modules, nothing cached", l.many), l.manyFirst},
		{"the same, cached", l.manyAgain},
	} {
		r.row(line.name, millis(median(line.cpu)), millis(slices.Min(line.wall)))
	}
}

func (r *report) scales(list []*scale) {
	r.printf("\n### Calls of two goroutines, times those of one\n\n")
	r.head("", "as the processor time allows", "in the time that passed, median", "best")
	for _, s := range list {
		best := float64(slices.Min(s.one.wall)) / float64(slices.Min(s.two.wall))
		r.row(s.guest, number(2*ratio(s.one.cpu, s.two.cpu))+"x", number(ratio(s.one.wall, s.two.wall))+"x", number(best)+"x")
	}
}

// stops writes the delays, and of how many of them no processor was wanting.
func (r *report) stops(list []stop) {
	r.printf("\n### Stopping at %v, ms: median / longest (longest of those without a wait for a processor, and their part)\n\n", stopAfter)
	r.head("guest that runs", "ends late by", "the host's garbage collection takes", "another guest's call takes")
	for _, s := range list {
		row := []string{s.name}
		for _, d := range []delays{s.late, s.collector, s.other} {
			if len(d.all) == 0 {
				row = append(row, "–")
				continue
			}
			text := millis(median(d.all)) + " / " + millis(slices.Max(d.all))
			if len(d.own) > 0 {
				text += fmt.Sprintf(" (%s, %d %%)", millis(slices.Max(d.own)), 100*len(d.own)/len(d.all))
			}
			row = append(row, text)
		}
		r.row(row...)
	}
}
