package relay

import (
	"errors"
	"io"
	"sync"

	"github.com/weir-mcp/weir/internal/wire"
)

// keptBuffer is how large a write buffer may be to be used again.
const keptBuffer = 1 << 20

// LineEnd is an [End] that frames by lines: the stdio transport of MCP.
type LineEnd struct {
	lines *wire.LineReader
	in    io.Closer
	out   io.WriteCloser
	buf   []byte

	closeOut sync.Once
	outErr   error
	closeAll sync.Once
	allErr   error
}

// Lines gives an end that reads lines of at most limit bytes from in and writes
// to out. Close closes both, so a Read or Write in progress returns if closing
// them has that effect, as it does for pipes, connections and pollable files
// (see [Stdio]).
func Lines(in io.ReadCloser, out io.WriteCloser, limit int) *LineEnd {
	return &LineEnd{lines: wire.NewLineReader(in, limit), in: in, out: out}
}

// Read gives the next line that is not blank.
func (l *LineEnd) Read() ([]byte, error) { return l.lines.Next() }

// Write sends the message as one line, whatever line breaks stand in it
// (protocol.md §6 "What crosses unchanged").
func (l *LineEnd) Write(message []byte) error {
	buf := append(wire.Flat(l.buf[:0], message), '\n')
	n, err := l.out.Write(buf)
	if err == nil && n < len(buf) {
		err = io.ErrShortWrite
	}
	if l.buf = buf; cap(buf) > keptBuffer {
		l.buf = nil
	}
	return err
}

// CloseWrite closes out.
func (l *LineEnd) CloseWrite() error {
	l.closeOut.Do(func() { l.outErr = l.out.Close() })
	return l.outErr
}

// Close closes in and out.
func (l *LineEnd) Close() error {
	l.closeAll.Do(func() { l.allErr = errors.Join(l.CloseWrite(), l.in.Close()) })
	return l.allErr
}

var _ End = (*LineEnd)(nil)
