package main

import (
	"context"
	"fmt"
	goruntime "runtime"
	"time"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/bench/guests"
	wt "github.com/weir-mcp/weir/internal/wasmtest"
	"github.com/weir-mcp/weir/runtime"
	"github.com/weir-mcp/weir/runtime/memory"
)

// stopAfter is the limit that hostile guests are stopped at.
const stopAfter = 100 * time.Millisecond

// hostile is a guest that does not end by itself.
type hostile struct {
	name string
	wasm []byte
}

// hostileGuests are shapes that are hard to stop: none but the first is a loop
// whose header comes up often.
func hostileGuests() []hostile {
	fill := func(bytes int32) []byte { return wt.Seq(wt.I32(0), wt.I32(1), wt.I32(bytes), []byte{0xfc, 11, 0}) }
	grow := func(pages int32) []byte { return wt.Seq(wt.I32(pages), wt.MemoryGrow, wt.Drop) }
	repeat := func(n int, code []byte) (list []byte) {
		for range n {
			list = append(list, code...)
		}
		return list
	}
	divide := wt.Seq(wt.Get(0), wt.I32(7), wt.I32DivU, wt.Get(0), wt.I32Add, wt.Set(0))
	return []hostile{
		{"a tight loop", hostileGuest(func(*wt.Reactor) []byte { return wt.Loop(wt.Br(0)) })},
		{"33 functions, each calling the next twice", hostileGuest(func(r *wt.Reactor) []byte {
			last := r.Func("", "")
			for range 32 {
				last = r.Func("", "", wt.Call(last), wt.Call(last))
			}
			return wt.Call(last)
		})},
		{"a loop over 20,000 divisions", hostileGuest(func(*wt.Reactor) []byte { return wt.Loop(repeat(20_000, divide), wt.Br(0)) })},
		{"endless recursion by tail calls", hostileGuest(func(r *wt.Reactor) []byte {
			first := r.Func("", "", wt.Block()) // keeps the index of the next one simple
			return wt.Seq(wt.Call(r.Func("", "", wt.ReturnCall(first+1))), wt.Unreachable)
		})},
		{"a recursion 400,000 deep in a loop", hostileGuest(func(r *wt.Reactor) []byte {
			self := r.Func("i", "", wt.Block()) + 1 // the index of the next one
			down := r.Func("i", "", wt.Get(0), wt.If(wt.Get(0), wt.I32(1), wt.I32Sub, wt.Call(self)))
			return wt.Loop(wt.I32(400_000), wt.Call(down), wt.Br(0))
		})},
		{"fills of 60 MiB in a loop", hostileGuest(func(*wt.Reactor) []byte { return wt.Seq(grow(1000), wt.Loop(fill(60<<20), wt.Br(0))) })},
		{"400 fills of 32 MiB in a row", hostileGuest(func(*wt.Reactor) []byte { return wt.Seq(grow(600), repeat(400, fill(32<<20))) })},
	}
}

func hostileGuest(body func(r *wt.Reactor) []byte) []byte {
	r := wt.NewReactor(wt.Mutator("redact"))
	r.Memory(8)
	code := body(r)
	r.Invoke("", wt.I32(wt.InputAt), wt.Call(r.Input), code, r.Answer(`{"result":{"modified":false}}`))
	return r.Bytes()
}

// stop is what stopping one hostile guest took.
type stop struct {
	name                   string
	late, collector, other delays
}

// delays are how long something took, again and again.
type delays struct {
	all []time.Duration
	// own are those of them in which hardly any time passed waiting for a
	// processor: what of a delay is the machine's is not in them.
	own []time.Duration
}

// hardly is how long threads may wait for a processor in what counts as their
// own delay.
const hardly = time.Millisecond

// add notes a delay, in whose time the threads of the process have waited for
// so long.
func (d *delays) add(took, waited time.Duration) {
	d.all = append(d.all, took)
	if waited < hardly {
		d.own = append(d.own, took)
	}
}

// time notes how long f takes.
func (d *delays) time(f func() error) error {
	before := waited()
	began := time.Now()
	err := f()
	took := time.Since(began)
	d.add(took, waited()-before)
	return err
}

// collect collects the host's garbage.
func collect() error {
	goruntime.GC()
	return nil
}

// measureStops has each hostile guest run into its limit, and sees meanwhile how
// long the host's garbage collector and calls of another guest take.
func (b *bench) measureStops(ctx context.Context, g guests.Guest, rounds int) ([]stop, error) {
	r, err := weirRuntime(b.cacheDir, memory.Auto)
	if err != nil {
		return nil, err
	}
	defer r.Close(context.Background())
	other, err := loadSettled(ctx, r, g.Weir, runtime.Limits{})
	if err != nil {
		return nil, err
	}
	inv := call(sizes[0])
	another := func() error {
		_, err := other.Invoke(ctx, *inv)
		return err
	}
	var list []stop
	for _, h := range hostileGuests() {
		m, err := loadSettled(ctx, r, h.wasm, runtime.Limits{CallTime: stopAfter})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", h.name, err)
		}
		s := stop{name: h.name}
		for i := range 2 * rounds {
			ended := make(chan error, 1)
			var late time.Duration
			before := waited()
			go func() {
				began := time.Now()
				_, err := m.Invoke(ctx, *inv)
				late = time.Since(began) - stopAfter
				if e := abi.AsError(err, "", ""); err == nil || e.Reason != abi.ReasonTimeout {
					ended <- fmt.Errorf("%s did not time out: %v", h.name, err)
				}
				close(ended)
			}()
			time.Sleep(stopAfter / 10)
			for running := true; running; {
				if err := s.delay(i, another); err != nil {
					return nil, err
				}
				select {
				case err := <-ended:
					if err != nil {
						return nil, err
					}
					running = false
				default:
				}
			}
			s.late.add(late, waited()-before)
		}
		list = append(list, s)
		if err := m.Close(ctx); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// idleStalls is how long the same takes while no guest loops: what of a stall is
// the machine's.
func (b *bench) idleStalls(ctx context.Context, g guests.Guest, rounds int) (*stop, error) {
	r, err := weirRuntime(b.cacheDir, memory.Auto)
	if err != nil {
		return nil, err
	}
	defer r.Close(context.Background())
	m, err := loadSettled(ctx, r, g.Weir, runtime.Limits{})
	if err != nil {
		return nil, err
	}
	inv := call(sizes[0])
	another := func() error {
		_, err := m.Invoke(ctx, *inv)
		return err
	}
	s := &stop{name: "none"}
	for i := range 2 * rounds {
		for until := time.Now().Add(stopAfter); time.Now().Before(until); {
			if err := s.delay(i, another); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

// delay notes how long a collection takes in the even rounds, a call of another
// guest in the odd ones: a collection slows every call.
func (s *stop) delay(round int, another func() error) error {
	if round%2 == 0 {
		return s.collector.time(collect)
	}
	return s.other.time(another)
}
