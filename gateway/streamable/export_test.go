package streamable

import "time"

// Slow sets how long an answer may take before its stream is opened without it.
func (f *Front) Slow(d time.Duration) { f.slow = d }

// Stall sets how long writing one event may take.
func (f *Front) Stall(d time.Duration) { f.stall = d }

// Calls is how many requests wait for their answers.
func (f *Front) Calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}
