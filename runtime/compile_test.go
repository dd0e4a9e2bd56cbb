package runtime

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	wt "github.com/weir-mcp/weir/internal/wasmtest"
	"github.com/weir-mcp/weir/runtime/memory"
	"github.com/weir-mcp/weir/runtime/meter"
)

// slowEngine takes a second for each compilation and counts how many it does
// at once.
type slowEngine struct{ running, most, total atomic.Int64 }

func (*slowEngine) Name() string                { return "slow" }
func (*slowEngine) Close(context.Context) error { return nil }
func (*slowEngine) Reset() memory.Way           { return memory.Fresh }

func (e *slowEngine) Compile(context.Context, []byte) (Code, error) {
	n := e.running.Add(1)
	defer e.running.Add(-1)
	for most := e.most.Load(); n > most && !e.most.CompareAndSwap(most, n); most = e.most.Load() {
	}
	e.total.Add(1)
	time.Sleep(time.Second)
	return nil, errors.New("compiles nothing")
}

func compileAll(r *Runtime, charge int64, times int) {
	var wg sync.WaitGroup
	for range times {
		wg.Go(func() { _, _ = compileOne(context.Background(), r, charge) })
	}
	wg.Wait()
}

func compileOne(ctx context.Context, r *Runtime, charge int64) (Code, error) {
	return r.compile(ctx, charge, func() {}, func() (Code, error) { return r.engine.Compile(ctx, nil) })
}

func TestCompilationsStayWithinABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &slowEngine{}
		r := New(e)
		compileAll(r, 273<<20, 4)
		require.Equal(t, int64(2), e.most.Load())
		require.Equal(t, int64(4), e.total.Load())

		e = &slowEngine{}
		r = New(e)
		compileAll(r, 2<<30, 2) // over the budget: alone
		require.Equal(t, int64(1), e.most.Load())
		require.Equal(t, int64(2), e.total.Load())
	})
}

func TestTheSameFileIsNotCompiledAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &slowEngine{}
		r := New(e)
		m, err := meter.Parse(wt.Allowing("guard"))
		require.NoError(t, err)
		limits := DefaultLimits()
		other := limits
		other.Memory *= 2
		var wg sync.WaitGroup
		prepare := func(ctx context.Context, digest byte, limits Limits) error {
			_, _, err := r.prepare(ctx, m, [32]byte{digest}, limits)
			return err
		}
		for range 3 {
			wg.Go(func() { require.ErrorContains(t, prepare(t.Context(), 1, limits), "the engine refused the module") })
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		require.ErrorIs(t, prepare(ctx, 1, limits), context.DeadlineExceeded)
		wg.Wait()
		require.Equal(t, int64(1), e.most.Load())

		wg.Go(func() { _ = prepare(t.Context(), 1, limits) })
		wg.Go(func() { _ = prepare(t.Context(), 2, limits) })
		wg.Go(func() { _ = prepare(t.Context(), 1, other) })
		wg.Wait()
		require.Equal(t, int64(3), e.most.Load(), "others are")
		require.Empty(t, r.flights.locks, "no lock is kept")
	})
}

func TestWaitingForTheBudgetEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(&slowEngine{})
		go compileAll(r, 2<<30, 1)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		_, err := compileOne(ctx, r, 2<<30)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		time.Sleep(2 * time.Second)
	})
}

// lateEngine takes an hour to compile, and counts what was closed.
type lateEngine struct {
	slowEngine
	closed atomic.Int64
}

type lateCode struct{ *lateEngine }

func (e *lateEngine) Compile(context.Context, []byte) (Code, error) {
	e.total.Add(1)
	time.Sleep(time.Hour)
	return lateCode{e}, nil
}

func (lateCode) Instantiate(context.Context, Room) (Instance, error) {
	return nil, errors.New("instantiates nothing")
}

func (c lateCode) Close(context.Context) error {
	c.closed.Add(1)
	return nil
}

// What compiles for too long does not hold up who asked for it, nor others that
// there is room for in the budget, and is gone in the end. Whoever closes waits
// for it.
func TestLongCompilationsAreLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &lateEngine{}
		r := New(e)
		load := func(ctx context.Context, name string, limit time.Duration) (time.Duration, error) {
			began := time.Now()
			_, err := r.Load(ctx, wt.Allowing(name), ModuleOptions{Name: "slow.wasm", Limits: Limits{CompileTime: limit}})
			return time.Since(began), err
		}
		var refused *LoadError
		took, err := load(t.Context(), "a", 0)
		require.Equal(t, 2*time.Minute, took)
		require.ErrorAs(t, err, &refused)
		require.ErrorContains(t, err, "slow.wasm: compiling did not end within 2m0s, the limit for it")

		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		took, err = load(ctx, "b", 0)
		require.Equal(t, 5*time.Second, took)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorAs(t, err, &refused)

		// The same file waits for the one that is under way.
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = load(ctx, "a", 0)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.EqualValues(t, 2, e.total.Load())

		// Another one is not held up, until the budget is used up.
		took, err = load(t.Context(), "c", time.Second)
		require.ErrorContains(t, err, "compiling did not end")
		require.Equal(t, time.Second, took)
		require.True(t, r.budget.TryAcquire(compileBudget-3*compileChargeMin))
		require.False(t, r.budget.TryAcquire(1), "each holds its part")
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = load(ctx, "d", 0)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.EqualValues(t, 3, e.total.Load())
		r.budget.Release(compileBudget - 3*compileChargeMin)

		require.Zero(t, e.closed.Load())
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, r.Close(ctx), context.DeadlineExceeded)
		require.NoError(t, r.Close(t.Context()))
		require.EqualValues(t, 3, e.closed.Load(), "nothing that came too late is left")
		require.Empty(t, r.flights.locks)
		require.True(t, r.budget.TryAcquire(compileBudget))
	})
}

// What came too late is there for the next attempt, where there is a cache.
func TestLateCompilationsFillTheCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &lateKeeper{}
		r := New(e, WithCache(&mapCache{}))
		o := ModuleOptions{Name: "slow.wasm", Limits: Limits{CompileTime: time.Second}}
		_, err := r.Load(t.Context(), wt.Allowing("a"), o)
		require.ErrorContains(t, err, "compiling did not end within 1s")
		time.Sleep(2 * time.Hour)
		_, err = r.Load(t.Context(), wt.Allowing("a"), o)
		require.ErrorContains(t, err, "instantiates nothing", "which is further than it came before")
		require.EqualValues(t, 1, e.total.Load())
		require.NoError(t, r.Close(t.Context()))
		require.EqualValues(t, 2, e.closed.Load())
	})
}

// lateKeeper is a lateEngine whose code can be kept.
type lateKeeper struct{ lateEngine }

func (*lateKeeper) CodeKey() string { return "late" }

func (e *lateKeeper) CompileToKeep(ctx context.Context, wasm []byte) (Code, []byte, error) {
	code, err := e.Compile(ctx, wasm)
	return code, []byte("code"), err
}

func (e *lateKeeper) CompileKept(context.Context, []byte, []byte) (Code, error) {
	return lateCode{&e.lateEngine}, nil
}

// mapCache is a [Cache] in memory.
type mapCache struct{ entries sync.Map }

func (c *mapCache) Get(key [32]byte) ([][]byte, bool) {
	parts, ok := c.entries.Load(key)
	if !ok {
		return nil, false
	}
	return parts.([][]byte), true
}

func (c *mapCache) Put(key [32]byte, parts ...[]byte) { c.entries.Store(key, parts) }

// A module with several tables has them bounded together; nothing else changes,
// and of one with a single table nothing at all.
func TestBounded(t *testing.T) {
	limits := Limits{TableElements: 100, Memory: 1 << 20}
	r := wt.NewReactor(wt.Validator("guard"))
	r.Memory(2, 5)
	r.Table(1)
	r.Table(2, 50)
	r.Table(3, 5000)
	r.Custom("name", []byte("x"))
	r.Invoke("", r.Answer(`{}`))
	before, err := meter.Parse(r.Bytes())
	require.NoError(t, err)
	after, err := bounded(before, limits)
	require.NoError(t, err)

	var highest []uint32
	for i, table := range after.Tables {
		require.True(t, table.HasMax)
		require.Equal(t, before.Tables[i].Min, table.Min)
		highest = append(highest, table.Max)
	}
	// 94 elements are left for the three of them.
	require.Equal(t, []uint32{1 + 31, 2 + 31, 3 + 31}, highest)
	require.Equal(t, before.Memory, after.Memory)
	require.Equal(t, before.Exports, after.Exports)
	require.Equal(t, before.Imports, after.Imports)
	require.Equal(t, before.LargestBody, after.LargestBody)
	require.Equal(t, before.DataSegments, after.DataSegments)

	single, err := meter.Parse(wt.Allowing("guard"))
	require.NoError(t, err)
	same, err := bounded(single, limits)
	require.NoError(t, err)
	require.Same(t, single, same)
}

func TestTablesShareTheirLimit(t *testing.T) {
	highest := func(declare ...[]uint32) (list []uint32) {
		r := wt.NewReactor(wt.Validator("guard"))
		for _, d := range declare {
			r.Table(d[0], d[1:]...)
		}
		r.Invoke("", r.Answer(`{}`))
		m, err := meter.Parse(r.Bytes())
		require.NoError(t, err)
		require.NoError(t, checkSizes(m, Limits{TableElements: 100, Memory: 1 << 20}))
		rewritten, err := rewrite(m, Limits{TableElements: 100, Memory: 1 << 20})
		require.NoError(t, err)
		m, err = meter.Parse(rewritten.Binary)
		require.NoError(t, err)
		for _, table := range m.Tables {
			list = append(list, table.Max)
		}
		return list
	}
	require.Equal(t, []uint32{100}, highest([]uint32{10}))
	require.Equal(t, []uint32{100}, highest([]uint32{100}))
	require.Equal(t, []uint32{20}, highest([]uint32{10, 20}))
	require.Equal(t, []uint32{60, 40}, highest([]uint32{60, 60}, []uint32{0, 1000}), "what cannot grow takes no share")
	require.Equal(t, []uint32{50, 50}, highest([]uint32{0}, []uint32{0}))
}

func TestDefaultLimits(t *testing.T) {
	got, err := Limits{}.orDefaults()
	require.NoError(t, err)
	require.Equal(t, DefaultLimits(), got)

	got, err = Limits{Calls: 3}.orDefaults()
	require.NoError(t, err)
	require.Equal(t, 12, got.Queue, "4 times the calls")

	got, err = Limits{Queue: -1, LogLines: -1}.orDefaults()
	require.NoError(t, err)
	require.Zero(t, got.Queue)
	require.Zero(t, got.LogLines)

	got, err = Limits{Memory: 100_000}.orDefaults()
	require.NoError(t, err)
	require.Equal(t, uint32(1), got.pages(), "whole pages count")
}

func TestPrintable(t *testing.T) {
	for name, want := range map[string]string{
		"fd_write": "fd_write", "": `""`, "two words": `"two words"`, "a\x1b[31m": `"a\x1b[31m"`, "é": `"\u00e9"`, `"`: `"\""`,
	} {
		require.Equal(t, want, printable(name))
	}
	require.Less(t, len(printable(string(make([]byte, 1<<20)))), 1000)
}

// Whatever stops a guest has a reason, and text that is safe to log.
func TestCausesAreBounded(t *testing.T) {
	c := (&Module{logger: slog.New(slog.DiscardHandler), limits: DefaultLimits()}).newCall(nil)
	f := c.failed(nil, &Fault{Err: errors.New("a\xff" + string(make([]byte, 1<<20)))})
	require.Equal(t, abi.ReasonTrap, f.reason)
	require.Less(t, len(f.cause.Error()), 3*maxCause)
	require.Contains(t, f.cause.Error(), "a\uFFFD")
}

func FuzzReadDescriptors(f *testing.F) {
	f.Add([]byte(`{"interceptors":[{"name":"guard","type":"validation","hooks":[{"events":["tools/call"],"phase":"request"}]}]}`))
	f.Add([]byte(`{"interceptors":[]}`))
	f.Add([]byte(`{"interceptors":[{}],"nextCursor":""}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := readDescriptors(b)
		if err != nil {
			require.Empty(t, list)
			return
		}
		require.NotEmpty(t, list)
		require.Len(t, interceptorsByName(list), len(list))
	})
}

// Whatever is accepted of a mutated module can be rewritten, and what comes of
// it is accepted too.
func FuzzRewrite(f *testing.F) {
	f.Add(wt.Allowing("guard"))
	r := wt.NewReactor(wt.Validator("guard"))
	r.Table(1, 5)
	r.Table(1, 7)
	r.Custom("name", []byte("x"))
	r.Invoke("", r.Answer(`{}`))
	f.Add(r.Bytes())
	limits := DefaultLimits()
	f.Fuzz(func(t *testing.T, wasm []byte) {
		m, err := parse(wasm)
		if err != nil {
			return
		}
		if _, err := check(m, "guest.wasm", limits, Granted()); err != nil {
			return
		}
		rewritten, err := rewrite(m, limits)
		if err != nil {
			return // reserved names, or too much work
		}
		_, err = meter.Parse(rewritten.Binary)
		require.NoError(t, err)
		require.LessOrEqual(t, rewritten.Memory.Max, limits.pages())
	})
}
