package runtime

import "time"

// guestClock is the time that a guest sees (abi.md "What a module can reach"):
// a monotonic clock in steps of 1 ms, so that it is too coarse to measure the
// host with, and a wall clock that starts at 2000-01-01 with it. Sleeping takes
// no time and moves the guest's clock on instead.
//
// The monotonic clock is the process's, so it never goes back for a guest whose
// state outlives a call. What one call slept is not seen by the next.
type guestClock struct {
	real  bool          // the wall clock is the real one
	slept time.Duration // what the guest has slept in this call
}

const (
	clockStep = time.Millisecond
	// maxSlept keeps a guest's clock inside 64 bits: it stands still once the
	// guest has slept for a century.
	maxSlept = 100 * 365 * 24 * time.Hour
)

var (
	clockStart = time.Now()
	clockEpoch = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC).UnixNano()
)

// monotonic is nanoseconds since some moment before the guest was loaded, and
// never 0, which some runtimes take for "no clock".
func (g *guestClock) monotonic() uint64 {
	return uint64(time.Since(clockStart).Truncate(clockStep) + clockStep + g.slept)
}

// wall is nanoseconds since 1970.
func (g *guestClock) wall() uint64 {
	if g.real {
		return uint64(time.Now().Truncate(clockStep).UnixNano())
	}
	return uint64(clockEpoch) + g.monotonic()
}

// sleep moves the clock on by so many nanoseconds.
func (g *guestClock) sleep(nanoseconds uint64) {
	g.slept += time.Duration(min(nanoseconds, uint64(maxSlept-g.slept)))
}
