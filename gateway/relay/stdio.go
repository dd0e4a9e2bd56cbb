package relay

import (
	"io"
	"os"
	"sync"
	"time"
)

// Stdio gives the end for a client on standard input and output. Where the
// system has them it uses non-blocking descriptors: blocking ones stall for
// milliseconds on messages larger than a pipe, and a Read of them cannot be
// ended (sandbox.md E). in and out must not be used by anyone else from then on.
// Writing to a client that is gone becomes an error instead of the SIGPIPE that
// ends the program, for the program as a whole.
func Stdio(in, out *os.File, limit int) *LineEnd {
	surviveBrokenPipes()
	return Lines(reader(in), writer(out), limit)
}

// Pollable gives a file on the same descriptor whose reads and writes wait in
// the runtime's poller and end when it is closed. The given file stays
// referenced by the one returned. It is false when that cannot be had: then the
// given file is returned.
//
// Non-blocking mode belongs to what is open, not to the descriptor: terminals,
// and whatever standard error shares, are left alone, because other processes
// write there and would lose text.
func Pollable(f *os.File) (*os.File, bool) {
	if f.SetDeadline(time.Time{}) == nil {
		return f, true
	}
	if nf := nonblocking(f); nf != nil {
		kept.Store(nf, f)
		return nf, true
	}
	return f, false
}

// kept references files whose descriptors have been taken over: the collector
// would close them under their successors.
var kept sync.Map

func reader(f *os.File) io.ReadCloser {
	if nf, ok := Pollable(f); ok {
		return nf
	}
	return &detachedReader{f: f, next: make(chan struct{}), got: make(chan read), closed: make(chan struct{})}
}

func writer(f *os.File) io.WriteCloser {
	if nf, ok := Pollable(f); ok {
		return nf
	}
	return f
}

// detachedReader makes a blocking Read return on Close, at the price of one
// goroutine that stays in the system call until there is something to read.
type detachedReader struct {
	f      *os.File
	start  sync.Once
	end    sync.Once
	next   chan struct{}
	got    chan read
	closed chan struct{}
	rest   []byte
	err    error
}

type read struct {
	b   []byte
	err error
}

func (r *detachedReader) Read(b []byte) (int, error) {
	r.start.Do(func() { go r.serve() })
	for len(r.rest) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		select {
		case r.next <- struct{}{}:
		case <-r.closed:
			return 0, ErrClosed
		}
		select {
		case got := <-r.got:
			r.rest, r.err = got.b, got.err
		case <-r.closed:
			return 0, ErrClosed
		}
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// serve reads once for each time it is asked, so that its buffer is free again
// whenever it reads.
func (r *detachedReader) serve() {
	buf := make([]byte, 64<<10)
	for {
		select {
		case <-r.next:
		case <-r.closed:
			return
		}
		n, err := r.f.Read(buf)
		select {
		case r.got <- read{buf[:n], err}:
		case <-r.closed:
			return
		}
	}
}

// Close leaves the file open: closing it would not end a Read in progress, and
// on some systems wait for it.
func (r *detachedReader) Close() error {
	r.end.Do(func() { close(r.closed) })
	return nil
}
