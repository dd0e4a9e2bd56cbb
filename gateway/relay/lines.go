package relay

import (
	"errors"
	"io"
	"sync"

	"github.com/weir-mcp/weir/internal/wire"
)

// largeMessage is from what length on, in bytes, a message is not copied to be
// written: about what a pipe holds, so that it takes two writes anyway.
const largeMessage = 64 << 10

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
	if len(message) > largeMessage {
		// Most have no line breaks and are not copied, but for the end, which goes
		// out together with the line feed.
		message = wire.Flat(nil, message)
		head := message[:max(0, len(message)-largeMessage/2)]
		if err := l.write(head); err != nil {
			return err
		}
		message = message[len(head):]
	}
	buf := append(wire.Flat(l.buf[:0], message), '\n')
	l.buf = buf
	return l.write(buf)
}

func (l *LineEnd) write(b []byte) error {
	n, err := l.out.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
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
