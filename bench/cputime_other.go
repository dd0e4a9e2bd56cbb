//go:build !unix

package main

import "time"

var started = time.Now()

// processorTime is the time that passes, where the other is not to be had.
func processorTime() time.Duration { return time.Since(started) }
