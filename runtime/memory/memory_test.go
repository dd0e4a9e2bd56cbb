package memory

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/internal/need"
)

const kib64 = 64 << 10

// onEveryWay runs the test for each way that works here, and for plain Go
// memory.
func onEveryWay(t *testing.T, test func(t *testing.T, fresh func(limit uint64, a *Account) *Memory)) {
	for _, way := range []Way{PageScan, FullCopy, Fresh} {
		if err := probe(way); err != nil && way != Fresh {
			t.Logf("%v does not work here: %v", way, err)
			continue
		}
		t.Run(way.String(), func(t *testing.T) {
			test(t, func(limit uint64, a *Account) *Memory {
				m, err := New(limit, a, way)
				require.NoError(t, err)
				t.Cleanup(m.Free)
				return m
			})
		})
	}
}

func TestTheBestWayWorks(t *testing.T) {
	require.NotEqual(t, Fresh, Best())
	require.NoError(t, probe(Best()))
	if Best() != PageScan {
		require.Error(t, WhyNotBetter())
	}
	t.Log(Best(), WhyNotBetter())
}

func TestGrowthWithinLimits(t *testing.T) {
	onEveryWay(t, func(t *testing.T, fresh func(uint64, *Account) *Memory) {
		account := NewAccount(8 * kib64)
		m := fresh(10*kib64, account)
		require.NotNil(t, m.Resize(0), "nothing is something")
		require.Len(t, m.Resize(kib64), kib64)
		m.Resize(kib64)[5] = 7
		for pages := uint64(2); pages <= 8; pages++ {
			b := m.Resize(pages * kib64)
			require.Len(t, b, int(pages*kib64))
			require.Equal(t, byte(7), b[5], "what was there stays")
			require.Zero(t, bytes.Count(b[len(b)-kib64:], []byte{1}), "what is new is zero")
			b[len(b)-1] = 1
		}
		require.Nil(t, m.Resize(9*kib64), "the account is spent")
		require.Nil(t, m.Resize(11*kib64), "over the limit")
		require.Equal(t, uint64(8*kib64), m.Size())
		require.Equal(t, int64(8*kib64), account.Used())
		m.Free()
		m.Free()
		require.Zero(t, account.Used())
		require.False(t, m.Enter())
	})
}

// Whatever is written between two restorations, and however the memory grows,
// the image comes back and nothing else.
func TestRestoreLeavesNothingBehind(t *testing.T) {
	onEveryWay(t, func(t *testing.T, fresh func(uint64, *Account) *Memory) {
		const size, limit = 6 * kib64, 40 * kib64
		account := NewAccount(1 << 30)
		random := rand.New(rand.NewPCG(1, 2))
		first := fresh(limit, account)
		b := first.Resize(size)
		for range 2000 {
			b[random.IntN(size)] = byte(random.IntN(256))
		}
		clear(b[2*kib64 : 3*kib64])
		image, err := first.Capture()
		require.NoError(t, err)
		want := bytes.Clone(b)
		require.Equal(t, uint64(size), image.Size())

		memories := []*Memory{first}
		for range 3 {
			m := fresh(limit, account)
			m.Resize(size)[9] = 1
			memories = append(memories, m)
		}
		for _, m := range memories {
			require.NoError(t, m.Attach(image))
		}
		image.Free()
		for range 200 {
			m := memories[random.IntN(len(memories))]
			b := m.Resize(size)
			require.True(t, bytes.Equal(want, b))
			if random.IntN(2) == 0 {
				b = m.Resize(size + uint64(random.IntN(34))*kib64)
				require.True(t, bytes.Equal(want, b[:size]))
				require.Equal(t, len(b)-size, bytes.Count(b[size:], []byte{0}))
			}
			for range random.IntN(1 << random.IntN(13)) {
				b[random.IntN(len(b))] ^= 0xff
			}
			m.Answer(size)
			require.Len(t, m.Resize(1), size)
			require.NoError(t, m.Restore())
			require.Equal(t, int64(5*size), account.Used(), "4 memories and an image")
		}
		for _, m := range memories {
			m.Free()
		}
		require.Zero(t, account.Used())
	})
}

func TestRestoreNeedsTheImagesSize(t *testing.T) {
	onEveryWay(t, func(t *testing.T, fresh func(uint64, *Account) *Memory) {
		m := fresh(4*kib64, nil)
		m.Resize(kib64)
		require.ErrorIs(t, m.Restore(), errSize, "attached to nothing")
		image, err := m.Capture()
		require.NoError(t, err)
		defer image.Free()
		m.Resize(2 * kib64)
		require.ErrorIs(t, m.Attach(image), errSize)
		m.Answer(kib64)
		m.Withdraw()
		require.Len(t, m.Resize(3*kib64), 3*kib64, "the answer was withdrawn")
		m.Answer(kib64)
		m.Resize(0)
		require.NoError(t, m.Attach(image))
		m.Resize(2 * kib64)
		require.ErrorIs(t, m.Restore(), errSize)
	})
}

func TestAnImageOfNothing(t *testing.T) {
	onEveryWay(t, func(t *testing.T, fresh func(uint64, *Account) *Memory) {
		m := fresh(kib64, nil)
		m.Resize(0)
		image, err := m.Capture()
		require.NoError(t, err)
		defer image.Free()
		require.NoError(t, m.Attach(image))
		m.Resize(kib64)[1] = 1
		m.Answer(0)
		m.Resize(1)
		require.NoError(t, m.Restore())
		require.Zero(t, m.Resize(kib64)[1])
	})
}

// Four goroutines use memories of one image at once.
func TestMemoriesOfOneImage(t *testing.T) {
	onEveryWay(t, func(t *testing.T, fresh func(uint64, *Account) *Memory) {
		first := fresh(8*kib64, nil)
		copy(first.Resize(4 * kib64)[100:], "the image")
		image, err := first.Capture()
		require.NoError(t, err)
		defer image.Free()
		var wg sync.WaitGroup
		for range 4 {
			m := fresh(8*kib64, nil)
			m.Resize(4 * kib64)
			require.NoError(t, m.Attach(image))
			wg.Go(func() {
				for i := range 300 {
					b := m.Resize(4 * kib64)
					if string(b[100:109]) != "the image" || b[i] != 0 && i < 100 || bytes.IndexByte(b[200:], 1) >= 0 {
						t.Error("something was left behind")
						return
					}
					copy(b[100:], "a secret!")
					b[200+i*100], b[len(b)-1] = 1, 1
					if err := m.Restore(); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
	})
}

// Who is short of memory is given what nobody uses, and an error after that.
func TestShortage(t *testing.T) {
	account := NewAccount(3 * kib64)
	idle, err := New(2*kib64, account, Auto)
	require.NoError(t, err)
	require.NotNil(t, idle.Resize(2*kib64))
	m, err := New(3*kib64, account, Auto)
	require.NoError(t, err)
	defer m.Free()
	require.Nil(t, m.Resize(2*kib64))
	account.OnShortage(idle.Free)
	require.NotNil(t, m.Resize(2*kib64))
	_, err = m.Capture()
	require.ErrorIs(t, err, ErrNoRoom)
	require.Equal(t, int64(2*kib64), account.Used())
	require.Equal(t, int64(3*kib64), account.Limit())
}

// A memory is not freed while guest code runs in it.
func TestFreeWaitsForTheGuest(t *testing.T) {
	m, err := New(kib64, nil, Auto)
	require.NoError(t, err)
	b := m.Resize(kib64)
	require.True(t, m.Enter())
	freed := make(chan struct{})
	go func() {
		m.Free()
		close(freed)
	}()
	for i := range b {
		b[i] = 1 // would end the process
	}
	select {
	case <-freed:
		t.Fatal("freed under the guest")
	default:
	}
	m.Leave()
	<-freed
	require.False(t, m.Enter())
}

func BenchmarkRestore(b *testing.B) {
	for _, way := range []Way{PageScan, FullCopy} {
		for _, pages := range []int{1, 16, 128} {
			b.Run(fmt.Sprintf("%v/%d pages", way, pages), func(b *testing.B) {
				if probe(way) != nil {
					need.Missing(b, "a way to put memory back: "+way.String(), "run it on Linux")
				}
				const size = 48 * kib64
				m, err := New(size, nil, way)
				require.NoError(b, err)
				defer m.Free()
				for i := range m.Resize(size) {
					m.Resize(size)[i] = byte(i >> 8)
				}
				image, err := m.Capture()
				require.NoError(b, err)
				defer image.Free()
				require.NoError(b, m.Attach(image))
				for b.Loop() {
					bytes := m.Resize(size)
					for i := range pages {
						bytes[i*5*pageBytes] ^= 1
					}
					if err := m.Restore(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
