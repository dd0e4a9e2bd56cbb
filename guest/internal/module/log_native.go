//go:build !wasip1

package module

import (
	"fmt"
	"os"
	"sync"
)

var (
	sinkMu sync.Mutex
	sink   = toStderr
)

func toStderr(level Level, line string) { fmt.Fprintf(os.Stderr, "guest: %s: %s\n", level, line) }

func writeLog(level Level, line string) {
	sinkMu.Lock()
	defer sinkMu.Unlock()
	sink(level, line)
}

// CaptureLog sends all lines to f, one at a time, until restore is called.
func CaptureLog(f func(Level, string)) (restore func()) {
	sinkMu.Lock()
	defer sinkMu.Unlock()
	before := sink
	sink = f
	return func() {
		sinkMu.Lock()
		defer sinkMu.Unlock()
		sink = before
	}
}
