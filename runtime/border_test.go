package runtime_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	wt "github.com/weir-mcp/weir/internal/wasmtest"
	"github.com/weir-mcp/weir/runtime"
	"github.com/weir-mcp/weir/runtime/memory"
)

// broken is an engine that panics in one method, once it is armed.
type broken struct {
	runtime.Engine
	method string
	armed  atomic.Bool
	fired  atomic.Int64
}

func (b *broken) in(method string) {
	if b.armed.Load() && b.method == method {
		b.fired.Add(1)
		panic("boom\nin " + method)
	}
}

func (b *broken) Name() string      { b.in("Engine.Name"); return b.Engine.Name() }
func (b *broken) Reset() memory.Way { b.in("Engine.Reset"); return b.Engine.Reset() }
func (b *broken) Close(ctx context.Context) error {
	err := b.Engine.Close(ctx)
	b.in("Engine.Close")
	return err
}

func (b *broken) Compile(ctx context.Context, wasm []byte) (runtime.Code, error) {
	b.in("Engine.Compile")
	code, err := b.Engine.Compile(ctx, wasm)
	return brokenCode{code, b}, err
}

// A broken engine keeps code, too, and has nothing to keep.
func (b *broken) CodeKey() string { b.in("Keeper.CodeKey"); return "broken" }

func (b *broken) CompileToKeep(ctx context.Context, wasm []byte) (runtime.Code, []byte, error) {
	b.in("Keeper.CompileToKeep")
	code, err := b.Compile(ctx, wasm)
	return code, []byte("kept"), err
}

func (b *broken) CompileKept(ctx context.Context, wasm, _ []byte) (runtime.Code, error) {
	b.in("Keeper.CompileKept")
	return b.Compile(ctx, wasm)
}

type brokenCode struct {
	runtime.Code
	b *broken
}

func (c brokenCode) Close(ctx context.Context) error {
	err := c.Code.Close(ctx)
	c.b.in("Code.Close")
	return err
}

func (c brokenCode) Instantiate(ctx context.Context, room runtime.Room) (runtime.Instance, error) {
	c.b.in("Code.Instantiate")
	if i, ok := room.Image.(brokenImage); ok {
		room.Image = i.Image
	}
	i, err := c.Code.Instantiate(ctx, room)
	return brokenInstance{i, c.b}, err
}

type brokenInstance struct {
	runtime.Instance
	b *broken
}

func (i brokenInstance) Call(ctx context.Context, export string, args ...uint64) (uint64, error) {
	i.b.in("Instance.Call")
	return i.Instance.Call(ctx, export, args...)
}

func (i brokenInstance) Global(export string) runtime.Global {
	i.b.in("Instance.Global")
	g := i.Instance.Global(export)
	if g == nil {
		return nil
	}
	return brokenGlobal{g, i.b}
}

func (i brokenInstance) Capture() (runtime.Image, error) {
	i.b.in("Instance.Capture")
	image, err := i.Instance.Capture()
	return brokenImage{image, i.b}, err
}

func (i brokenInstance) Restore() error {
	i.b.in("Instance.Restore")
	return i.Instance.Restore()
}

func (i brokenInstance) Close(ctx context.Context) error {
	err := i.Instance.Close(ctx)
	i.b.in("Instance.Close")
	return err
}

type brokenGlobal struct {
	runtime.Global
	b *broken
}

func (g brokenGlobal) Get() uint64      { g.b.in("Global.Get"); return g.Global.Get() }
func (g brokenGlobal) Set(value uint64) { g.b.in("Global.Set"); g.Global.Set(value) }

type brokenImage struct {
	runtime.Image
	b *broken
}

func (i brokenImage) Free() { i.Image.Free(); i.b.in("Image.Free") }

// oneEntry is a cache of one entry, or of none.
type oneEntry struct {
	forgets bool
	parts   atomic.Pointer[[][]byte]
}

func (c *oneEntry) Get([32]byte) ([][]byte, bool) {
	if p := c.parts.Load(); p != nil && !c.forgets {
		return *p, true
	}
	return nil, false
}

func (c *oneEntry) Put(_ [32]byte, parts ...[]byte) { c.parts.Store(&parts) }

// A panic in any method of an engine ends one call, one load or one close, never
// the process; and once the engine is itself again everything works.
func TestPanicsOfAnEngineAreCaught(t *testing.T) {
	for _, method := range []string{
		"Engine.Name", "Engine.Reset", "Engine.Close", "Engine.Compile",
		"Keeper.CodeKey", "Keeper.CompileToKeep", "Keeper.CompileKept",
		"Code.Close", "Code.Instantiate",
		"Instance.Call", "Instance.Global", "Instance.Capture", "Instance.Restore", "Instance.Close",
		"Global.Get", "Global.Set", "Image.Free",
	} {
		t.Run(method, func(t *testing.T) {
			noLeaks(t)
			b := &broken{Engine: newEngine(t, on{}), method: method}
			r := runtime.New(b, runtime.WithLogger(slog.New(slog.DiscardHandler)),
				runtime.WithCache(&oneEntry{forgets: method == "Keeper.CompileToKeep"}))
			wasm := guard(func(*wt.Reactor) []byte { return wt.Unreachable }, func(m *wt.Module) { m.GlobalOf(wt.I32(1)) })
			m := settled(t, load(t, r, wasm))
			requireWorks(t, m, `"fine"`)

			b.armed.Store(true)
			_ = r.Engine()
			for range 2 {
				if other, err := tryLoad(r, wasm); err == nil {
					settled(t, other)
					_, _ = invoke(other, `"fine"`)
					_ = other.Close(context.Background())
				} else {
					require.ErrorContains(t, err, "guest.wasm: ")
					require.NotContains(t, err.Error(), "\n")
				}
				// A trap among them, which costs the instance; and several at
				// once need several.
				for _, payload := range []string{`"fine"`, misbehave, `"fine"`, `"fine"`} {
					if _, err := invoke(m, payload); err != nil {
						e := requireReason(t, abi.ReasonTrap, err)
						require.NotContains(t, e.Message(), "boom")
					}
				}
			}
			b.armed.Store(false)
			requireWorks(t, m, `"fine"`)
			requireWorks(t, settled(t, load(t, r, wasm)), `"fine"`)

			b.armed.Store(true)
			err := r.Close(context.Background())
			if method == "Engine.Close" || method == "Code.Close" {
				require.ErrorContains(t, err, "the engine panicked: boom")
			} else {
				require.NoError(t, err)
			}
			b.armed.Store(false)
			require.NoError(t, r.Close(context.Background()))
			require.Positive(t, b.fired.Load(), "the method was not called")
			used, _ := r.Memory()
			require.Zero(t, used)
		})
	}
}
