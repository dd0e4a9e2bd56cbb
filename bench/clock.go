package main

import (
	"slices"
	"time"
)

// times are of one thing, measured again and again: how long it took, and what
// it used of the processors.
type times struct{ wall, cpu []time.Duration }

// measured runs f and takes down the time of each of the n things that it does.
func (t *times) measured(n int, f func() error) error {
	began, used := time.Now(), processorTime()
	err := f()
	t.wall = append(t.wall, time.Since(began)/time.Duration(n))
	t.cpu = append(t.cpu, (processorTime()-used)/time.Duration(n))
	return err
}

func median(list []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}

// ratio is the median over the rounds of how many times b a took: both had their
// turn at about the same time.
func ratio(a, b []time.Duration) float64 {
	list := make([]float64, len(a))
	for i := range list {
		list[i] = float64(a[i]) / float64(b[i])
	}
	slices.Sort(list)
	return list[len(list)/2]
}
