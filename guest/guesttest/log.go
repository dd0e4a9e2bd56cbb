//go:build !wasip1

package guesttest

import (
	"sync"
	"testing"

	"github.com/weir-mcp/weir/guest/internal/module"
)

// Log is what interceptors logged.
type Log struct {
	mu    sync.Mutex
	lines []string
}

// CaptureLog collects what all interceptors of the program log until the test
// ends, instead of writing it to standard error. Tests that run in parallel see
// each other's lines.
func CaptureLog(t testing.TB) *Log {
	l := &Log{}
	t.Cleanup(module.CaptureLog(func(level module.Level, line string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lines = append(l.lines, level.String()+": "+line)
	}))
	return l
}

// Lines returns the lines so far, each as "level: text".
func (l *Log) Lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.lines...)
}
