package wazero

import "golang.org/x/sys/unix"

// newStack reserves a stack. It returns nil where the system has no room.
func newStack() []byte {
	b, err := unix.Mmap(-1, 0, stackBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil
	}
	_ = unix.Madvise(b, unix.MADV_NOHUGEPAGE) // kernels without them do not know it
	return b
}

// trimStack gives back what a deep call has touched of a stack that is not in use.
func trimStack(b []byte) {
	const kept = 64 << 10
	_ = unix.Madvise(b[:len(b)-kept], unix.MADV_DONTNEED) // what is not given back is used again
}

func freeStack(b []byte) { _ = unix.Munmap(b) }
