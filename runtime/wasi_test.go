package runtime

import (
	"context"
	"encoding/binary"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
)

// fakeMemory is the memory of a guest.
type fakeMemory []byte

func (m fakeMemory) Read(offset, count uint32) ([]byte, bool) {
	if uint64(offset)+uint64(count) > uint64(len(m)) {
		return nil, false
	}
	return m[offset : offset+count : offset+count], true
}

func (m fakeMemory) uint32(at uint32) uint32 { return binary.LittleEndian.Uint32(m[at:]) }
func (m fakeMemory) uint64(at uint32) uint64 { return binary.LittleEndian.Uint64(m[at:]) }

// fakeGlobal is a global of a guest.
type fakeGlobal uint64

func (g *fakeGlobal) Get() uint64      { return uint64(*g) }
func (g *fakeGlobal) Set(value uint64) { *g = fakeGlobal(value) }

// fakeGuest calls host functions as a guest would.
type fakeGuest struct {
	*call
	fakeMemory
	t *testing.T
}

func newGuest(t *testing.T, m *Module, input string) *fakeGuest {
	if m.logger == nil {
		m.logger = slog.New(slog.DiscardHandler)
	}
	var err error
	m.limits, err = m.limits.orDefaults()
	require.NoError(t, err)
	c := m.newCall([]byte(input))
	c.tank.gauge = new(fakeGlobal)
	return &fakeGuest{call: c, fakeMemory: make(fakeMemory, 1<<17), t: t}
}

// try calls a function of WASI and returns its errno and error.
func (g *fakeGuest) try(name string, args ...uint64) (errno, error) {
	for _, f := range wasiFuncs {
		if f.Name == name {
			require.Len(g.t, args, len(f.Type.Params), name)
			words := append(args, 0)
			err := f.Call(g.call.context(context.Background()), g.fakeMemory, words)
			return words[0], err
		}
	}
	g.t.Fatal("no such function: " + name)
	return 0, nil
}

func (g *fakeGuest) do(name string, args ...uint64) errno {
	g.t.Helper()
	e, err := g.try(name, args...)
	require.NoError(g.t, err)
	return e
}

func (g *fakeGuest) put32(at uint32, values ...uint32) {
	for i, v := range values {
		binary.LittleEndian.PutUint32(g.fakeMemory[at+4*uint32(i):], v)
	}
}

const outside = 1<<17 - 2 // an address where nothing of 4 bytes fits

func TestWASIArgumentsAndEnvironment(t *testing.T) {
	m := &Module{environ: Grants{Env: map[string]string{"B": "2", "A": "1"}}.environ()}
	g := newGuest(t, m, "")
	g.args = []string{"guest.wasm", "describe"}
	for _, c := range []struct{ get, sizes, want string }{
		{"args_get", "args_sizes_get", "guest.wasm\x00describe\x00"},
		{"environ_get", "environ_sizes_get", "A=1\x00B=2\x00"},
	} {
		require.Equal(t, errnoSuccess, g.do(c.sizes, 0, 4))
		require.Equal(t, uint32(2), g.uint32(0))
		require.Equal(t, uint32(len(c.want)), g.uint32(4))
		require.Equal(t, errnoSuccess, g.do(c.get, 16, 64))
		require.Equal(t, c.want, string(g.fakeMemory[64:64+len(c.want)]))
		require.Equal(t, uint32(64), g.uint32(16))
		require.Equal(t, uint32(64+strings.Index(c.want, "\x00")+1), g.uint32(20))

		require.Equal(t, errnoFault, g.do(c.sizes, outside, 0))
		require.Equal(t, errnoFault, g.do(c.sizes, 0, outside))
		require.Equal(t, errnoFault, g.do(c.get, outside, 0))
		require.Equal(t, errnoFault, g.do(c.get, 0, outside))
		require.Equal(t, errnoFault, g.do(c.get, math.MaxUint32, math.MaxUint32))
	}

	// Nothing of it unless granted.
	g = newGuest(t, &Module{}, "")
	require.Equal(t, errnoSuccess, g.do("environ_sizes_get", 0, 4))
	require.Zero(t, g.uint64(0))
	require.Equal(t, errnoSuccess, g.do("args_sizes_get", 0, 4))
	require.Zero(t, g.uint64(0))
}

func TestWASIClock(t *testing.T) {
	g := newGuest(t, &Module{}, "")
	for _, id := range []uint64{clockRealtime, clockMonotonic} {
		require.Equal(t, errnoSuccess, g.do("clock_res_get", id, 0))
		require.Equal(t, uint64(time.Millisecond), g.uint64(0))
		require.Equal(t, errnoFault, g.do("clock_res_get", id, outside))
		require.Equal(t, errnoFault, g.do("clock_time_get", id, 0, outside))

		before := uint64(0)
		for range 10_000 {
			require.Equal(t, errnoSuccess, g.do("clock_time_get", id, 1, 0))
			now := g.uint64(0)
			require.GreaterOrEqual(t, now, before, "never goes back")
			require.NotZero(t, now)
			require.Zero(t, now%uint64(time.Millisecond), "steps of 1 ms")
			before = now
		}
	}
	for _, id := range []uint64{2, 3, math.MaxUint32} {
		require.Equal(t, errnoInval, g.do("clock_res_get", id, 0))
		require.Equal(t, errnoInval, g.do("clock_time_get", id, 0, 0))
	}

	year := func(g *fakeGuest) int {
		require.Equal(t, errnoSuccess, g.do("clock_time_get", clockRealtime, 1, 0))
		return time.Unix(0, int64(g.uint64(0))).UTC().Year()
	}
	require.Equal(t, 2000, year(g))
	real := newGuest(t, &Module{grants: Grants{Clock: true}}, "")
	require.Equal(t, time.Now().UTC().Year(), year(real), "the grant clock opens the real time")

	// A new call does not see what the last one slept, and is not behind it
	// otherwise: the clock is the process's.
	g.do("clock_time_get", clockMonotonic, 1, 0)
	first := g.uint64(0)
	g.clock.sleep(uint64(time.Hour))
	g.do("clock_time_get", clockMonotonic, 1, 0)
	require.GreaterOrEqual(t, g.uint64(0), first+uint64(time.Hour))
	next := newGuest(t, &Module{}, "")
	next.do("clock_time_get", clockMonotonic, 1, 0)
	require.GreaterOrEqual(t, next.uint64(0), first)
	require.Less(t, next.uint64(0), first+uint64(time.Hour))
}

func TestTheClockNeverOverflows(t *testing.T) {
	g := newGuest(t, &Module{}, "")
	for range 5 {
		g.clock.sleep(math.MaxUint64)
		require.Less(t, g.clock.wall(), uint64(math.MaxInt64))
	}
	require.Equal(t, 2099, time.Unix(0, int64(g.clock.wall())).UTC().Year())
}

// subscription is one of poll_oneoff's.
func (g *fakeGuest) subscribe(at uint32, userdata uint64, tag byte, clock uint32, timeout uint64, flags uint16) {
	s := g.fakeMemory[at : at+48]
	clear(s)
	binary.LittleEndian.PutUint64(s, userdata)
	s[8] = tag
	binary.LittleEndian.PutUint32(s[16:], clock)
	binary.LittleEndian.PutUint64(s[24:], timeout)
	binary.LittleEndian.PutUint16(s[40:], flags)
}

func TestWASIPoll(t *testing.T) {
	const in, out, count = 0, 4096, 8192
	g := newGuest(t, &Module{}, "")
	event := func(i uint32) (userdata uint64, errno uint16, tag byte) {
		e := g.fakeMemory[out+32*i:]
		return binary.LittleEndian.Uint64(e), binary.LittleEndian.Uint16(e[8:]), e[10]
	}
	now := func() uint64 { return g.clock.monotonic() }

	t.Run("a clock returns at once and moves the guest's clock on", func(t *testing.T) {
		before := now()
		g.subscribe(in, 7, 0, clockMonotonic, uint64(time.Hour), 0)
		require.Equal(t, errnoSuccess, g.do("poll_oneoff", in, out, 1, count))
		require.Equal(t, uint32(1), g.uint32(count))
		userdata, errno, tag := event(0)
		require.Equal(t, []any{uint64(7), uint16(0), byte(0)}, []any{userdata, errno, tag})
		require.GreaterOrEqual(t, now()-before, uint64(time.Hour))
	})
	t.Run("absolute times", func(t *testing.T) {
		before := now()
		g.subscribe(in, 1, 0, clockMonotonic, before+uint64(time.Hour), 1)
		require.Equal(t, errnoSuccess, g.do("poll_oneoff", in, out, 1, count))
		require.GreaterOrEqual(t, now(), before+uint64(time.Hour)-uint64(time.Millisecond))
		require.Less(t, now(), before+uint64(2*time.Hour))

		before = now()
		g.subscribe(in, 1, 0, clockRealtime, 1, 1) // long past
		require.Equal(t, errnoSuccess, g.do("poll_oneoff", in, out, 1, count))
		require.Less(t, now()-before, uint64(time.Hour))
	})
	t.Run("the earliest of several", func(t *testing.T) {
		before := now()
		g.subscribe(in, 1, 0, clockMonotonic, uint64(3*time.Hour), 0)
		g.subscribe(in+48, 2, 0, clockRealtime, uint64(time.Hour), 0)
		require.Equal(t, errnoSuccess, g.do("poll_oneoff", in, out, 2, count))
		require.Equal(t, uint32(1), g.uint32(count))
		userdata, _, _ := event(0)
		require.Equal(t, uint64(2), userdata)
		require.Less(t, now()-before, uint64(2*time.Hour))
	})
	t.Run("descriptors are not supported", func(t *testing.T) {
		g.subscribe(in, 1, 1, 0, 0, 0)
		g.subscribe(in+48, 2, 2, 1, 0, 0)
		require.Equal(t, errnoSuccess, g.do("poll_oneoff", in, out, 2, count))
		require.Equal(t, uint32(2), g.uint32(count))
		for i, want := range []byte{1, 2} {
			userdata, errno, tag := event(uint32(i))
			require.Equal(t, []any{uint64(want), uint16(errnoNotsup), want}, []any{userdata, errno, tag})
		}
	})
	t.Run("nonsense", func(t *testing.T) {
		require.Equal(t, errnoInval, g.do("poll_oneoff", in, out, 0, count))
		require.Equal(t, errnoInval, g.do("poll_oneoff", in, out, math.MaxUint32, count), "no overflow of the array's size")
		require.Equal(t, errnoInval, g.do("poll_oneoff", in, out, 1<<32/48+1, count))
		require.Equal(t, errnoFault, g.do("poll_oneoff", outside, out, 1, count))
		require.Equal(t, errnoFault, g.do("poll_oneoff", in, outside, 1, count))
		require.Equal(t, errnoFault, g.do("poll_oneoff", in, out, 2, outside))
		g.subscribe(in, 1, 9, 0, 0, 0)
		require.Equal(t, errnoInval, g.do("poll_oneoff", in, out, 1, count))
		g.subscribe(in, 1, 0, 5, 0, 0)
		require.Equal(t, errnoInval, g.do("poll_oneoff", in, out, 1, count))
	})
}

func TestWASIRandomIsReal(t *testing.T) {
	g := newGuest(t, &Module{}, "")
	seen := map[uint64]bool{}
	for range 100 {
		require.Equal(t, errnoSuccess, g.do("random_get", 0, 8))
		seen[g.uint64(0)] = true
	}
	require.Len(t, seen, 100)
	other := newGuest(t, &Module{}, "")
	require.Equal(t, errnoSuccess, other.do("random_get", 0, 8))
	require.False(t, seen[other.uint64(0)], "two instances do not draw the same")

	require.Equal(t, errnoSuccess, g.do("random_get", 0, 1<<17))
	require.Equal(t, errnoFault, g.do("random_get", 1, 1<<17))
	require.Equal(t, errnoSuccess, g.do("random_get", 5, 0))

	ctx, cancel := context.WithCancel(g.call.context(context.Background()))
	cancel()
	_, err := randomGet(ctx, g.call, g.fakeMemory, []uint64{0, 8})
	require.ErrorIs(t, err, context.Canceled)
}

func TestWASIReactorHasNoStdin(t *testing.T) {
	g := newGuest(t, &Module{}, "input")
	g.put32(0, 64, 100)
	g.put32(16, 9)
	require.Equal(t, errnoSuccess, g.do("fd_read", 0, 0, 1, 16))
	require.Zero(t, g.uint32(16), "end of file")
	require.Equal(t, errnoBadf, g.do("fd_read", 1, 0, 1, 16))
	require.Equal(t, errnoBadf, g.do("fd_read", 5, 0, 1, 16))
}

func TestWASICommandReadsStdin(t *testing.T) {
	g := newGuest(t, &Module{flavour: Command}, "hello")
	g.put32(0, 64, 2, 80, 2)
	require.Equal(t, errnoSuccess, g.do("fd_read", 0, 0, 2, 16))
	require.Equal(t, uint32(4), g.uint32(16))
	require.Equal(t, "he", string(g.fakeMemory[64:66]))
	require.Equal(t, "ll", string(g.fakeMemory[80:82]))
	require.Equal(t, errnoSuccess, g.do("fd_read", 0, 0, 2, 16))
	require.Equal(t, uint32(1), g.uint32(16))
	require.Equal(t, errnoSuccess, g.do("fd_read", 0, 0, 2, 16))
	require.Zero(t, g.uint32(16))

	require.Equal(t, errnoInval, g.do("fd_read", 0, 0, maxVectors+1, 16))
	require.Equal(t, errnoInval, g.do("fd_read", 0, 0, math.MaxUint32, 16))
	require.Equal(t, errnoFault, g.do("fd_read", 0, outside, 1, 16))
	require.Equal(t, errnoFault, g.do("fd_read", 0, 0, 1, outside))
}

func TestWASICommandWritesItsAnswer(t *testing.T) {
	g := newGuest(t, &Module{flavour: Command, limits: Limits{OutputBytes: 10}}, "")
	copy(g.fakeMemory[64:], "answer")
	g.put32(0, 64, 3, 67, 3)
	require.Equal(t, errnoSuccess, g.do("fd_write", 1, 0, 2, 16))
	require.Equal(t, uint32(6), g.uint32(16))
	require.Equal(t, "answer", string(g.output))
	require.True(t, g.hasOutput)

	g.put32(0, 0, 10+answerOverhead-6)
	require.Equal(t, errnoSuccess, g.do("fd_write", 1, 0, 1, 16))
	g.put32(0, 0, 1)
	_, err := g.try("fd_write", 1, 0, 1, 16)
	require.Equal(t, abi.ReasonOutputTooLarge, failureOf(err).reason)
	require.Equal(t, errnoBadf, g.do("fd_write", 0, 0, 1, 16))
	require.Equal(t, errnoBadf, g.do("fd_write", 3, 0, 1, 16))
	require.Equal(t, errnoFault, g.do("fd_write", 2, 0, 1, outside))
}

// There is nothing but stdin, stdout and stderr: no files, no sockets.
func TestWASIHasNoFiles(t *testing.T) {
	g := newGuest(t, &Module{}, "")
	for _, f := range wasiFuncs {
		switch {
		case f.Name == "path_symlink":
			require.Equal(t, errnoBadf, g.do(f.Name, 0, 0, 3, 0, 0), f.Name)
		case strings.HasPrefix(f.Name, "path_"), strings.HasPrefix(f.Name, "fd_"), strings.HasPrefix(f.Name, "sock_"):
			args := make([]uint64, len(f.Type.Params))
			for _, fd := range []uint64{3, 4, 1000, math.MaxUint32} {
				args[0] = fd
				require.Equal(t, errnoBadf, g.do(f.Name, args...), "%s(%d)", f.Name, fd)
			}
		}
	}
	for _, name := range []string{"path_open", "sock_accept", "fd_readdir", "fd_renumber"} {
		for _, f := range wasiFuncs {
			if f.Name == name {
				require.Equal(t, errnoNotsup, g.do(name, make([]uint64, len(f.Type.Params))...), name)
			}
		}
	}
	require.Equal(t, errnoBadf, g.do("fd_prestat_get", 0, 0))
	require.Equal(t, errnoSpipe, g.do("fd_seek", 1, 0, 0, 0))
	require.Equal(t, errnoSuccess, g.do("fd_close", 1))
	require.Equal(t, errnoSuccess, g.do("fd_fdstat_set_flags", 0, 4))
	require.Equal(t, errnoNosys, g.do("proc_raise", 9))
	require.Equal(t, errnoSuccess, g.do("sched_yield"))

	require.Equal(t, errnoSuccess, g.do("fd_fdstat_get", 1, 0))
	require.Equal(t, []byte{2, 0, 0, 0, 0, 0, 0, 0, 1 << 6, 0}, []byte(g.fakeMemory[:10]), "a character device that can be written")
	require.Equal(t, errnoSuccess, g.do("fd_fdstat_get", 0, 0))
	require.Equal(t, byte(1<<1), g.fakeMemory[8])
	require.Equal(t, errnoFault, g.do("fd_fdstat_get", 1, outside))
	require.Equal(t, errnoSuccess, g.do("fd_filestat_get", 2, 0))
	require.Equal(t, byte(2), g.fakeMemory[16])
	require.Equal(t, errnoFault, g.do("fd_filestat_get", 2, outside))

	_, err := g.try("proc_exit", 3)
	code, ok := exitCode(err)
	require.True(t, ok)
	require.Equal(t, uint32(3), code)
}

// No function of WASI panics, whatever it is called with.
func FuzzWASI(f *testing.F) {
	f.Add(uint8(0), uint64(0), uint64(0), uint64(1), uint64(8), []byte{64, 0, 0, 0, 5, 0, 0, 0})
	f.Add(uint8(37), uint64(0), uint64(100), uint64(2), uint64(8), make([]byte, 96))
	f.Fuzz(func(t *testing.T, which uint8, a, b, c, d uint64, memory []byte) {
		m := &Module{logger: slog.New(slog.DiscardHandler), limits: DefaultLimits(), environ: []string{"A=1"}, flavour: Command}
		run := m.newCall([]byte("input"))
		run.tank.fill(new(fakeGlobal), nil, deadline{}, 0)
		run.args = []string{"guest.wasm", "invoke"}
		fn := wasiFuncs[int(which)%len(wasiFuncs)]
		words := []uint64{a, b, c, d, a, b, c, d, a}
		for i := range words {
			words[i] = uint64(uint32(words[i]))
		}
		_ = fn.Call(run.context(context.Background()), fakeMemory(memory), words[:max(1, len(fn.Type.Params))])
		run.log.end(context.Background())
	})
}
