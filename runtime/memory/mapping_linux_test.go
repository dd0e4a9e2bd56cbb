package memory

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/internal/need"
)

// Each way of finding written pages that works here finds them all, whatever
// was written and read.
func TestFinders(t *testing.T) {
	for name, find := range map[string]find{"PAGEMAP_SCAN": scanPages, "pagemap": readPagemap} {
		t.Run(name, func(t *testing.T) {
			if !findsWritten(find) {
				need.Missing(t, name, "run it on Linux 6.7 or later")
			}
			const pages, size = 700, 700 * pageBytes
			m, err := newMapping(size, find)
			require.NoError(t, err)
			defer m.free()
			b := m.resize(size)
			random := rand.New(rand.NewPCG(3, 4))
			for range 5000 {
				b[random.IntN(size)] = 1
			}
			want := bytes.Clone(b)
			image, err := m.capture(size)
			require.NoError(t, err)
			defer image.unmap()
			require.NoError(t, m.attach(image))
			for round := range 100 {
				written := map[int]bool{}
				for range random.IntN(pages) {
					page := random.IntN(pages)
					if _ = b[random.IntN(size)]; round%3 == 0 {
						page = page / 2 % 40
					}
					b[page*pageBytes+random.IntN(pageBytes)] ^= 0xff
					written[page] = true
				}
				found := map[int]bool{}
				require.NoError(t, find(m, size, func(from, to uint64) {
					for at := from; at < to; at += pageBytes {
						found[int(at/pageBytes)] = true
					}
				}))
				for page := range written {
					require.True(t, found[page], fmt.Sprint(page))
				}
				require.NoError(t, m.restore(image, size))
				require.True(t, bytes.Equal(want, b))
			}
		})
	}
}

func BenchmarkFind(b *testing.B) {
	for name, find := range map[string]find{"PAGEMAP_SCAN": scanPages, "pagemap": readPagemap} {
		for _, pages := range []uint64{900, 16384} {
			b.Run(fmt.Sprintf("%s/%d pages", name, pages), func(b *testing.B) {
				if !findsWritten(find) {
					need.Missing(b, name, "run it on Linux 6.7 or later")
				}
				size := pages * pageBytes
				m, err := newMapping(size, find)
				require.NoError(b, err)
				defer m.free()
				bytes := m.resize(size)
				for i := range bytes {
					bytes[i] = 1
				}
				image, err := m.capture(size)
				require.NoError(b, err)
				defer image.unmap()
				require.NoError(b, m.attach(image))
				for i := range 40 {
					bytes[i*3*pageBytes] = 2
				}
				for b.Loop() {
					if find(m, size, func(uint64, uint64) {}) != nil {
						b.Fatal("not found")
					}
				}
			})
		}
	}
}
