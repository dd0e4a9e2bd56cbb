// Package logbook collects what code under test logs. It is for tests only and
// knows nothing of weir.
package logbook

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
)

// Book collects log records, one a line, from any number of goroutines. The
// zero value is an empty one.
type Book struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Text returns a logger that writes into the book as text, from INFO on.
func (b *Book) Text() *slog.Logger { return slog.New(slog.NewTextHandler(b, nil)) }

// JSON returns a logger that writes into the book as JSON, from INFO on.
func (b *Book) JSON() *slog.Logger { return slog.New(slog.NewJSONHandler(b, nil)) }

// Write implements io.Writer.
func (b *Book) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

// String is all that has been logged so far.
func (b *Book) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// Count is how many records hold all of the words.
func (b *Book) Count(words ...string) (n int) {
lines:
	for line := range strings.Lines(b.String()) {
		for _, word := range words {
			if !strings.Contains(line, word) {
				continue lines
			}
		}
		n++
	}
	return n
}

// Records reads a book that was written as JSON. It fails the test where a line
// is none.
func (b *Book) Records(t testing.TB) (all []map[string]any) {
	t.Helper()
	for line := range strings.Lines(b.String()) {
		var record map[string]any
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatalf("a log line is not JSON: %v: %s", err, line)
		}
		all = append(all, record)
	}
	return all
}
