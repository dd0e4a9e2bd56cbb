package chain

import (
	"context"
	"fmt"
	"strings"
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

// BenchmarkWave is interceptors that take 1 ms each: mutators one after the
// other, and a wave of validators as long as one of them.
func BenchmarkWave(b *testing.B) {
	for _, r := range []struct{ mutators, validators int }{{0, 1}, {0, 32}, {1, 0}, {8, 0}, {8, 32}} {
		b.Run(fmt.Sprintf("mutators=%d/validators=%d/each=1ms", r.mutators, r.validators), func(b *testing.B) {
			benchmark(b, listed(promptInstant{&instant{name: "h", wait: time.Millisecond}}, r.mutators, r.validators))
		})
	}
}

func BenchmarkGoverns(b *testing.B) {
	ls := listed(&instant{name: "h"}, 500, 500)
	b.ReportAllocs()
	for b.Loop() {
		Governs(ls, nil, abi.Response, "2025-11-25")
	}
}

// BenchmarkShape is the check of a mutated payload, besides the strict reading of
// it.
func BenchmarkShape(b *testing.B) {
	for _, size := range []int{1 << 10, 100 << 10} {
		payload := []byte(`{"name":"t","arguments":{"text":"` + strings.Repeat("x", size) + `"}}`)
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			b.SetBytes(int64(len(payload)))
			b.ReportAllocs()
			for b.Loop() {
				if err := checkShape(abi.ToolsCall, abi.Request, payload, payload); err != nil {
					b.Fatal(err)
				}
			}
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
