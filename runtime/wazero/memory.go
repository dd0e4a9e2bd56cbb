package wazero

import (
	"errors"
	"fmt"
	"sync"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/weir-mcp/weir/runtime/memory"
)

// pageBytes is WebAssembly's page.
const pageBytes = 64 << 10

// allocator gives wazero the memory of one instance. wazero has no limit for one
// instance, and no memory that could be put back.
type allocator struct {
	memory *memory.Memory
	// scratch is what the instance gets to begin with, if it is not nil: wazero
	// fills it with the module's data, and it is exchanged for the memory
	// before any code runs.
	scratch []byte
}

var (
	_ experimental.MemoryAllocator = (*allocator)(nil)
	_ experimental.LinearMemory    = (*allocator)(nil)
)

// Allocate implements [experimental.MemoryAllocator].
func (a *allocator) Allocate(_, _ uint64) experimental.LinearMemory { return a }

// Reallocate implements [experimental.LinearMemory].
func (a *allocator) Reallocate(size uint64) []byte {
	if a.scratch != nil {
		scratch := a.scratch[:size]
		a.scratch = nil
		return scratch
	}
	return a.memory.Resize(size)
}

// Free implements [experimental.LinearMemory].
func (a *allocator) Free() { a.memory.Free() }

var errShrink = errors.New("wazero did not take a memory of another size")

// resize gives an instance's memory another size, smaller or larger. wazero
// only knows growth, but takes whatever size the allocator answers with; that
// is not written down anywhere, so it is checked here each time, and tried when
// the engine is made. It needs a declared maximum above the memory's size.
func resize(m *memory.Memory, module api.Memory, size uint64) error {
	m.Answer(size)
	_, ok := module.Grow(1)
	m.Withdraw()
	if m.Size() < size {
		return fmt.Errorf("%w: an instance needs %d bytes to begin with", memory.ErrNoRoom, size)
	}
	if pages, _ := module.Grow(0); !ok || uint64(pages)*pageBytes != size || m.Size() != size {
		return fmt.Errorf("%w: %d bytes instead of %d", errShrink, uint64(pages)*pageBytes, size)
	}
	return nil
}

// isMemory reports whether wazero works on the memory's own bytes.
func isMemory(m *memory.Memory, module api.Memory) bool {
	if m.Size() == 0 {
		return true
	}
	theirs, ok := module.Read(0, 1)
	return ok && &theirs[0] == &m.Resize(m.Size())[0]
}

// scratches are buffers for the data of instances that begin as an image. To
// write the data into the memory itself would touch pages that the image then
// replaces, which takes longer than all the rest.
type scratches struct {
	size uint64
	pool sync.Pool
}

// mostScratch is how large a memory may be for which there is scratch.
const mostScratch = 16 << 20

// take gives a buffer, or nil where the memory itself is to be used.
func (s *scratches) take() *[]byte {
	if s.size == 0 || s.size > mostScratch {
		return nil
	}
	if b, ok := s.pool.Get().(*[]byte); ok {
		return b
	}
	b := make([]byte, s.size)
	return &b
}

func (s *scratches) give(b *[]byte) { s.pool.Put(b) }
