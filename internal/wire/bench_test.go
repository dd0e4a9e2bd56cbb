package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
)

// benchMessages are tools/call requests of about the sizes the field measures
// with (sandbox.md E): prose, a table of small values, text that is JSON
// itself, and text that is not ASCII.
func benchMessages() map[string][]byte {
	all := map[string][]byte{}
	for _, size := range []int{1 << 10, 64 << 10, 1 << 20} {
		for name, unit := range map[string]string{
			"prose":   `"The quick brown fox, who had not been asked, jumped over the lazy dog\n"`,
			"records": `{"id":12345,"name":"a name","score":0.25,"tags":["x","y"],"ok":true}`,
			"escapes": `"{\"id\":12345,\"note\":\"it said \\\"yes\\\"\\nand left\"}"`,
			"unicode": `"Грамм воды весит один грамм — 水は一グラム"`,
		} {
			items := strings.TrimSuffix(strings.Repeat(unit+",", max(1, size/len(unit))), ",")
			all[fmt.Sprintf("%s/%dKiB", name, size>>10)] = fmt.Appendf(nil,
				`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"items":[%s]},"_meta":{"progressToken":1}}}`, items)
		}
	}
	return all
}

func BenchmarkRead(b *testing.B) {
	readers := []struct {
		name string
		read func([]byte) bool
	}{
		{"wire.Read", func(m []byte) bool { _, err := Read(m); return err == nil }},
		{"wire.Strict", func(m []byte) bool { return Strict(m) == nil }},
		{"jsontext", func(m []byte) bool { return jsontext.Value(m).IsValid() }},
		{"encoding-json.Valid", json.Valid},
	}
	for name, m := range benchMessages() {
		for _, r := range readers {
			b.Run(name+"/"+r.name, func(b *testing.B) {
				b.SetBytes(int64(len(m)))
				b.ReportAllocs()
				for b.Loop() {
					if !r.read(m) {
						b.Fatal("refused")
					}
				}
			})
		}
	}
}

func BenchmarkReadSmallest(b *testing.B) {
	m := []byte(`{"jsonrpc":"2.0","id":1,"method":"x"}`)
	b.SetBytes(int64(len(m)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Read(m); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEqualReordered(b *testing.B) {
	x := []byte(`{"a":[` + strings.Repeat(`{"k":1,"v":"text"},`, 4000) + `0]}`)
	y := bytes.ReplaceAll(x, []byte(`{"k":1,"v":"text"}`), []byte(`{"v":"text","k":1.0}`))
	require.True(b, Equal(x, y))
	b.SetBytes(int64(len(x)))
	b.ReportAllocs()
	for b.Loop() {
		Equal(x, y)
	}
}

func BenchmarkFlat(b *testing.B) {
	compact := []byte(`{"a":[` + strings.Repeat(`{"k":1,"v":"text"},`, 4000) + `0]}`)
	for name, in := range map[string][]byte{"compact": compact, "pretty": bytes.ReplaceAll(compact, []byte(","), []byte(",\n    "))} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				Flat(nil, in)
			}
		})
	}
}

func BenchmarkLineReader(b *testing.B) {
	for _, size := range []int{1 << 10, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			line := append(bytes.Repeat([]byte{'x'}, size), '\n')
			l := NewLineReader(&endless{line: line}, 4<<20)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := l.Next(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// endless repeats line for ever, in reads as short as a pipe's.
type endless struct {
	line []byte
	at   int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p[:min(len(p), 64<<10)], e.line[e.at:])
	e.at = (e.at + n) % len(e.line)
	return n, nil
}
