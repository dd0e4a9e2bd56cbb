package wazero

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// newStack reserves a stack. It returns nil where the system has no room.
func newStack() []byte {
	b, err := unix.Mmap(-1, 0, stackBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil
	}
	_ = unix.Madvise(b, unix.MADV_NOHUGEPAGE) // kernels without them do not know it
	return b
}

// usedStack is how deep a stack has been touched: all of it, where the system does
// not tell. Every frame is touched where it begins, by the address to return to.
func usedStack(b []byte) uint64 {
	size := unix.Getpagesize()
	pages := make([]byte, (len(b)+size-1)/size)
	_, _, err := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), uintptr(unsafe.Pointer(&pages[0])))
	if err != 0 {
		return uint64(len(b))
	}
	lowest := 0
	for lowest < len(pages) && pages[lowest]&1 == 0 {
		lowest++
	}
	return uint64(len(b) - lowest*size)
}

// trimStack gives back what a deep call has touched of a stack that is not in use.
func trimStack(b []byte) {
	const kept = 64 << 10
	_ = unix.Madvise(b[:len(b)-kept], unix.MADV_DONTNEED) // what is not given back is used again
}

func freeStack(b []byte) { _ = unix.Munmap(b) }
