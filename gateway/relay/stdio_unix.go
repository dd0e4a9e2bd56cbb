//go:build unix

package relay

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// nonblocking takes over a pipe or socket, or gives nil.
func nonblocking(f *os.File) *os.File {
	info, err := f.Stat()
	if err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return nil
	}
	if stderr, err := os.Stderr.Stat(); err == nil && os.SameFile(info, stderr) {
		return nil
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return nil
	}
	var fd uintptr
	if conn.Control(func(d uintptr) { fd = d }) != nil || syscall.SetNonblock(int(fd), true) != nil {
		return nil
	}
	nf := os.NewFile(fd, f.Name())
	if nf == nil || nf.SetDeadline(time.Time{}) != nil {
		_ = syscall.SetNonblock(int(fd), false)
		return nil
	}
	return nf
}

// surviveBrokenPipes catches SIGPIPE rather than ignoring it: an ignored signal
// would stay ignored in the processes that are started.
var surviveBrokenPipes = sync.OnceFunc(func() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) })
