// Package leak fails a test that leaves something running or open behind it. It
// is for tests only and knows nothing of weir.
//
// Both checks wait, since what ends may take a moment to be gone; what has not
// ended after a minute is left.
package leak

import (
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

const patience = time.Minute

// Goroutines fails the test when, after it and its later clean-ups, goroutines
// are left whose stacks hold one of the words, such as a package's path.
// Goroutines of tests that run in parallel count too.
func Goroutines(t testing.TB, words ...string) {
	t.Helper()
	t.Cleanup(func() {
		wait(t, func() string {
			left := holding(stacks(), words)
			if len(left) == 0 {
				return ""
			}
			return "goroutines are left:\n" + strings.Join(left, "\n\n")
		})
	})
}

// Descriptors fails the test when this process holds more descriptors after it,
// and its later clean-ups, than now. Where that cannot be told it does nothing.
func Descriptors(t testing.TB) {
	t.Helper()
	// The first pipe or socket of a process makes the runtime open descriptors of
	// its own, which stay.
	if r, w, err := os.Pipe(); err == nil {
		_, _ = r.Close(), w.Close()
	}
	before := descriptors()
	t.Cleanup(func() {
		wait(t, func() string {
			if descriptors() <= before {
				return ""
			}
			return "descriptors are left open"
		})
	})
}

// wait polls, as nothing tells when a goroutine has ended or a file is closed.
func wait(t testing.TB, problem func() string) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		left := problem()
		if left == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Error(left)
			return
		}
	}
}

func stacks() string {
	for size := 1 << 20; ; size *= 2 {
		b := make([]byte, size)
		if n := runtime.Stack(b, true); n < size {
			return string(b[:n])
		}
	}
}

// holding leaves out the goroutine that asks: words may be of its own test.
func holding(stacks string, words []string) (left []string) {
	for g := range strings.SplitSeq(stacks, "\n\n") {
		if strings.Contains(g, "internal/leak.stacks(") {
			continue
		}
		for _, word := range words {
			if strings.Contains(g, word) {
				left = append(left, g)
				break
			}
		}
	}
	return left
}

// descriptors is how many this process holds, 0 where that cannot be told.
func descriptors() int {
	open, _ := os.ReadDir("/proc/self/fd")
	return len(open)
}
