package hostile

import (
	"bytes"
	"encoding/binary"
	"slices"

	wt "github.com/weir-mcp/weir/internal/wasmtest"
)

// The sections of the binary format, as it numbers them.
const (
	secCustom byte = iota
	secType
	secImport
	secFunction
	secTable
	secMemory
	secGlobal
	secExport
	secStart
	secElement
	secCode
	secData
	secDataCount
)

// sectionNames are what refusals call them.
var sectionNames = [...]string{
	"custom", "type", "import", "function", "table", "memory", "global", "export", "start", "element", "code", "data", "data count",
}

// order is the order in which they must come, custom sections anywhere.
var order = []byte{
	secType, secImport, secFunction, secTable, secMemory, secGlobal, secExport, secStart, secElement, secDataCount, secCode, secData,
}

var header = []byte("\x00asm\x01\x00\x00\x00")

// most is a length of 2^32-1.
var most = wt.Uint(1<<32 - 1)

// section is one section of a module.
type section struct {
	id      byte
	content []byte
}

// split takes a module apart.
func split(wasm []byte) (list []section) {
	for at := len(header); at < len(wasm); {
		size, n := binary.Uvarint(wasm[at+1:])
		begin := at + 1 + n
		list = append(list, section{wasm[at], wasm[begin : begin+int(size)]})
		at = begin + int(size)
	}
	return list
}

// join puts sections together, whatever they are.
func join(list ...section) []byte {
	out := slices.Clone(header)
	for _, s := range list {
		out = slices.Concat(out, []byte{s.id}, wt.Uint(uint64(len(s.content))), s.content)
	}
	return out
}

// edit gives a module in which one section is another, or none where f returns
// nil. A section that is not there is made where it belongs.
func edit(wasm []byte, id byte, f func(content []byte) []byte) []byte {
	list := split(wasm)
	i := slices.IndexFunc(list, func(s section) bool { return s.id == id })
	if i < 0 {
		i = slices.IndexFunc(list, func(s section) bool {
			return s.id != secCustom && slices.Index(order, s.id) > slices.Index(order, id)
		})
		if i < 0 {
			i = len(list)
		}
		list = slices.Insert(list, i, section{id: id, content: []byte{0}})
	}
	if list[i].content = f(list[i].content); list[i].content == nil {
		list = slices.Delete(list, i, i+1)
	}
	return join(list...)
}

// fill adds items to the list in a section until there are n.
func fill(wasm []byte, id byte, n int, item func(i int) []byte) []byte {
	return edit(wasm, id, func(content []byte) []byte {
		have, size := binary.Uvarint(content)
		var b bytes.Buffer
		b.Write(wt.Uint(uint64(n)))
		b.Write(content[size:])
		for i := int(have); i < n; i++ {
			b.Write(item(i))
		}
		return b.Bytes()
	})
}

// equal is fill with the same item each time.
func equal(item ...byte) func(int) []byte { return func(int) []byte { return item } }

// complete is a good module with a section of every kind.
func complete() []byte {
	r := reactor()
	r.Memory(4)
	r.Table(3)
	r.Global(1)
	nothing := r.Func("", "")
	r.Start(nothing)
	r.Elements(0, nothing)
	r.Data(8, []byte("data"))
	r.Custom("name", []byte{0, 0})
	wasm := misbehaving(r)
	segments, _ := binary.Uvarint(split(wasm)[len(split(wasm))-2].content)
	return edit(wasm, secDataCount, func([]byte) []byte { return wt.Uint(segments) })
}
