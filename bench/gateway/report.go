package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"
)

// report writes Markdown.
type report struct {
	w     io.Writer
	cells []*cell
	err   error // the first of writing
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

func number(f float64) string {
	switch {
	case f >= 100 || f <= -100:
		return fmt.Sprintf("%.0f", f)
	case f >= 10 || f <= -10:
		return fmt.Sprintf("%.1f", f)
	}
	return fmt.Sprintf("%.2f", f)
}

func micros(d time.Duration) string { return number(float64(d.Nanoseconds()) / 1e3) }

func (r *report) find(pair, row, load string) *cell {
	i := slices.IndexFunc(r.cells, func(c *cell) bool { return c.pair == pair && c.row == row && c.load.name == load })
	if i < 0 {
		return nil
	}
	return r.cells[i]
}

var pairTitles = map[string]string{
	stdioToStdio: "stdio → stdio", httpToHTTP: "HTTP → HTTP", stdioToHTTP: "stdio → HTTP", httpToStdio: "HTTP → stdio",
}

var loadTitles = map[string]string{load1K: "1 KB", load64K: "64 KB", loadJSON: "64 KB of JSON", load1M: "1 MB", loadList: "list of 10,000 tools"}

func (r *report) write(s size) {
	r.printf("%s/%s, %d processors, %s, %d rounds of %v\n", runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), runtime.Version(), s.rounds, s.turn)
	for _, pair := range pairNames {
		if slices.Contains(s.pairs, pair) {
			r.latency(pair, s)
			r.throughput(pair, s)
		}
	}
	r.aims()
}

// latency writes what a call takes.
func (r *report) latency(pair string, s size) {
	r.printf("\n### %s: µs a call, p50 / p99; below direct, what is added\n\n", pairTitles[pair])
	heads := []string{""}
	for _, l := range s.loads {
		heads = append(heads, loadTitles[l])
	}
	r.head(heads...)
	for _, row := range rowsOf(pair) {
		cells := []string{row}
		for _, l := range s.loads {
			c, direct := r.find(pair, row, l), r.find(pair, rowDirect, l)
			text := "–"
			if c != nil {
				p50, p99, sign := medianOf(c.p50), quantile(c.all, 99), ""
				if row != rowDirect && direct != nil {
					p50, p99, sign = p50-medianOf(direct.p50), p99-quantile(direct.all, 99), "+"
				}
				text = sign + micros(p50) + " / " + sign + micros(p99)
			}
			cells = append(cells, strings.ReplaceAll(text, "+-", "-"))
		}
		r.row(cells...)
	}
}

func medianOf(list []time.Duration) time.Duration { return quantile(list, 50) }

// throughput writes how many calls pass in a second.
func (r *report) throughput(pair string, s size) {
	r.printf("\n### %s: calls a second, several in flight\n\n", pairTitles[pair])
	heads := []string{""}
	for _, l := range s.loads {
		if n := loadNamed(l).inFlight; n > 0 {
			heads = append(heads, fmt.Sprintf("%s, %d in flight", loadTitles[l], n))
		}
	}
	r.head(heads...)
	for _, row := range rowsOf(pair) {
		cells := []string{row}
		for _, l := range s.loads {
			if loadNamed(l).inFlight == 0 {
				continue
			}
			c, direct := r.find(pair, row, l), r.find(pair, rowDirect, l)
			text := "–"
			if c != nil {
				text = number(median(c.rate))
				if row != rowDirect && direct != nil {
					text += " (" + number(times(c.rate, direct.rate)) + "x)"
				}
			}
			cells = append(cells, text)
		}
		r.row(cells...)
	}
}

// aims writes what was to be reached.
func (r *report) aims() {
	r.printf("\n### Against what was aimed at\n\n")
	r.head("aim", "here")
	for _, a := range []struct {
		pair, row, than, load string
		most                  float64
		rate                  bool
	}{
		{stdioToStdio, rowWeir, rowLines, load1K, 1.5, false},
		{stdioToStdio, rowWeir, rowLines, load64K, 1.5, false},
		{stdioToStdio, rowWeir, rowLines, loadJSON, 1.5, false},
		{stdioToStdio, rowWeir, rowLines, load1K, 1.5, true},
		{stdioToStdio, rowWeir, rowLines, load64K, 1.5, true},
		{stdioToStdio, rowWeir, rowLines, loadJSON, 1.5, true},
		{httpToHTTP, rowWeir, rowReverse, load1K, 1.2, false},
		{httpToHTTP, rowWeir, rowReverse, load64K, 1.2, false},
		{httpToHTTP, rowWeir, rowReverse, loadJSON, 1.2, false},
		{httpToHTTP, rowWeir, rowReverse, load1M, 1.2, false},
		{httpToHTTP, rowWeir, rowReverse, load1K, 1.2, true},
		{httpToHTTP, rowWeir, rowReverse, load64K, 1.2, true},
		{httpToHTTP, rowWeir, rowReverse, loadJSON, 1.2, true},
		{httpToHTTP, rowWeir, rowReverse, load1M, 1.2, true},
		{httpToHTTP, rowWeir, rowReverse, loadList, 1.3, false},
		{stdioToStdio, rowThree, rowTyped, load1K, 1, false},
		{stdioToStdio, rowThree, rowTyped, load1K, 1, true},
		{stdioToStdio, rowSDK, rowTyped, load1K, 1, false},
		{httpToHTTP, rowThree, rowTyped, load1K, 1, false},
		{httpToHTTP, rowThree, rowTyped, load1K, 1, true},
		{httpToHTTP, rowSDK, rowTyped, load1K, 1, false},
		{stdioToHTTP, rowThree, rowTyped, load1K, 1, false},
		{stdioToHTTP, rowThree, rowTyped, load1K, 1, true},
		{stdioToHTTP, rowSDK, rowTyped, load1K, 1, false},
		{httpToStdio, rowThree, rowTyped, load1K, 1, false},
		{httpToStdio, rowThree, rowTyped, load1K, 1, true},
		{httpToStdio, rowSDK, rowTyped, load1K, 1, false},
	} {
		c, than := r.find(a.pair, a.row, a.load), r.find(a.pair, a.than, a.load)
		if c == nil || than == nil {
			continue
		}
		what, here := "p50", times(c.p50, than.p50)
		if a.rate {
			what, here = "throughput", times(than.rate, c.rate)
		}
		verdict := "reached"
		if here > a.most {
			verdict = "**missed**"
		}
		r.row(fmt.Sprintf("%s, %s, %s: %s within %gx of %s", pairTitles[a.pair], loadTitles[a.load], strings.ReplaceAll(a.row, "*", ""), what, a.most, a.than),
			number(here)+"x, "+verdict)
	}
}
