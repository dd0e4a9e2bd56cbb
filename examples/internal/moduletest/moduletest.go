// Package moduletest tests an example module: its golden cases natively and in
// the sandbox, which must come to the same end, and its manual page.
//
// A module's test calls [Run] and needs nothing else; package examples checks
// that every module has one. Every module may use the store (abi.md, grant kv),
// and finds it empty in every case and example. It is for tests only.
package moduletest

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/guest/guesttest"
	"github.com/weir-mcp/weir/internal/guestbuild"
	"github.com/weir-mcp/weir/runtime"
	"github.com/weir-mcp/weir/runtime/cache"
	"github.com/weir-mcp/weir/runtime/library"
	"github.com/weir-mcp/weir/runtime/store"
	"github.com/weir-mcp/weir/runtime/wazero"
)

// patience bounds builds and loads on a machine that is busy with other things.
const patience = 4 * time.Minute

// Run tests the module in the working directory, which is the test's own.
func Run(t *testing.T) {
	t.Run("native", func(t *testing.T) {
		guesttest.CaptureLog(t)
		guesttest.Golden(t, "testdata")
	})
	dir, err := os.Getwd()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	wasm, err := guestbuild.Go(ctx, dir)
	require.NoError(t, err)
	s := openFile(t, wasm)
	t.Run("sandbox", func(t *testing.T) { sameInBoth(t, s) })
	t.Run("README", func(t *testing.T) { ManualPage(t, s.Invoke, s.log.take) })
}

// Sandbox is a set of modules in the sandbox, with what they have logged.
type Sandbox struct {
	*library.Library
	log *lines
}

// newSandbox makes a sandbox whose compile cache the tests of all modules share,
// so that a module that has not changed is compiled once.
func newSandbox(t *testing.T) (*Sandbox, library.Options) {
	t.Helper()
	log := &lines{}
	logger := slog.New(log)
	engineOptions := wazero.Options{Logger: logger}
	options := []runtime.Option{runtime.WithLogger(logger)}
	if user, err := os.UserCacheDir(); err == nil {
		dir := filepath.Join(user, "weir-tests")
		// A home that cannot be written to: compile each time.
		if c, err := cache.Open(cache.Options{Dir: filepath.Join(dir, "code"), Logger: logger}); err == nil {
			engineOptions.ScratchDir = filepath.Join(dir, "scratch")
			options = append(options, runtime.WithCache(c))
		}
	}
	engine, err := wazero.New(engineOptions)
	require.NoError(t, err)
	rt := runtime.New(engine, options...)
	t.Cleanup(func() { require.NoError(t, rt.Close(context.Background())) })
	// The wall time is for a machine that does nothing else; a test's has other
	// tests to run.
	kv := &runtime.KV{Store: store.NewMemory(store.Limits{}), Host: "examples"}
	loader := library.Sandbox(rt, func(string) runtime.ModuleOptions {
		return runtime.ModuleOptions{
			Limits: runtime.Limits{CallTime: time.Minute, LoadTime: time.Minute}, Grants: runtime.Grants{KV: kv},
		}
	})
	return &Sandbox{log: log}, library.Options{Loader: loader, FirstLoad: patience}
}

// Invoke calls an interceptor for a caller that has not called before, unless the
// context of the invocation names one.
func (s *Sandbox) Invoke(ctx context.Context, inv abi.Invocation) (abi.Result, error) {
	inv.Connection = rand.Text()
	return s.Library.Invoke(ctx, inv)
}

func openFile(t *testing.T, wasm string) *Sandbox {
	t.Helper()
	s, o := newSandbox(t)
	lib, err := library.OpenFile(t.Context(), wasm, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, lib.Close(context.Background())) })
	s.Library = lib
	return s
}

// OpenFolder loads all modules of a folder.
func OpenFolder(t *testing.T, dir string) *Sandbox {
	t.Helper()
	s, o := newSandbox(t)
	lib, err := library.OpenFolder(t.Context(), dir, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, lib.Close(context.Background())) })
	require.NoError(t, lib.Ready(t.Context()))
	for _, f := range lib.Status() {
		require.NoError(t, f.Err, f.Name)
	}
	s.Library = lib
	return s
}

// sameInBoth runs each golden case natively and in the sandbox.
func sameInBoth(t *testing.T, s *Sandbox) {
	cases, err := guesttest.ReadCases("testdata")
	require.NoError(t, err)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			inv, err := c.Invocation()
			require.NoError(t, err)
			log := guesttest.CaptureLog(t)
			guesttest.KV(t)
			native, nativeErr := guesttest.Call(inv)
			s.log.take()
			sandboxed, err := s.Invoke(t.Context(), inv)
			require.NoError(t, c.Check(sandboxed, err))
			require.Equal(t, nativeErr != nil, err != nil, "native: %v; sandbox: %v", nativeErr, err)
			if said, ok := errors.AsType[*abi.GuestError](err); ok {
				require.Equal(t, nativeErr.Error(), said.Error())
			}
			if err != nil {
				return
			}
			require.Equal(t, spelled(native, &inv), spelled(sandboxed, &inv))
			require.Equal(t, log.Lines(), s.log.take())
		})
	}
}

// spelled is a result but for its duration. A host gives back the input where a
// mutation left the payload out.
func spelled(r abi.Result, inv *abi.Invocation) string {
	r.DurationMs = nil
	if r.Type == abi.Mutation && !r.Modified {
		r.Payload = inv.Payload
	}
	return string(r.AppendJSON(nil))
}

// lines is a log handler that keeps what modules log.
type lines struct {
	mu   sync.Mutex
	kept []string
}

func (l *lines) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := l.kept
	l.kept = nil
	return kept
}

// Enabled implements slog.Handler.
func (l *lines) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (l *lines) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	level := map[slog.Level]string{slog.LevelDebug: "debug", slog.LevelInfo: "info", slog.LevelWarn: "warn", slog.LevelError: "error"}[r.Level]
	l.kept = append(l.kept, level+": "+r.Message)
	return nil
}

// WithAttrs implements slog.Handler.
func (l *lines) WithAttrs([]slog.Attr) slog.Handler { return l }

// WithGroup implements slog.Handler.
func (l *lines) WithGroup(string) slog.Handler { return l }
