package memory

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// mapped is memory such as an engine maps.
func mapped(t *testing.T, size int) []byte {
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, unix.Munmap(b)) })
	return b
}

func TestForeign(t *testing.T) {
	const size = 64 << 10
	for way := Best(); way < Fresh; way++ {
		for _, offset := range []int{0, 16} { // at a page, and not
			t.Run(way.String(), func(t *testing.T) {
				account := NewAccount(10 * size)
				first, second := NewForeign(account, way), NewForeign(account, way)
				a, b := mapped(t, size+pageBytes)[offset:size+offset], mapped(t, size+pageBytes)[offset:size+offset]
				require.NoError(t, first.Begin(size))
				require.NoError(t, first.Begin(size), "is charged once")
				require.NoError(t, second.Begin(size))
				a[0], a[size-1], b[5] = 1, 2, 3
				image, err := first.Capture(a)
				require.NoError(t, err)
				require.Equal(t, uint64(size), image.Size())
				require.Equal(t, int64(3*size), account.Used())
				require.NoError(t, first.Attach(a, image))
				require.NoError(t, second.Attach(b, image))
				for range 3 {
					for _, x := range []struct {
						*Foreign
						bytes []byte
					}{{first, a}, {second, b}} {
						require.Equal(t, []byte{1, 0, 0, 0, 0, 0, 0, 2}, append(append([]byte{}, x.bytes[:7]...), x.bytes[size-1]))
						x.bytes[0], x.bytes[5], x.bytes[size/2], x.bytes[size-1] = 9, 9, 9, 9
						require.NoError(t, x.Restore(size))
						require.Zero(t, x.bytes[size/2])
					}
				}
				require.ErrorIs(t, first.Restore(2*size), errSize, "it has grown")
				require.ErrorIs(t, first.Attach(a[:size/2], image), errSize)
				require.ErrorIs(t, NewForeign(account, way).Restore(size), errSize, "there is no image")
				first.Free()
				second.Free()
				require.Equal(t, int64(size), account.Used(), "the image is left")
				image.Free()
				require.Zero(t, account.Used())
			})
		}
	}
}

func TestForeignWithoutBytes(t *testing.T) {
	f := NewForeign(nil, Auto)
	image, err := f.Capture(nil)
	require.NoError(t, err)
	require.NoError(t, f.Attach(nil, image))
	require.NoError(t, f.Restore(0))
	f.Free()
	image.Free()
}
