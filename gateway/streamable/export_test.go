package streamable

import "time"

// Slow sets how long an answer may take before its stream is opened without it.
func (f *Front) Slow(d time.Duration) { f.slow = d }

// Calls is how many requests wait for their answers.
func (f *Front) Calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}
