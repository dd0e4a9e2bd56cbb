package runtime_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	wt "github.com/weir-mcp/weir/internal/wasmtest"
	"github.com/weir-mcp/weir/runtime"
	"github.com/weir-mcp/weir/runtime/memory"
)

// seeded is a module that draws a seed when it is loaded, like a Go guest for
// its maps, and answers with it. It has so many pages.
func seeded(pages uint32) []byte {
	const drawn, answer, letters = 512, 8192, 16
	r := wt.NewReactorWith(func(m *wt.Module) {
		m.Import("wasi_snapshot_preview1", "random_get", "ii:i")
	}, wt.Validator("guard"))
	r.Memory(pages)
	const before, after = `{"result":{"valid":true,"info":{"seed":"`, `"}}}`
	r.Data(answer, []byte(before+"................"+after))
	body := wt.Seq(wt.I32(drawn), wt.I32(letters), wt.Call(3), wt.Drop)
	for i := range uint32(letters) { // each byte to one of 16 letters
		body = append(body, wt.Seq(wt.I32(0),
			wt.I32(0), wt.Load8(drawn+i), wt.I32(15), []byte{0x71}, wt.I32('a'), wt.I32Add,
			wt.Store8(answer+uint32(len(before))+i))...)
	}
	r.Export(abi.ExportInitialize, r.Func("", "", body))
	r.Invoke("", wt.I32(answer), wt.I32(int32(len(before)+letters+len(after))), wt.Call(r.Output), wt.I32(0))
	return r.Bytes()
}

// seed calls the module and returns its seed.
func seed(t *testing.T, m *runtime.Module) string {
	t.Helper()
	result, err := invoke(m, `{}`)
	require.NoError(t, err)
	require.Len(t, result.Info, len(`{"seed":"0123456789abcdef"}`))
	return string(result.Info)
}

// What was random in the state that calls start from does not repeat for ever:
// after an hour the state is captured again, from a new instance, beside the
// calls.
func TestTheStateIsCapturedAgain(t *testing.T) {
	for _, way := range []memory.Way{memory.Auto, memory.FullCopy} {
		t.Run(way.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRuntime(t, on{reset: way})
				m := load(t, r, seeded(4))
				<-m.Settled()
				used, _ := r.Memory()
				first, reset := seed(t, m), m.Reset()
				require.Contains(t, []string{memory.PageScan.String(), memory.FullCopy.String()}, reset)
				time.Sleep(44 * time.Minute)
				require.Equal(t, first, seed(t, m))
				synctest.Wait()
				require.Equal(t, first, seed(t, m), "it repeats: that is what the renewal is for")

				seen := map[string]bool{first: true}
				for range 3 {
					time.Sleep(time.Hour)
					last := seed(t, m)
					require.True(t, seen[last], "the call after which it is due does not wait for it")
					synctest.Wait()
					next := seed(t, m)
					require.False(t, seen[next])
					require.Equal(t, next, seed(t, m))
					seen[next] = true
					now, _ := r.Memory()
					require.Equal(t, used, now, "the old state is freed")
					require.Equal(t, reset, m.Reset())
				}
			})
		})
	}
}

// Modules that nobody calls are left alone.
func TestTheStateOfAnIdleModuleStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logs logBuffer
		m := load(t, newRuntime(t, on{}), seeded(4), logged(&logs))
		<-m.Settled()
		time.Sleep(1000 * time.Hour)
		synctest.Wait()
		require.Empty(t, logs.records(t))
		first := seed(t, m)
		synctest.Wait()
		require.NotEqual(t, first, seed(t, m))
		require.Len(t, logs.records(t), 1)
		require.Equal(t, "DEBUG", logs.records(t)[0]["level"])
	})
}

// A module whose state cannot be captured for want of memory serves on fresh
// instances, and its state is captured once there is room.
func TestAStateIsCapturedOnceThereIsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newEngine(t, on{})
		r := runtime.New(engine, runtime.WithMemory(4<<20), runtime.WithLogger(slog.New(slog.DiscardHandler)))
		defer func() { require.NoError(t, r.Close(context.Background())) }()
		tenant := load(t, r, wt.Allowing("guard"))
		<-tenant.Settled()
		var logs logBuffer
		// One instance of 40 of the 64 pages fits, an image of it does not.
		m := load(t, r, seeded(40), logged(&logs))
		<-m.Settled()
		require.Contains(t, m.Reset(), "fresh instance per call: its state could not be captured yet: there is no room for more memory")
		require.NotEqual(t, seed(t, m), seed(t, m), "each call has a fresh instance")

		// Each time it is tried again, it is after twice as long.
		tries := func() (n int) {
			for _, record := range logs.records(t) {
				if record["level"] == "WARN" {
					n++
				}
			}
			return n
		}
		require.Equal(t, 1, tries())
		for n, pause := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute} {
			time.Sleep(pause - time.Second)
			seed(t, m)
			synctest.Wait()
			require.Equal(t, n+1, tries())
			time.Sleep(time.Second)
			seed(t, m)
			synctest.Wait()
			require.Equal(t, n+2, tries())
		}
		require.Equal(t, float64(8*time.Minute), logs.records(t)[3]["tryAgainIn"])
		require.NotEqual(t, seed(t, m), seed(t, m))
	})
}

// The same, with room in the end; and a state that cannot be captured again
// serves on.
func TestAStateThatCannotBeCapturedAgainServesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newEngine(t, on{})
		r := runtime.New(engine, runtime.WithMemory(4<<20), runtime.WithLogger(slog.New(slog.DiscardHandler)))
		defer func() { require.NoError(t, r.Close(context.Background())) }()
		tenant := load(t, r, seeded(10)) // with its image: 20 of 64 pages
		<-tenant.Settled()
		m := load(t, r, seeded(28))
		<-m.Settled()
		require.Contains(t, m.Reset(), "could not be captured yet")
		require.NoError(t, tenant.Close(context.Background()))
		time.Sleep(time.Minute)
		seed(t, m)
		synctest.Wait()
		require.Equal(t, memory.Best().String(), m.Reset())
		first := seed(t, m)
		require.Equal(t, first, seed(t, m))

		// Two states at once do not fit, with an instance of each.
		time.Sleep(time.Hour)
		seed(t, m)
		synctest.Wait()
		require.Equal(t, first, seed(t, m))
		require.Equal(t, memory.Best().String(), m.Reset())
	})
}

// A module is closed while its state is captured again, and before it is its
// turn.
func TestCloseWhileTheStateIsCapturedAgain(t *testing.T) {
	noLeaks(t)
	r := newRuntime(t, on{})
	m := settled(t, load(t, r, stages(abi.ExportWarmup, endless)))
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() { runtime.Renew(m) })
	}
	requireWorks(t, m, `{}`)
	require.NoError(t, m.Close(context.Background()))
	wg.Wait()
	used, _ := r.Memory()
	require.Zero(t, used)
}

// States are captured again while calls run and instances are made: every call
// has one state, whole.
func TestHammerOfNewStates(t *testing.T) {
	noLeaks(t)
	for name, o := range ways() {
		if o.reset == memory.Fresh {
			continue
		}
		t.Run(name, func(t *testing.T) {
			r := newRuntime(t, o)
			m := settled(t, load(t, r, hider(nowhereElse)))
			var callers, renewing sync.WaitGroup
			done := make(chan struct{})
			for range 2 {
				renewing.Go(func() {
					for {
						select {
						case <-done:
							return
						default:
							runtime.Renew(m)
						}
					}
				})
			}
			for g := range 4 {
				callers.Go(func() {
					for i := range calls(100, 20_000) {
						payload, reason := `"fine"`, abi.Reason("")
						if (i+g)%8 == 0 {
							payload, reason = `"y"`, abi.ReasonTrap
						}
						_, err := invoke(m, payload)
						if e := abi.AsError(err, "", ""); e == nil && reason != "" || e != nil && e.Reason != reason {
							t.Errorf("call %d: %v", i, err)
							return
						}
					}
				})
			}
			callers.Wait()
			close(done)
			renewing.Wait()
			require.Equal(t, o.reset.String(), m.Reset())
			require.NoError(t, m.Close(context.Background()))
			used, _ := r.Memory()
			require.Zero(t, used)
		})
	}
}
