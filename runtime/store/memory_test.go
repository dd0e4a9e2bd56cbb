package store

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	ctx   = context.Background()
	alice = Space{Host: "h", File: "a.wasm", Scope: Principal, Owner: "user:alice"}
)

func get(t testing.TB, s Store, of Space, key string) (string, bool) {
	t.Helper()
	v, ok, err := s.Get(ctx, of, key)
	require.NoError(t, err)
	return string(v), ok
}

func TestValues(t *testing.T) {
	m := NewMemory(Limits{})
	_, ok := get(t, m, alice, "k")
	require.False(t, ok, "absent at first")
	value := []byte("one")
	require.NoError(t, m.Set(ctx, alice, "k", value, 0))
	value[0] = 'X'
	v, ok := get(t, m, alice, "k")
	require.True(t, ok)
	require.Equal(t, "one", v, "the store has its own copy")
	require.NoError(t, m.Set(ctx, alice, "k", nil, 0))
	v, ok = get(t, m, alice, "k")
	require.True(t, ok, "an empty value is a value")
	require.Empty(t, v)
	require.NoError(t, m.Set(ctx, alice, "", []byte("x"), 0))
	v, _ = get(t, m, alice, "")
	require.Equal(t, "x", v, "an empty key is a key")

	for _, want := range []bool{true, false} {
		was, err := m.Delete(ctx, alice, "k")
		require.NoError(t, err)
		require.Equal(t, want, was)
	}
	_, ok = get(t, m, alice, "k")
	require.False(t, ok)
}

func TestSpacesAreApart(t *testing.T) {
	m := NewMemory(Limits{})
	spaces := []Space{
		alice,
		{Host: "h", File: "a.wasm", Scope: Principal, Owner: "user:bob"},
		{Host: "h", File: "b.wasm", Scope: Principal, Owner: "user:alice"},
		{Host: "g", File: "a.wasm", Scope: Principal, Owner: "user:alice"},
		{Host: "h", File: "a.wasm", Scope: Session, Owner: "user:alice"},
		{Host: "h", File: "a.wasm", Scope: Module},
	}
	for i, s := range spaces {
		require.NoError(t, m.Set(ctx, s, "k", fmt.Append(nil, i), 0))
	}
	for i, s := range spaces {
		v, _ := get(t, m, s, "k")
		require.Equal(t, strconv.Itoa(i), v)
	}
}

func TestCounters(t *testing.T) {
	for _, c := range []struct {
		name, before string // "-" is absent
		delta, want  int64
		err          error
	}{
		{name: "absent", before: "-", delta: 3, want: 3},
		{name: "absent and zero", before: "-"},
		{name: "text", before: "41", delta: 1, want: 42},
		{name: "negative", before: "-7", delta: 2, want: -5},
		{name: "leading zeros", before: "007", delta: 1, want: 8},
		{name: "to the top", before: "9223372036854775806", delta: 1, want: math.MaxInt64},
		{name: "over the top", before: "9223372036854775807", delta: 1, err: ErrOverflow},
		{name: "to the bottom", before: "-1", delta: math.MinInt64 + 1, want: math.MinInt64},
		{name: "under the bottom", before: "-2", delta: math.MinInt64 + 1, err: ErrOverflow},
		{name: "empty", before: "", delta: 1, err: ErrNotNumber},
		{name: "plus", before: "+1", delta: 1, err: ErrNotNumber},
		{name: "space", before: " 1", delta: 1, err: ErrNotNumber},
		{name: "fraction", before: "1.0", delta: 1, err: ErrNotNumber},
		{name: "underscores", before: "1_0", delta: 1, err: ErrNotNumber},
		{name: "too long", before: "9223372036854775808", delta: 1, err: ErrNotNumber},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := NewMemory(Limits{})
			if c.before != "-" {
				require.NoError(t, m.Set(ctx, alice, "n", []byte(c.before), 0))
			}
			n, err := m.Add(ctx, alice, "n", c.delta, 0)
			require.ErrorIs(t, err, c.err)
			require.Equal(t, c.want, n)
			v, _ := get(t, m, alice, "n")
			if c.err != nil {
				require.Equal(t, c.before, v, "nothing has changed")
			} else {
				require.Equal(t, strconv.FormatInt(c.want, 10), v, "a counter is text")
			}
		})
	}
}

func TestTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory(Limits{})
		require.NoError(t, m.Set(ctx, alice, "k", []byte("v"), time.Second))
		require.NoError(t, m.Set(ctx, alice, "for ever", []byte("v"), 0))
		time.Sleep(time.Second - 1)
		_, ok := get(t, m, alice, "k")
		require.True(t, ok)
		time.Sleep(time.Nanosecond)
		_, ok = get(t, m, alice, "k")
		require.False(t, ok, "gone on the dot")
		was, err := m.Delete(ctx, alice, "k")
		require.NoError(t, err)
		require.False(t, was)

		// A counter of a period ends with the period, however often it is added to.
		for i := range 5 {
			n, err := m.Add(ctx, alice, "calls", 1, time.Minute)
			require.NoError(t, err)
			require.EqualValues(t, i+1, n)
			time.Sleep(12 * time.Second)
		}
		n, err := m.Add(ctx, alice, "calls", 1, time.Minute)
		require.NoError(t, err)
		require.EqualValues(t, 1, n)

		// Setting replaces the time, too.
		require.NoError(t, m.Set(ctx, alice, "k", nil, time.Second))
		require.NoError(t, m.Set(ctx, alice, "k", nil, 0))
		time.Sleep(100 * 365 * 24 * time.Hour)
		_, ok = get(t, m, alice, "k")
		require.True(t, ok)
		_, ok = get(t, m, alice, "for ever")
		require.True(t, ok)
	})
}

func TestNothingIsKeptOfWhatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory(Limits{})
		for i := range 1000 {
			s := Space{Host: "h", File: fmt.Sprint(i % 7), Scope: Principal, Owner: fmt.Sprint(i % 50)}
			require.NoError(t, m.Set(ctx, s, fmt.Sprint(i), make([]byte, i), time.Duration(1+i*7%1000)*time.Second))
		}
		require.Equal(t, 1000, m.total.entries)
		time.Sleep(2000 * time.Second)
		_, err := m.Delete(ctx, alice, "none") // any write
		require.NoError(t, err)
		requireEmpty(t, m)
	})
}

func requireEmpty(t testing.TB, m *Memory) {
	t.Helper()
	require.Zero(t, m.total)
	require.Empty(t, m.spaces)
	require.Empty(t, m.files)
	require.Empty(t, m.expiring)
}

// A full store refuses what is new and keeps what it has.
func TestFull(t *testing.T) {
	bob := alice
	bob.Owner = "user:bob"
	elsewhere := alice
	elsewhere.File = "b.wasm"
	shared := Space{Host: "h", File: "a.wasm", Scope: Module}
	full := map[string]struct {
		limits Limits
		fill   Space
		still  []Space // have room
		no     []Space // have none
	}{
		"an owner's entries": {Limits{Owner: Limit{Entries: 2}}, alice, []Space{bob, elsewhere, shared}, []Space{alice}},
		"an owner's bytes":   {Limits{Owner: Limit{Bytes: 2 * costOf("0", nil)}}, alice, []Space{bob, shared}, []Space{alice}},
		"a file's entries":   {Limits{File: Limit{Entries: 2}}, alice, []Space{elsewhere}, []Space{alice, bob, shared}},
		"a file's bytes":     {Limits{File: Limit{Bytes: 2 * costOf("0", nil)}}, shared, []Space{elsewhere}, []Space{alice, shared}},
		"all entries":        {Limits{Total: Limit{Entries: 2}}, alice, nil, []Space{alice, bob, elsewhere}},
		"all bytes":          {Limits{Total: Limit{Bytes: 2 * costOf("0", nil)}}, alice, nil, []Space{alice, bob, elsewhere}},
	}
	for name, c := range full {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := NewMemory(c.limits)
				require.NoError(t, m.Set(ctx, c.fill, "0", []byte("9"), 0))
				require.NoError(t, m.Set(ctx, c.fill, "1", []byte("x"), time.Second))
				for _, s := range c.no {
					require.ErrorIs(t, m.Set(ctx, s, "2", nil, 0), ErrFull)
					_, err := m.Add(ctx, s, "2", 1, 0)
					require.ErrorIs(t, err, ErrFull)
				}
				v, ok := get(t, m, c.fill, "1")
				require.True(t, ok, "nothing is thrown out")
				require.Equal(t, "x", v)
				n, err := m.Add(ctx, c.fill, "0", math.MaxInt64-9, 0)
				require.NoError(t, err, "a counter that exists always counts on")
				require.EqualValues(t, math.MaxInt64, n)
				require.NoError(t, m.Set(ctx, c.fill, "1", []byte("y"), time.Second), "a value may be replaced by one as large")
				for _, s := range c.still {
					require.NoError(t, m.Set(ctx, s, "2", nil, time.Millisecond))
				}
				time.Sleep(time.Second)
				require.NoError(t, m.Set(ctx, c.fill, "2", nil, 0), "what has ended makes room")
			})
		})
	}
	t.Run("a larger value", func(t *testing.T) {
		m := NewMemory(Limits{Owner: Limit{Bytes: costOf("k", make([]byte, 100))}})
		require.NoError(t, m.Set(ctx, alice, "k", make([]byte, 100), 0))
		require.ErrorIs(t, m.Set(ctx, alice, "k", make([]byte, 101), 0), ErrFull)
		v, _ := get(t, m, alice, "k")
		require.Len(t, v, 100)
		require.NoError(t, m.Set(ctx, alice, "k", make([]byte, 99), 0))
	})
}

// Concurrent adds lose nothing, and each sum is seen once.
func TestHammer(t *testing.T) {
	m := NewMemory(Limits{})
	const workers, each = 8, 2000
	var seen sync.Map
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			mine := Space{Host: "h", File: "a.wasm", Scope: Session, Owner: fmt.Sprint(w)}
			for i := range each {
				n, err := m.Add(ctx, alice, "n", 1, time.Hour)
				if err != nil {
					t.Error(err)
				}
				if _, twice := seen.LoadOrStore(n, true); twice {
					t.Errorf("the sum %d was given twice", n)
				}
				key := fmt.Sprint(i % 50)
				if err := m.Set(ctx, mine, key, []byte(key), time.Duration(i%3)*time.Microsecond); err != nil {
					t.Error(err)
				}
				if v, ok, _ := m.Get(ctx, mine, key); ok && string(v) != key {
					t.Errorf("%q has the value %q", key, v)
				}
				if i%5 == 0 {
					_, _ = m.Delete(ctx, mine, key)
				}
			}
			for i := range 50 {
				_, _ = m.Delete(ctx, mine, fmt.Sprint(i))
			}
		})
	}
	all.Wait()
	v, _ := get(t, m, alice, "n")
	require.Equal(t, fmt.Sprint(workers*each), v)
	_, err := m.Delete(ctx, alice, "n")
	require.NoError(t, err)
	requireEmpty(t, m)
}

// FuzzModel runs a program of operations against maps that are plainly right.
func FuzzModel(f *testing.F) {
	f.Add([]byte("\x00\x00\x05\x01\x01\x00\x02\x02\x02\x10\x00\x00\x03\x00\x00"))
	f.Add(bytes.Repeat([]byte{2, 9, 200, 4, 3, 1, 1, 1, 130}, 20))
	f.Add(bytes.Repeat([]byte{1, 77, 63, 0, 78, 0, 4, 0, 2}, 30))
	f.Fuzz(func(t *testing.T, program []byte) {
		if len(program) > 3000 {
			return
		}
		synctest.Test(t, func(t *testing.T) { runModel(t, program) })
	})
}

type modelKey struct {
	space int
	key   string
}

type modelValue struct {
	text string
	ends time.Time
}

func runModel(t *testing.T, program []byte) {
	limits := Limits{Owner: Limit{Entries: 4}, File: Limit{Entries: 6}, Total: Limit{Entries: 9}}
	m := NewMemory(limits)
	spaces := []Space{alice, {Host: "h", File: "a.wasm", Scope: Session, Owner: "s"}, {Host: "h", File: "a.wasm", Scope: Module}, {Host: "h", File: "b.wasm", Scope: Principal, Owner: "user:alice"}}
	want := map[modelKey]modelValue{}
	room := func(k modelKey) bool {
		if _, ok := want[k]; ok {
			return true
		}
		owner, file := 0, 0
		for other := range want {
			if other.space == k.space {
				owner++
			}
			if spaces[other.space].File == spaces[k.space].File {
				file++
			}
		}
		return (owner < 4 || spaces[k.space].Scope == Module) && file < 6 && len(want) < 9
	}
	for ; len(program) >= 3; program = program[3:] {
		op, at, n := program[0]%5, program[1], program[2]
		k := modelKey{int(at % 4), strings.Repeat("k", int(at/4%5))}
		s, ttl := spaces[k.space], time.Duration(n>>6)*time.Second
		for key, v := range want {
			if !v.ends.IsZero() && !time.Now().Before(v.ends) {
				delete(want, key)
			}
		}
		old, there := want[k]
		next := old
		if next.ends = (time.Time{}); ttl > 0 {
			next.ends = time.Now().Add(ttl)
		}
		switch op {
		case 0:
			v, ok := get(t, m, s, k.key)
			require.Equal(t, there, ok)
			require.Equal(t, old.text, v)
		case 1:
			next.text = []string{"x", "", "12", "-5"}[n%4]
			err := m.Set(ctx, s, k.key, []byte(next.text), ttl)
			if !room(k) {
				require.ErrorIs(t, err, ErrFull)
				continue
			}
			require.NoError(t, err)
			want[k] = next
		case 2:
			sum, err := m.Add(ctx, s, k.key, int64(n)-100, ttl)
			before, bad := int64(0), error(nil)
			if there {
				next.ends = old.ends
				before, bad = strconv.ParseInt(old.text, 10, 64)
			}
			switch {
			case bad != nil:
				require.ErrorIs(t, err, ErrNotNumber)
			case !room(k):
				require.ErrorIs(t, err, ErrFull)
			default:
				require.NoError(t, err)
				require.Equal(t, before+int64(n)-100, sum)
				next.text = strconv.FormatInt(sum, 10)
				want[k] = next
			}
		case 3:
			was, err := m.Delete(ctx, s, k.key)
			require.NoError(t, err)
			require.Equal(t, there, was)
			delete(want, k)
		case 4:
			time.Sleep(time.Duration(n) * 10 * time.Millisecond)
		}
	}
	for i, s := range spaces {
		for n := range 5 {
			_, _ = m.Delete(ctx, s, strings.Repeat("k", n))
			delete(want, modelKey{i, strings.Repeat("k", n)})
		}
	}
	requireEmpty(t, m)
}

func BenchmarkAdd(b *testing.B) {
	m := NewMemory(Limits{})
	for i := range 40_000 {
		s := Space{Host: "h", File: "a.wasm", Scope: Principal, Owner: fmt.Sprint(i)}
		_, _ = m.Add(ctx, s, "calls", 1, time.Hour)
	}
	for b.Loop() {
		_, _ = m.Add(ctx, alice, "calls", 1, time.Hour)
	}
}
