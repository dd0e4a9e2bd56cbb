package wazero

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/internal/need"
	wt "github.com/weir-mcp/weir/internal/wasmtest"
	"github.com/weir-mcp/weir/runtime"
)

// newKeeper makes an engine that keeps code, where that is possible.
func newKeeper(t *testing.T, o Options) *Engine {
	t.Helper()
	if o.ScratchDir == "" {
		o.ScratchDir = filepath.Join(t.TempDir(), "scratch")
	}
	e := newEngine(t, o)
	if e.interprets {
		need.Missing(t, "wazero's compiler", "run it on amd64 or arm64: the interpreter has nothing to keep")
	}
	require.NotEmpty(t, e.CodeKey())
	return e
}

// result is what "do" gives for 40 and 2.
func result(t *testing.T, code runtime.Code) uint32 {
	t.Helper()
	i, err := code.Instantiate(ctx, runtime.Room{Pages: 1})
	require.NoError(t, err)
	got, err := i.Call(ctx, "do", 40, 2)
	require.NoError(t, err)
	require.NoError(t, i.Close(ctx))
	require.NoError(t, code.Close(ctx))
	return uint32(got)
}

func doing(op []byte) []byte {
	m := &wt.Module{}
	m.Memory(1)
	m.Export("do", m.Func("ii:i", "", wt.Get(0), wt.Get(1), op))
	return m.Bytes()
}

// What is kept is what runs, in another engine too. That it is not compiled anew
// shows when it is exchanged for another module's, which is why what is kept
// must be authentic.
func TestKeptCodeRuns(t *testing.T) {
	add, sub := doing(wt.I32Add), doing(wt.I32Sub)
	first := newKeeper(t, Options{})
	kept := map[string][]byte{}
	for name, wasm := range map[string][]byte{"add": add, "sub": sub} {
		code, b, err := first.CompileToKeep(ctx, wasm)
		require.NoError(t, err)
		require.NotEmpty(t, b)
		kept[name] = b
		require.Equal(t, map[string]uint32{"add": 42, "sub": 38}[name], result(t, code))
	}
	for _, e := range []*Engine{first, newKeeper(t, Options{})} {
		require.Equal(t, first.CodeKey(), e.CodeKey())
		code, err := e.CompileKept(ctx, add, kept["add"])
		require.NoError(t, err)
		require.Equal(t, uint32(42), result(t, code))
	}

	name, _, _ := bytes.Cut(kept["add"], []byte{0})
	_, file, _ := bytes.Cut(kept["sub"], []byte{0})
	forged := bytes.Join([][]byte{name, file}, []byte{0})
	code, err := newKeeper(t, Options{}).CompileKept(ctx, add, forged)
	require.NoError(t, err)
	require.Equal(t, uint32(38), result(t, code))
}

// What is kept by another wazero, or on another processor, has another name and
// is compiled anew.
func TestKeptUnderAnotherName(t *testing.T) {
	e := newKeeper(t, Options{})
	code, err := e.CompileKept(ctx, doing(wt.I32Add), []byte("0123\x00not looked at"))
	require.NoError(t, err)
	require.Equal(t, uint32(42), result(t, code))
}

func TestKeptIsNoPath(t *testing.T) {
	e := newKeeper(t, Options{})
	for _, kept := range []string{"", "no name", "\x00x", "../up\x00x", "/abs\x00x", "a/b\x00x", ".\x00x", "..\x00x"} {
		_, err := e.CompileKept(ctx, doing(wt.I32Add), []byte(kept))
		require.ErrorContains(t, err, "not what this engine keeps", "%q", kept)
	}
}

func TestEnginesThatKeepNothing(t *testing.T) {
	for _, o := range []Options{{}, {Interpreter: true, ScratchDir: filepath.Join(t.TempDir(), "scratch")}} {
		e := newEngine(t, o)
		require.Empty(t, e.CodeKey())
		code, kept, err := e.CompileToKeep(ctx, doing(wt.I32Add))
		require.NoError(t, err)
		require.Nil(t, kept)
		require.Equal(t, uint32(42), result(t, code))
		_, err = e.CompileKept(ctx, doing(wt.I32Add), []byte("a\x00b"))
		require.Error(t, err)
		require.NoDirExists(t, o.ScratchDir)
	}
}

func TestCodeKey(t *testing.T) {
	require.Regexp(t, `^v1\.`, version())
	for file, want := range map[string]string{
		"/go/pkg/mod/github.com/tetratelabs/wazero@v1.12.0/cache.go": "v1.12.0",
		"github.com/tetratelabs/wazero@v1.12.0/cache.go":             "v1.12.0", // -trimpath
		"/src/vendor/github.com/tetratelabs/wazero/cache.go":         "",
		"/src/wazero/cache.go":                                       "", "": "",
	} {
		require.Equal(t, want, versionIn(file), file)
	}
	require.NotEqual(t, codeKey("v1.12.0"), codeKey("v1.12.1"))
	require.Empty(t, codeKey(""), "no version, no key")
}

// A scratch folder that cannot be used is one warning, and all works.
func TestScratchFoldersThatCannotBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	open := filepath.Join(t.TempDir(), "open")
	require.NoError(t, os.Mkdir(open, 0o700))
	require.NoError(t, os.Chmod(open, 0o777))
	for _, dir := range []string{file, filepath.Join(file, "below"), open} {
		var log bytes.Buffer
		e := newKeeper(t, Options{ScratchDir: dir, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		for range 2 {
			code, kept, err := e.CompileToKeep(ctx, doing(wt.I32Add))
			require.NoError(t, err)
			require.Nil(t, kept)
			require.Equal(t, uint32(42), result(t, code))
		}
		_, err := e.CompileKept(ctx, doing(wt.I32Add), []byte("a\x00b"))
		require.Error(t, err)
		require.Equal(t, 1, bytes.Count(log.Bytes(), []byte("\n")), log.String())
		require.Contains(t, log.String(), "code cannot be kept")
	}
}

// One that goes while the engine uses it is the same.
func TestAScratchFolderThatGoes(t *testing.T) {
	var log bytes.Buffer
	dir := filepath.Join(t.TempDir(), "scratch")
	e := newKeeper(t, Options{ScratchDir: dir, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	_, kept, err := e.CompileToKeep(ctx, doing(wt.I32Add))
	require.NoError(t, err)
	require.NotNil(t, kept)
	require.NoError(t, os.RemoveAll(dir))
	code, kept, err := e.CompileToKeep(ctx, doing(wt.I32Sub))
	require.NoError(t, err)
	require.Nil(t, kept)
	require.Equal(t, uint32(38), result(t, code))
	require.Contains(t, log.String(), "code cannot be kept")
}

// Nothing is left of an engine, nor of one whose process has died.
func TestTheScratchFolderIsLeftEmpty(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "scratch")
	dead := filepath.Join(dir, stagePrefix+"dead")
	require.NoError(t, os.MkdirAll(filepath.Join(dead, "wazero-v0"), 0o700))
	stages := func() int {
		found, err := filepath.Glob(filepath.Join(dir, stagePrefix+"*"))
		require.NoError(t, err)
		return len(found)
	}
	var engines []*Engine
	for n := range 3 {
		e, err := New(Options{ScratchDir: dir})
		require.NoError(t, err)
		if e.interprets {
			need.Missing(t, "wazero's compiler", "run it on amd64 or arm64: the interpreter has nothing to keep")
		}
		engines = append(engines, e)
		code, _, err := e.CompileToKeep(ctx, doing(wt.I32Add))
		require.NoError(t, err)
		require.Equal(t, uint32(42), result(t, code))
		require.Equal(t, n+1, stages(), "those of the living stay")
		files, err := os.ReadDir(e.stage.files)
		require.NoError(t, err)
		require.Empty(t, files, "code is there only while it is read")
	}
	for _, e := range engines {
		require.NoError(t, e.Close(ctx))
	}
	require.Zero(t, stages())
}

// Modules with the same code, which have the same file, and others, at once.
func TestHammerOfKeptCode(t *testing.T) {
	first := newKeeper(t, Options{})
	ops := map[uint32][]byte{42: wt.I32Add, 38: wt.I32Sub}
	kept := map[uint32][]byte{}
	for want, op := range ops {
		_, b, err := first.CompileToKeep(ctx, doing(op))
		require.NoError(t, err)
		kept[want] = b
	}
	e := newKeeper(t, Options{})
	var wg sync.WaitGroup
	for want, op := range ops {
		for range 4 {
			wg.Go(func() {
				for n := range 15 {
					code, err := e.CompileKept(ctx, doing(op), kept[want])
					if n%5 == 0 && err == nil {
						_ = code.Close(ctx)
						code, _, err = e.CompileToKeep(ctx, doing(op))
					}
					if err != nil {
						t.Error(err)
						return
					}
					if got := result(t, code); got != want {
						t.Errorf("%d, not %d", got, want)
					}
				}
			})
		}
	}
	wg.Wait()
}
