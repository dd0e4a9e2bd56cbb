package meter

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// gapMax bounds the zeros that are put between two data segments to make one of
// them. It is about what a segment costs an engine; and 100,000 segments of one
// byte stay a few megabytes.
const gapMax = 64

// segment is a data segment whose place is known.
type segment struct {
	at   uint32
	data []byte
}

// data gives the contents of the data section and how many segments it has.
// The Go linker emits one for each run of bytes between zeros, tens of
// thousands, and an engine handles each by itself at every instantiation.
func (w *rewriter) data() (content []byte, segments int) {
	if !w.enter(sectionData) {
		return nil, 0
	}
	original := w.b[w.pos:w.end]
	if w.facts.dataUsed || w.m.Memory != nil && w.m.Memory.Imported {
		return original, w.m.DataSegments
	}
	placed, ok := w.placed()
	if w.err != nil || !ok {
		return original, w.m.DataSegments
	}
	return merged(placed)
}

// placed gives the segments in the order of their places. It reports false if
// they have to stay as they are: when one is passive, or has a place that is not
// a plain constant, or ends outside the memory, where instantiation has to fail
// as before; or when they overlap, so that their order counts.
func (w *rewriter) placed() ([]segment, bool) {
	size := uint64(0)
	if w.m.Memory != nil {
		size = uint64(w.m.Memory.Min) << pageShift
	}
	n := w.u32("a number of entries")
	segments := make([]segment, 0, n)
	sorted := true
	for ; n > 0 && w.err == nil; n-- {
		switch w.u32("the flags of a data segment") {
		case 0:
		case 2:
			w.u32("a memory index")
		default:
			return nil, false
		}
		if opcode(w.byte("a constant expression")) != opI32Const {
			return nil, false
		}
		at := uint32(w.signed(32, "a constant"))
		if opcode(w.byte("a constant expression")) != opEnd {
			return nil, false
		}
		data := w.bytes(w.u32("the size of a data segment"), "a data segment")
		if uint64(at)+uint64(len(data)) > size {
			return nil, false
		}
		if len(data) == 0 {
			continue
		}
		if k := len(segments); k > 0 && segments[k-1].at > at {
			sorted = false
		}
		segments = append(segments, segment{at, data})
	}
	if !sorted {
		slices.SortFunc(segments, func(a, b segment) int { return cmp.Compare(a.at, b.at) })
	}
	for i := 1; i < len(segments); i++ {
		if before := segments[i-1]; uint64(before.at)+uint64(len(before.data)) > uint64(segments[i].at) {
			return nil, false
		}
	}
	return segments, true
}

// merged writes segments that lie in order and apart.
func merged(segments []segment) (content []byte, n int) {
	size := 0
	for _, s := range segments {
		size += len(s.data) + 16
	}
	var zeros [gapMax]byte
	body := make([]byte, 0, size)
	for i := 0; i < len(segments); n++ {
		first, end := segments[i], uint32(0)
		j := i
		for end = first.at; j < len(segments) && segments[j].at-end <= gapMax; j++ {
			end = segments[j].at + uint32(len(segments[j].data))
		}
		body = appendSigned(append(body, 0, byte(opI32Const)), int64(int32(first.at)))
		body = binary.AppendUvarint(append(body, byte(opEnd)), uint64(end-first.at))
		for end = first.at; i < j; i++ {
			body = append(body, zeros[:segments[i].at-end]...)
			body = append(body, segments[i].data...)
			end = segments[i].at + uint32(len(segments[i].data))
		}
	}
	return append(binary.AppendUvarint(nil, uint64(n)), body...), n
}
