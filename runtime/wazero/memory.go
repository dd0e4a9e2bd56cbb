package wazero

import (
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/weir-mcp/weir/runtime/memory"
)

// pageBytes is WebAssembly's page.
const pageBytes = 64 << 10

// allocator gives wazero the memory of one instance. wazero has no limit for one
// instance, and no memory that could be put back.
type allocator struct{ memory *memory.Memory }

var (
	_ experimental.MemoryAllocator = allocator{}
	_ experimental.LinearMemory    = allocator{}
)

// Allocate implements [experimental.MemoryAllocator].
func (a allocator) Allocate(_, _ uint64) experimental.LinearMemory { return a }

// Reallocate implements [experimental.LinearMemory].
func (a allocator) Reallocate(size uint64) []byte { return a.memory.Resize(size) }

// Free implements [experimental.LinearMemory].
func (a allocator) Free() { a.memory.Free() }

var errShrink = errors.New("wazero did not take a memory of another size")

// resize gives an instance's memory another size, smaller or larger. wazero
// only knows growth, but takes whatever size the allocator answers with; that
// is not written down anywhere, so it is checked here each time, and tried when
// the engine is made. It needs a declared maximum above the memory's size.
func resize(m *memory.Memory, module api.Memory, size uint64) error {
	if m.Size() == size {
		return nil
	}
	m.Answer(size)
	_, ok := module.Grow(1)
	m.Withdraw()
	if pages, _ := module.Grow(0); !ok || uint64(pages)*pageBytes != size || m.Size() != size {
		return fmt.Errorf("%w: %d bytes instead of %d", errShrink, uint64(pages)*pageBytes, size)
	}
	return nil
}
