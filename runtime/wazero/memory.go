package wazero

import "github.com/tetratelabs/wazero/experimental"

// linearMemory is the memory of one instance, kept within a limit. wazero has
// no limit for one instance, and does not tell that a growth was refused.
type linearMemory struct {
	max     uint64 // bytes
	refused bool
	buffer  []byte
}

var _ experimental.MemoryAllocator = (*linearMemory)(nil)

// Allocate implements [experimental.MemoryAllocator].
func (m *linearMemory) Allocate(_, _ uint64) experimental.LinearMemory { return m }

// Reallocate implements [experimental.LinearMemory]. Room is made ahead of
// growth in proportion, so that a guest that grows page by page does not copy
// its memory each time.
func (m *linearMemory) Reallocate(size uint64) []byte {
	switch {
	case size > m.max:
		m.refused = true
		return nil
	case m.buffer == nil:
		m.buffer = make([]byte, size)
	case size > uint64(cap(m.buffer)):
		grown := make([]byte, size, min(m.max, max(size, 2*uint64(len(m.buffer)))))
		copy(grown, m.buffer)
		m.buffer = grown
	default:
		m.buffer = m.buffer[:size]
	}
	return m.buffer
}

// Free implements [experimental.LinearMemory].
func (m *linearMemory) Free() { m.buffer = nil }
