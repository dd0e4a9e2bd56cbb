package runtime_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/internal/guestbuild"
	wt "github.com/weir-mcp/weir/internal/wasmtest"
	"github.com/weir-mcp/weir/runtime"
)

// keptIn are the entries of a cache.
func keptIn(t testing.TB, dir string) (files []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "????????????????????????????????????????????????????????????????"))
	require.NoError(t, err)
	return files
}

// compiles says whether an engine compiles, and thus has something to keep.
func compiles(r *runtime.Runtime) bool { return !strings.Contains(r.Engine(), "interpreter") }

// A module that comes from the cache is the module: reactor or command,
// restorable or not; and is made anew where its entry is damaged.
func TestModulesFromTheCache(t *testing.T) {
	for _, engine := range engineNames() {
		t.Run(engine, func(t *testing.T) { modulesFromTheCache(t, engine) })
	}
}

func modulesFromTheCache(t *testing.T, engine string) {
	dir := filepath.Join(t.TempDir(), "cache")
	modules := map[string][]byte{
		"small": scanner(), "fresh": hider(inTables), "restored": hider(nowhereElse),
	}
	use := func() {
		r := newRuntime(t, on{engine: engine, cacheDir: dir})
		for name, wasm := range modules {
			m := load(t, r, wasm)
			plain := load(t, newRuntime(t, on{engine: engine}), wasm)
			require.Equal(t, plain.Digest(), m.Digest(), name)
			require.Equal(t, plain.Reset(), m.Reset(), name)
			require.Equal(t, plain.Descriptors(), m.Descriptors(), name)
			for range 3 {
				want, wantErr := invoke(plain, `{"name":"fine"}`)
				got, err := invoke(m, `{"name":"fine"}`)
				require.Equal(t, wantErr == nil, err == nil, name)
				if err == nil {
					require.Equal(t, string(want.Info), string(got.Info), name)
				}
			}
		}
	}
	use()
	files := keptIn(t, dir)
	if !compiles(newRuntime(t, on{engine: engine})) {
		require.Empty(t, files)
		return
	}
	require.Len(t, files, len(modules))
	use()
	require.Equal(t, files, keptIn(t, dir), "the second process finds them")

	whole := map[string][]byte{}
	for _, file := range files {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		whole[file] = bytes.Clone(b)
		b[len(b)/2] ^= 1
		require.NoError(t, os.WriteFile(file, b, 0o600))
	}
	use()
	for file, b := range whole {
		again, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, b, again, "made anew, and the same")
	}
}

func TestWithoutACacheNothingIsKept(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CACHE_HOME", filepath.Join(home, "cache"))
	load(t, newRuntime(t, on{}), scanner())
	left, err := os.ReadDir(home)
	require.NoError(t, err)
	require.Empty(t, left)
}

const childDir = "WEIR_RUNTIME_TEST_DIR"

// Two processes that load the same modules at once both work, and one entry of
// each module stays.
func TestProcessesShareTheCache(t *testing.T) {
	if dir := os.Getenv(childDir); dir != "" {
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // both start at once
		r := newRuntime(t, on{cacheDir: dir})
		for n := range 10 {
			m := load(t, r, numbered(n))
			_, err := invoke(m, `{"name":"fine"}`)
			require.NoError(t, err)
		}
		return
	}
	dir := filepath.Join(t.TempDir(), "cache")
	want := 0
	if compiles(newRuntime(t, on{})) {
		want = 10
	}
	type process struct {
		*exec.Cmd
		stdin io.Writer
		out   *bytes.Buffer
	}
	var both []process
	for range 2 {
		p := process{exec.Command(os.Args[0], "-test.run=^TestProcessesShareTheCache$", "-engine="+*engineFlag), nil, &bytes.Buffer{}}
		p.Env = append(os.Environ(), childDir+"="+dir)
		p.Stdout, p.Stderr = p.out, p.out
		stdin, err := p.StdinPipe()
		require.NoError(t, err)
		p.stdin = stdin
		require.NoError(t, p.Start())
		both = append(both, p)
	}
	for _, p := range both {
		fmt.Fprintln(p.stdin)
	}
	for _, p := range both {
		require.NoError(t, p.Wait(), p.out)
	}
	require.Len(t, keptIn(t, dir), want)
}

// numbered is one of many small modules.
func numbered(n int) []byte {
	return guard(func(r *wt.Reactor) []byte { return wt.Seq(wt.I32(int32(n)), wt.Drop) })
}

// BenchmarkLoad is how long loads take until the modules serve, one after the
// other, in an engine and a runtime that are new: with an empty cache, and with
// one that has them.
func BenchmarkLoad(b *testing.B) {
	goGuest, err := guestbuild.Bytes(context.Background(), "./testdata/faults")
	require.NoError(b, err)
	var small [][]byte
	for n := range 100 {
		small = append(small, numbered(n))
	}
	for _, set := range []struct {
		name    string
		modules [][]byte
	}{{"Go/" + strconv.Itoa(len(goGuest)>>10) + "KB", [][]byte{goGuest}}, {"100 small", small}} {
		run := func(b *testing.B, dir func() string) {
			var cpu time.Duration // of the loads alone
			for b.Loop() {
				b.StopTimer()
				r := newRuntime(b, on{cacheDir: dir()})
				before := cpuTime()
				b.StartTimer()
				for _, wasm := range set.modules {
					load(b, r, wasm)
				}
				b.StopTimer()
				cpu += cpuTime() - before
				require.NoError(b, r.Close(context.Background()))
				b.StartTimer()
			}
			b.ReportMetric(float64(cpu.Milliseconds())/float64(b.N), "cpu-ms/op")
		}
		b.Run(set.name+"/cold", func(b *testing.B) {
			run(b, func() string { return filepath.Join(b.TempDir(), "cache") })
		})
		b.Run(set.name+"/cached", func(b *testing.B) {
			dir := filepath.Join(b.TempDir(), "cache")
			r := newRuntime(b, on{cacheDir: dir})
			for _, wasm := range set.modules {
				load(b, r, wasm)
			}
			run(b, func() string { return dir })
		})
	}
}
