//go:build unix

package main

import (
	"syscall"
	"time"
)

// processorTime is what the process has used of the processors, its collector
// and the kernel included. It says what something costs on a machine that others
// use too, where the time that passes says how much they left.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // it has no way to fail with these arguments
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
