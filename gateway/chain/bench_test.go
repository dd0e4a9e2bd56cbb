package chain

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/weir-mcp/weir/abi"
)

// instant is a host that takes no time and keeps no record.
type instant struct {
	name string
	wait time.Duration
}

func (h *instant) Name() string { return h.name }

func (h *instant) Invoke(_ context.Context, inv abi.Invocation) (abi.Result, error) {
	if h.wait > 0 {
		time.Sleep(h.wait)
	}
	typ := abi.Validation
	if inv.Name[0] == 'm' {
		typ = abi.Mutation
	}
	return abi.Result{Type: typ, Interceptor: inv.Name, Phase: inv.Phase, Valid: true}, nil
}

// promptInstant is one that may be called inline.
type promptInstant struct{ *instant }

func (promptInstant) ReturnsPromptly() {}

func listed(h Host, mutators, validators int) []Listing {
	l := Listing{Host: h}
	for i := range mutators {
		l.Interceptors = append(l.Interceptors, mutator(fmt.Sprintf("m%04d", i), nil, priority(int32(i*7919%100))).Descriptor)
	}
	for i := range validators {
		l.Interceptors = append(l.Interceptors, validator(fmt.Sprintf("v%04d", i), nil).Descriptor)
	}
	return []Listing{l}
}

func BenchmarkPlan(b *testing.B) {
	policy, err := NewPolicy([]Entry{
		{Interceptor: "*", Timeout: ptr(time.Second)}, {Interceptor: "m0001", FailOpen: ptr(true)}, {Interceptor: "v0001", As: "copy"},
	})
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("interceptors=%d", n), func(b *testing.B) {
			ls := listed(&instant{name: "h"}, n/2, n/2)
			b.ReportAllocs()
			for b.Loop() {
				NewPlan(ls, policy, abi.ToolsCall, abi.Request, abi.Sending, "2025-11-25")
			}
		})
	}
}

func BenchmarkExecute(b *testing.B) {
	type row struct{ mutators, validators int }
	for _, prompt := range []bool{false, true} {
		for _, r := range []row{{0, 0}, {1, 0}, {0, 1}, {1, 1}, {4, 4}, {8, 32}} {
			b.Run(fmt.Sprintf("prompt=%v/mutators=%d/validators=%d", prompt, r.mutators, r.validators), func(b *testing.B) {
				var h Host = &instant{name: "h"}
				if prompt {
					h = promptInstant{&instant{name: "h"}}
				}
				benchmark(b, listed(h, r.mutators, r.validators))
			})
		}
	}
}

// BenchmarkWave: 32 validators of 1 ms each cost about one.
func BenchmarkWave(b *testing.B) {
	for _, n := range []int{1, 32} {
		b.Run(fmt.Sprintf("validators=%d/each=1ms", n), func(b *testing.B) {
			benchmark(b, listed(&instant{name: "h", wait: time.Millisecond}, 0, n))
		})
	}
}

func benchmark(b *testing.B, ls []Listing) {
	plan := NewPlan(ls, nil, abi.ToolsCall, abi.Request, abi.Sending, "")
	x := NewExecutor(Options{})
	b.ReportAllocs()
	for b.Loop() {
		out := x.Execute(b.Context(), plan, Operation{Payload: input, Timeout: 10 * time.Second})
		if !out.Released() {
			b.Fatal(out.Status)
		}
	}
}
