package streamable

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// lossy is a store that notes what nobody will see.
func lossy(max, maxBytes int) (*store, *[]string) {
	lost := &[]string{}
	return newStore(max, maxBytes, func(e *event) { *lost = append(*lost, string(e.data)) }), lost
}

func text(s string) *event { return &event{data: []byte(s)} }

// take delivers all that there is.
func take(st *store, s *stream, c *conn) (got string) {
	for {
		e, _ := st.head(s)
		if e == nil {
			return strings.TrimSpace(got)
		}
		got += eventID(s.id, e.seq) + "=" + string(e.data) + " "
		st.delivered(c, e, true)
	}
}

func TestAStreamIsDeliveredAndReplayed(t *testing.T) {
	st, lost := lossy(100, 1000)
	own, call := st.open(), st.open()
	require.Equal(t, standalone, own.id)
	require.True(t, st.add(call, text("a")))
	s, c, ok := st.connect(call.id, -1)
	require.True(t, ok)
	require.True(t, st.add(call, text("b")))
	require.True(t, st.add(own, text("other")))
	require.Equal(t, "1-1=a 1-2=b", take(st, s, c))
	require.True(t, st.add(call, &event{data: []byte("c"), final: true}))
	require.False(t, st.add(call, text("d")), "nothing comes after the answer")

	s, c2, ok := st.connect(call.id, 1)
	require.True(t, ok)
	<-c.gone
	require.Equal(t, "1-2=b 1-3=c", take(st, s, c2))
	_, over := st.head(s)
	require.True(t, over)
	st.disconnect(s, c)
	require.True(t, st.connected(s), "the old connection takes nothing with it")
	st.disconnect(s, c2)
	for _, bad := range [][2]int{{call.id, 4}, {call.id, 99}, {7, 0}} {
		_, _, ok = st.connect(bad[0], bad[1])
		require.False(t, ok)
	}
	require.Empty(t, *lost)
}

func TestTheOldestEventsGoFirst(t *testing.T) {
	st, lost := lossy(3, 1000)
	own, call := st.open(), st.open()
	s, c, _ := st.connect(call.id, -1)
	st.add(call, text("a"))
	take(st, s, c)
	for _, word := range []string{"b", "c", "d", "e"} {
		st.add(own, text(word))
	}
	require.Equal(t, []string{"b"}, *lost, "what was delivered goes without a word")
	_, _, ok := st.connect(call.id, 0)
	require.False(t, ok, "an event of it is gone")
	_, _, ok = st.connect(own.id, 0)
	require.False(t, ok)
	s, c, ok = st.connect(own.id, -1)
	require.True(t, ok)
	require.Equal(t, "0-2=c 0-3=d 0-4=e", take(st, s, c))
}

func TestBytesAreBounded(t *testing.T) {
	st, lost := lossy(100, 10)
	own := st.open()
	st.add(own, text("12345678"))
	st.add(own, text("abc"))
	require.Equal(t, []string{"12345678"}, *lost)
	st.add(own, text(strings.Repeat("x", 100)))
	require.Len(t, *lost, 3, "what can never fit is lost, too")
	require.Zero(t, st.bytes)
}

// A reader that is slow holds the writer up; one that leaves does not.
func TestASlowReaderHoldsTheWriterUp(t *testing.T) {
	st, lost := lossy(100, 10)
	call := st.open()
	s, c, _ := st.connect(call.id, -1)
	require.True(t, st.add(call, text(strings.Repeat("x", 100))), "one always fits")
	added := make(chan bool)
	go func() { added <- st.add(call, text("y")) }()
	select {
	case <-added:
		require.Fail(t, "there is no room")
	case <-time.After(20 * time.Millisecond):
	}
	e, _ := st.head(s)
	st.delivered(c, e, true)
	require.True(t, <-added)

	go func() { added <- st.add(call, text(strings.Repeat("z", 100))) }()
	st.disconnect(s, c)
	require.True(t, <-added)
	s, c, _ = st.connect(call.id, -1)
	require.Empty(t, take(st, s, c), "too large to be kept")
	require.Equal(t, []string{"y", strings.Repeat("z", 100)}, *lost)

	st.add(call, text(strings.Repeat("x", 100)))
	go func() { added <- st.add(call, text("y")) }()
	st.close()
	require.False(t, <-added)
}

func TestAStreamThatNobodyCanAskForIsForgotten(t *testing.T) {
	st, lost := lossy(100, 100)
	st.open()
	call := st.open()
	s, c, _ := st.connect(call.id, -1)
	st.add(call, text("a"))
	st.disconnect(s, c)
	require.Equal(t, []string{"a"}, *lost)
	require.False(t, st.add(call, text("b")))
	require.Len(t, st.streams, 1)
	require.Zero(t, st.order.Len())
}

func TestEventIDs(t *testing.T) {
	for _, bad := range []string{"", "-", "1", "1-", "-1", "1-2-3", "01-1", "1-+1", "1 -1", "a-b", "1--1", strings.Repeat("9", 30) + "-1", "1-" + strings.Repeat("9", 60)} {
		_, _, ok := parseEventID(bad)
		require.False(t, ok, bad)
	}
	stream, seq, ok := parseEventID(eventID(12, 345))
	require.Equal(t, []any{12, 345, true}, []any{stream, seq, ok})
}

// Whatever order things happen in, the books are right and no event is seen twice
// by one connection, or out of order.
func TestHammerStore(t *testing.T) {
	st := newStore(50, 2000, func(*event) {})
	st.open()
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(worker), 1))
			for range 300 {
				s := st.open()
				var writer sync.WaitGroup
				writer.Go(func() {
					for i := range 20 {
						st.add(s, &event{data: fmt.Appendf(nil, "%d", i), final: i == 19})
					}
				})
				from := -1
				for range r.IntN(4) {
					s2, c, ok := st.connect(s.id, from)
					if !ok {
						break
					}
					last := from
					for range r.IntN(30) {
						e, over := st.head(s2)
						if e == nil && over {
							break
						}
						if e == nil {
							<-c.wake
							continue
						}
						if e.seq <= last {
							t.Errorf("event %d after %d", e.seq, last)
						}
						last = e.seq
						st.delivered(c, e, true)
					}
					from = last
					st.disconnect(s2, c)
				}
				writer.Wait()
			}
		})
	}
	all.Wait()
	st.mu.Lock()
	defer st.mu.Unlock()
	require.Zero(t, st.waiting)
	bytes, events := 0, 0
	for _, s := range st.streams {
		for _, e := range s.events {
			bytes += len(e.data)
			events++
		}
	}
	require.Equal(t, st.bytes, bytes)
	require.Equal(t, st.order.Len(), events)
	require.LessOrEqual(t, events, 50)
}
