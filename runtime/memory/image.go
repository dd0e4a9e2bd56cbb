package memory

import (
	"bytes"
	"sync/atomic"
)

// Image is the frozen content of a memory. It never changes and may be used by
// several goroutines. It is freed with the last memory that is attached to it
// and its own [Image.Free].
type Image struct {
	data    []byte // read-only
	size    uint64
	file    int // a descriptor to map, or -1
	unmap   func()
	account *Account
	users   atomic.Int64
	freed   atomic.Bool
}

// Size is how many bytes the memory had.
func (i *Image) Size() uint64 { return i.size }

// Free gives the image up. Memories that are attached to it keep it until they
// are freed themselves.
func (i *Image) Free() {
	if i.freed.CompareAndSwap(false, true) {
		i.release()
	}
}

func (i *Image) release() {
	if i == nil || i.users.Add(-1) > 0 {
		return
	}
	if i.unmap != nil {
		i.unmap()
	}
	i.data = nil
	i.account.give(i.size)
}

// copyDifferent makes to the same as from, page by page, and leaves pages that
// are the same unwritten: those of a private mapping stay shared.
func copyDifferent(to, from []byte) {
	for len(from) > 0 {
		n := min(len(from), pageBytes)
		if !bytes.Equal(to[:n], from[:n]) {
			copy(to[:n], from)
		}
		to, from = to[n:], from[n:]
	}
}
