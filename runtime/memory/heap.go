package memory

import "bytes"

// heap is a space of plain Go memory, for systems without anything better.
type heap struct {
	limit uint64
	bytes []byte // its length is the most that was handed out
}

func newHeap(limit uint64) space { return &heap{limit: limit} }

// resize makes room ahead of growth in proportion, so that a guest that grows
// page by page does not copy its memory each time.
func (h *heap) resize(size uint64) []byte {
	switch {
	case size <= uint64(len(h.bytes)):
	case size <= uint64(cap(h.bytes)):
		h.bytes = h.bytes[:size]
	default:
		room := max(size, min(h.limit, 2*uint64(len(h.bytes))))
		grown := make([]byte, size, room)
		copy(grown, h.bytes)
		h.bytes = grown
	}
	if h.bytes == nil {
		h.bytes = []byte{} // nil would say that there is no room
	}
	return h.bytes[:size]
}

func (h *heap) capture(size uint64) (*Image, error) {
	return &Image{data: bytes.Clone(h.bytes[:size]), file: -1}, nil
}

func (h *heap) attach(*Image) error { return nil }

func (h *heap) restore(image *Image, high uint64) error {
	copyDifferent(h.bytes, image.data)
	clear(h.bytes[len(image.data):max(high, uint64(len(image.data)))])
	return nil
}

func (h *heap) free() { h.bytes = nil }
