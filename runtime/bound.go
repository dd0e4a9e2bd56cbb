package runtime

import (
	"encoding/binary"

	"github.com/weir-mcp/weir/runtime/meter"
)

const (
	sectionTable = 4
	wasmHeader   = 8
)

// bounded returns the module with its tables bounded together. What package
// meter lowers is the maximum of each table; a module with several of them, of
// which there are few, is given lower maxima first.
func bounded(m *meter.Module, limits Limits) (*meter.Module, error) {
	if len(m.Tables) < 2 {
		return m, nil
	}
	wasm := m.Stripped()
	out := append(make([]byte, 0, len(wasm)+64), wasm[:wasmHeader]...)
	for at := wasmHeader; at < len(wasm); {
		size, n := binary.Uvarint(wasm[at+1:])
		end := at + 1 + n + int(size)
		if id := wasm[at]; id == sectionTable {
			out = appendSection(out, id, tables(m, limits.TableElements))
		} else {
			out = append(out, wasm[at:end]...)
		}
		at = end
	}
	return meter.Parse(out)
}

// rewrite makes of a module what an engine gets: code that stops itself within
// its limits, and whose state can be put back.
func rewrite(m *meter.Module, limits Limits) (*meter.Rewritten, error) {
	m, err := bounded(m, limits)
	if err != nil {
		return nil, err
	}
	return m.Rewrite(rewriteOptions(limits))
}

// rewriteOptions is what of the limits goes into code.
func rewriteOptions(limits Limits) meter.Options {
	return meter.Options{
		MemoryPages: limits.pages(), TableElements: limits.TableElements, ResetRoom: true, DeferStart: true,
	}
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
