package guestbuild

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// clone is a small module with our path, and a builder with a cache of its own
// in front of it.
type clone struct {
	*builder
	t        *testing.T
	compiles atomic.Int32
}

func newClone(t *testing.T) *clone {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	c := &clone{t: t}
	c.builder = &builder{
		dir: root, root: root, env: childEnv(os.Environ()),
		cache:    cache{dir: t.TempDir(), max: MaxCacheBytes, now: time.Now},
		compiled: func() { c.compiles.Add(1) },
	}
	c.write("go.mod", "module "+Module+"\n\ngo 1.26.0\n")
	c.write("hello/main.go", "package main\n\nimport \""+Module+"/word\"\n\n//go:wasmexport word\nfunc get() int32 { return word.Word }\n\nfunc main() {}\n")
	c.write("hello/main_test.go", "package main\n")
	c.write("hello/other_windows.go", "package main\n")
	c.write("word/word.go", "package word\n\nconst Word = 1\n")
	c.write("unused/unused.go", "package unused\n")
	return c
}

func (c *clone) write(name, text string) {
	c.t.Helper()
	file := filepath.Join(c.root, filepath.FromSlash(name))
	require.NoError(c.t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(c.t, os.WriteFile(file, []byte(text), 0o644))
}

func (c *clone) mustBuild(pkg string) string {
	c.t.Helper()
	file, err := c.build(c.t.Context(), pkg)
	require.NoError(c.t, err)
	wasm, err := os.ReadFile(file)
	require.NoError(c.t, err)
	require.Equal(c.t, "\x00asm", string(wasm[:4]))
	return file
}

func TestBuildsOnceHoweverThePackageIsNamed(t *testing.T) {
	c := newClone(t)
	file := c.mustBuild(Module + "/hello")
	require.Equal(t, "hello.wasm", filepath.Base(file))
	require.Equal(t, file, c.mustBuild("./hello"))
	require.Equal(t, file, c.mustBuild(filepath.Join(c.root, "hello")))
	c.dir = filepath.Join(c.root, "hello")
	require.Equal(t, file, c.mustBuild("."))
	require.EqualValues(t, 1, c.compiles.Load())
}

func TestDigestCoversWhatTheCompilerReads(t *testing.T) {
	c := newClone(t)
	digest := func() string {
		d, err := c.digest(t.Context(), Module+"/hello")
		require.NoError(t, err)
		return d
	}
	first := digest()
	require.Equal(t, first, digest())

	for name, text := range map[string]string{
		"hello/main_test.go":     "package main\n\n// changed\n",
		"hello/other_windows.go": "package main\n\n// changed\n",
		"hello/README.md":        "new\n",
		"unused/unused.go":       "package unused\n\n// changed\n",
	} {
		c.write(name, text)
		require.Equal(t, first, digest(), "%s is not compiled", name)
	}

	seen := map[string]string{first: "the beginning"}
	for _, change := range []struct{ name, text string }{
		{"word/word.go", "package word\n\nconst Word = 2\n"},
		{"hello/more.go", "package main\n"},
		{"hello/more_wasm.go", "package main\n"},
		{"hello/embed.go", "package main\n\nimport _ \"embed\"\n\n//go:embed data.txt\nvar data string\n"},
		{"hello/data.txt", "two"},
		{"go.mod", "module " + Module + "\n\ngo 1.26.0\n\n// changed\n"},
		{"go.sum", "\n"},
	} {
		if change.name == "hello/embed.go" {
			c.write("hello/data.txt", "one")
		}
		c.write(change.name, change.text)
		d := digest()
		require.NotContains(t, seen, d, "%s was changed", change.name)
		seen[d] = change.name
	}

	c.env = append(c.env, "GOFLAGS=-modcacherw")
	require.NotContains(t, seen, digest())
}

func TestAChangedSourceIsBuiltAnew(t *testing.T) {
	c := newClone(t)
	one := c.mustBuild("./hello")
	c.write("word/word.go", "package word\n\nconst Word = 2\n")
	two := c.mustBuild("./hello")
	require.NotEqual(t, one, two)
	c.write("word/word.go", "package word\n\nconst Word = 1\n")
	require.Equal(t, one, c.mustBuild("./hello"))
	require.EqualValues(t, 2, c.compiles.Load())
}

func TestManyAtOnceBuildOnce(t *testing.T) {
	c := newClone(t)
	var wg sync.WaitGroup
	files := make([]string, 8)
	for i := range files {
		wg.Go(func() {
			file, err := c.build(t.Context(), "./hello")
			if err == nil {
				files[i] = file
			}
		})
	}
	wg.Wait()
	for _, f := range files {
		require.Equal(t, files[0], f)
		require.NotEmpty(t, f)
	}
	require.EqualValues(t, 1, c.compiles.Load())
}

// helperEnv makes of this test binary another process that builds.
const helperEnv = "GUESTBUILD_TEST_CLONE"

func TestMain(m *testing.M) {
	if spec := os.Getenv(helperEnv); spec != "" {
		root, cacheDir, _ := strings.Cut(spec, string(os.PathListSeparator))
		b := &builder{
			dir: root, root: root, env: childEnv(os.Environ()), cache: cache{dir: cacheDir, max: MaxCacheBytes, now: time.Now},
			compiled: func() { os.Stdout.WriteString("compiled\n") },
		}
		if _, err := b.build(context.Background(), "./hello"); err != nil {
			os.Stderr.WriteString(err.Error())
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func (c *clone) process() *exec.Cmd {
	exe, err := os.Executable()
	require.NoError(c.t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), helperEnv+"="+c.root+string(os.PathListSeparator)+c.cache.dir)
	return cmd
}

func TestManyProcessesBuildOnce(t *testing.T) {
	c := newClone(t)
	var wg sync.WaitGroup
	outputs, errs := make([]string, 3), make([]error, 3)
	for i := range outputs {
		cmd := c.process()
		wg.Go(func() {
			out, err := cmd.CombinedOutput()
			outputs[i], errs[i] = string(out), err
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	require.Equal(t, "compiled\n", strings.Join(outputs, ""))
	c.mustBuild("./hello")
	require.Zero(t, c.compiles.Load())
}

func TestALockDiesWithItsHolder(t *testing.T) {
	c := newClone(t)
	digest, err := c.digest(t.Context(), Module+"/hello")
	require.NoError(t, err)

	// A lock file that was left behind is no lock.
	unlock, err := c.cache.lock(t.Context(), digest)
	require.NoError(t, err)

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("asked to stop"))
	_, err = c.build(ctx, "./hello")
	require.ErrorContains(t, err, "asked to stop")

	// One that is held is, until its file is closed, which the system does for
	// a process that dies.
	waiting, cancelWait := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancelWait()
	_, err = c.cache.lock(waiting, digest)
	require.ErrorContains(t, err, "waiting for the lock")
	unlock()
	c.mustBuild("./hello")
	require.EqualValues(t, 1, c.compiles.Load())
}

func TestADamagedEntryIsBuiltAnew(t *testing.T) {
	c := newClone(t)
	file := c.mustBuild("./hello")
	for name, damage := range map[string]func() error{
		"cut":                   func() error { return os.Truncate(file, 100) },
		"one byte":              func() error { return flip(file) },
		"gone":                  func() error { return os.Remove(file) },
		"no sum":                func() error { return os.Remove(filepath.Join(filepath.Dir(file), sumFile)) },
		"another sum":           func() error { return flip(filepath.Join(filepath.Dir(file), sumFile)) },
		"a folder in its place": func() error { return errors.Join(os.Remove(file), os.Mkdir(file, 0o700)) },
		"a file for a folder": func() error {
			return errors.Join(os.RemoveAll(filepath.Dir(file)), os.WriteFile(filepath.Dir(file), nil, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := c.compiles.Load()
			require.NoError(t, damage())
			require.Equal(t, file, c.mustBuild("./hello"))
			require.Equal(t, before+1, c.compiles.Load())
		})
	}
}

func flip(file string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	b[len(b)/2] ^= 1
	return os.WriteFile(file, b, 0o600)
}

func TestWhatDoesNotCompileIsToldInTheCompilersWords(t *testing.T) {
	c := newClone(t)
	c.write("hello/main.go", "package main\n\nfunc main() { undefinedThing() }\n")
	_, err := c.build(t.Context(), "./hello")
	require.ErrorContains(t, err, "undefined: undefinedThing")
	require.ErrorContains(t, err, "main.go:3")
	entries, err := filepath.Glob(filepath.Join(c.cache.dir, "*"))
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(c.cache.dir, "locks")}, entries, "nothing half-built stays")

	_, err = c.build(t.Context(), "./word")
	require.ErrorContains(t, err, "requires exactly one main package")
	_, err = c.build(t.Context(), "./nowhere")
	require.ErrorContains(t, err, "nowhere")
}

func TestPackagesElsewhereAreRefused(t *testing.T) {
	c := newClone(t)
	for _, pkg := range []string{"fmt", "github.com/other/module", Module + "er", "..", filepath.Dir(c.root)} {
		_, err := c.build(t.Context(), pkg)
		require.Error(t, err, pkg)
		require.ErrorContains(t, err, Module)
	}
	require.Zero(t, c.compiles.Load())
}

func TestFindClone(t *testing.T) {
	c := newClone(t)
	c.write("nested/go.mod", "// a nested module\nmodule example.com/nested // of somebody else\n")
	c.write("nested/deep/x.go", "package x\n")
	root, err := findClone(filepath.Join(c.root, "nested", "deep"))
	require.NoError(t, err)
	require.Equal(t, c.root, root)
	_, err = findClone(t.TempDir())
	require.ErrorContains(t, err, "git clone https://"+Module)
}

func TestEviction(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c := cache{dir: t.TempDir(), max: 250, now: func() time.Time { return now }}
	put := func(digest string) {
		_, err := c.get(t.Context(), digest, "x.wasm", func(out string) error { return os.WriteFile(out, make([]byte, 36), 0o600) }) // 100 with its sum
		require.NoError(t, err)
		require.NoError(t, os.Chtimes(filepath.Join(c.dir, digest), now, now))
	}
	kept := func() (list []string) {
		entries, err := os.ReadDir(c.dir)
		require.NoError(t, err)
		for _, e := range entries {
			if e.Name() != "locks" {
				list = append(list, e.Name())
			}
		}
		return list
	}
	put("aaaa")
	now = now.Add(2 * time.Hour)
	put("bbbb")
	now = now.Add(2 * time.Hour)
	put("aaaa") // used again
	put("cccc")
	require.Equal(t, []string{"aaaa", "cccc"}, kept())
	put("dddd")
	require.Equal(t, []string{"aaaa", "cccc", "dddd"}, kept(), "what was used a moment ago stays")

	abandoned := filepath.Join(c.dir, "tmp-1")
	require.NoError(t, os.Mkdir(abandoned, 0o700))
	require.NoError(t, os.Chtimes(abandoned, now, now))
	now = now.Add(2 * time.Hour)
	put("eeee")
	require.Len(t, kept(), 2)
	require.NotContains(t, kept(), "tmp-1")
}

func TestChildEnvironment(t *testing.T) {
	env := childEnv([]string{"PATH=/bin", "GOOS=plan9", "GOARCH=386", "CGO_ENABLED=1", "GOWORK=x", "GO111MODULE=off", "GOFLAGS=-race --mod=mod -tags=x -modcacherw -cover -modfile=/m", "GOPROXY=off"})
	require.Equal(t, []string{"PATH=/bin", "GOPROXY=off", "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=mod -modcacherw -modfile=/m"}, env)
}

func TestWithoutAHomeTheCacheIsAFolderOfOnesOwn(t *testing.T) {
	for _, name := range []string{"HOME", "XDG_CACHE_HOME", "LocalAppData", "home"} {
		t.Setenv(name, "")
	}
	tmp := t.TempDir()
	for _, name := range []string{"TMPDIR", "TMP", "TEMP"} {
		t.Setenv(name, tmp)
	}
	c, env, err := userCache([]string{"GOPATH=/kept"})
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(c.dir, tmp))
	require.Equal(t, "/kept", lookup(env, "GOPATH"))
	require.True(t, strings.HasPrefix(lookup(env, "GOCACHE"), tmp))
	_, _, err = userCache(nil)
	require.NoError(t, err, "the second time it is there")
}

func TestCopy(t *testing.T) {
	c := newClone(t)
	t.Chdir(c.root)
	t.Setenv("GOCACHE", goCache(t))
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	out := filepath.Join(t.TempDir(), "deep", "er")
	file, err := Copy(t.Context(), "./hello", out+"/")
	require.NoError(t, err)
	require.Equal(t, filepath.Join(out, "hello.wasm"), file)
	wasm, err := Bytes(t.Context(), "./hello")
	require.NoError(t, err)
	copied, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, wasm, copied)

	info, err := os.Stat(file)
	require.NoError(t, err)
	again, err := Copy(t.Context(), "./hello", out)
	require.NoError(t, err)
	require.Equal(t, file, again)
	same, err := os.Stat(file)
	require.NoError(t, err)
	require.True(t, os.SameFile(info, same), "a file that is right already is left alone")

	named := filepath.Join(out, "other-name.wasm")
	require.NoError(t, os.WriteFile(named, []byte("old"), 0o600))
	file, err = Copy(t.Context(), "./hello", named)
	require.NoError(t, err)
	require.Equal(t, named, file)
	entries, err := os.ReadDir(out)
	require.NoError(t, err)
	require.Len(t, entries, 2, "no temporary file stays")

	t.Chdir(t.TempDir())
	_, err = Go(t.Context(), "./hello")
	require.ErrorContains(t, err, "git clone")
	require.NotErrorIs(t, err, fs.ErrNotExist)
}

func goCache(t *testing.T) string {
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(out))
}
