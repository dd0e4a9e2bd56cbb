package runtime

import (
	"encoding/binary"

	"github.com/weir-mcp/weir/runtime/meter"
)

// The ids of the sections that bounded replaces.
const (
	sectionTable  = 4
	sectionMemory = 5

	wasmHeader = 8
)

// bounded returns the bytes for the engine: the module without its custom
// sections, with its tables bounded and its memory unbounded. Engines have no
// limit for tables other than the declared one, so that one is lowered to the
// module's limit; the growth of memory is refused by the engine at run time,
// which then knows that it happened, so the declared limit is lifted here and
// counts as the instance's own.
func bounded(m *meter.Module, limits Limits) []byte {
	wasm := m.Stripped()
	out := append(make([]byte, 0, len(wasm)+64), wasm[:wasmHeader]...)
	for at := wasmHeader; at < len(wasm); {
		size, n := binary.Uvarint(wasm[at+1:])
		body := at + 1 + n
		end := body + int(size)
		switch id := wasm[at]; id {
		case sectionTable:
			out = appendSection(out, id, tables(m, limits.TableElements))
		case sectionMemory:
			out = appendSection(out, id, memories(m))
		default:
			out = append(out, wasm[at:end]...)
		}
		at = end
	}
	return out
}

func appendSection(dst []byte, id byte, body []byte) []byte {
	dst = binary.AppendUvarint(append(dst, id), uint64(len(body)))
	return append(dst, body...)
}

// tables is the table section, in which all tables together cannot have more
// elements than the limit: those that may grow share equally what the declared
// minima leave. Nearly every module has one table, which gets all of it.
func tables(m *meter.Module, limit uint32) []byte {
	var own []meter.Table
	room, growing := limit, uint32(0)
	for _, t := range m.Tables {
		if t.Imported {
			continue
		}
		own = append(own, t)
		room -= t.Min // checkSizes has seen to it that this is not below 0
		if !t.HasMax || t.Max > t.Min {
			growing++
		}
	}
	share := room / max(1, growing)
	b := binary.AppendUvarint(nil, uint64(len(own)))
	for _, t := range own {
		highest := t.Min + share
		if t.HasMax {
			highest = min(highest, t.Max)
		}
		b = append(b, byte(t.Element), 1) // 1: there is a maximum
		b = binary.AppendUvarint(b, uint64(t.Min))
		b = binary.AppendUvarint(b, uint64(highest))
	}
	return b
}

func memories(m *meter.Module) []byte {
	if m.Memory == nil || m.Memory.Imported {
		return []byte{0}
	}
	b := []byte{1, 0} // one, without a maximum
	return binary.AppendUvarint(b, uint64(m.Memory.Min))
}

// maxPages is how many pages an instance may have: the module's limit, or less
// where the module says so itself.
func maxPages(m *meter.Module, limits Limits) uint32 {
	if m.Memory != nil && m.Memory.HasMax {
		return min(m.Memory.Max, limits.pages())
	}
	return limits.pages()
}
