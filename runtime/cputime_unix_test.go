//go:build unix

package runtime_test

import (
	"syscall"
	"time"
)

// cpuTime is what the process has used of its processors, which a busy machine
// changes less than the time that passes.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
