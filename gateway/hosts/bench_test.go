package hosts

import (
	"context"
	"fmt"
	"testing"
)

// What a governed message pays for knowing who is there.
func BenchmarkListings(b *testing.B) {
	for _, n := range []int{1, 10} {
		b.Run(fmt.Sprint(n, " hosts"), func(b *testing.B) {
			var list []*Host
			for i := range n {
				set := &native{}
				set.set("guard")
				list = append(list, InProcess(fmt.Sprint("h", i), set, Options{}))
			}
			s := NewSet(list, SetOptions{})
			defer s.Close(context.Background())
			s.Listings(b.Context())
			b.ReportAllocs()
			for b.Loop() {
				s.Listings(b.Context())
			}
		})
	}
}

// What a call costs over each transport besides the interceptor's own time.
func BenchmarkInvoke(b *testing.B) {
	for name, open := range map[string]func() *Host{
		"stdio": func() *Host { return stdioHost(b, "plain", Options{}) },
		"http, answers in JSON": func() *Host {
			return HTTP("remote", Endpoint{URL: serveHTTP(b, scripts["plain"], true).URL}, Options{})
		},
		"http, answers in events": func() *Host {
			return HTTP("remote", Endpoint{URL: serveHTTP(b, scripts["plain"], false).URL}, Options{})
		},
	} {
		b.Run(name, func(b *testing.B) {
			h := open()
			defer h.close(context.Background())
			b.ReportAllocs()
			for b.Loop() {
				if _, err := h.Invoke(b.Context(), invocation(`{"name":"t"}`)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
