package library_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/logbook"
	"github.com/weir-mcp/weir/runtime/library"
)

func TestFolderThatIsMissing(t *testing.T) {
	dir := t.TempDir()
	_, err := library.OpenFolder(t.Context(), filepath.Join(dir, "nowhere"), quick(newFakes()))
	require.ErrorIs(t, err, library.ErrNoFolder)
	require.ErrorContains(t, err, "nowhere")
	put(t, dir, "file.wasm", "serves a")
	_, err = library.OpenFolder(t.Context(), filepath.Join(dir, "file.wasm"), quick(newFakes()))
	require.ErrorIs(t, err, library.ErrNoFolder)
	_, err = library.OpenFolder(t.Context(), dir, library.Options{})
	require.ErrorContains(t, err, "no loader")
}

func TestEmptyFolderIsServedWithOneWarning(t *testing.T) {
	noLeaks(t)
	dir, book := t.TempDir(), &logbook.Book{}
	o := quick(newFakes())
	o.Logger = book.Text()
	l := openFolder(t, dir, o)
	require.Empty(t, l.List())
	rescan(t, l)
	require.Equal(t, 1, book.Count("level=WARN", "no modules"))
	put(t, dir, "a.wasm", "serves a")
	rescan(t, l)
	require.Equal(t, []string{"a"}, names(l))
}

// Which children of a folder are its modules (config.md).
func TestWhatAModuleIs(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	put(t, dir, "b.wasm", "serves b2 b1")
	put(t, dir, "a.wasm", "serves a")
	put(t, dir, ".hidden.wasm", "serves hidden")
	put(t, dir, "a.txt", "serves text")
	put(t, dir, "A.WASM", "serves upper")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "folder.wasm"), 0o700))
	put(t, filepath.Join(dir, "folder.wasm"), "inside.wasm", "serves inside")
	put(t, elsewhere, "target", "serves linked")
	require.NoError(t, os.Symlink(filepath.Join(elsewhere, "target"), filepath.Join(dir, "link.wasm")))
	require.NoError(t, os.Symlink(filepath.Join(elsewhere, "nowhere"), filepath.Join(dir, "dangling.wasm")))
	require.NoError(t, os.Symlink(elsewhere, filepath.Join(dir, "linked-folder.wasm")))
	l := openFolder(t, dir, quick(newFakes()))
	require.Equal(t, []string{"a", "b2", "b1", "linked"}, names(l), "by file name, then as the module says")
	status := l.Status()
	require.Len(t, status, 3)
	require.Equal(t, "b.wasm", status[1].Name)
	require.Equal(t, []string{"b2", "b1"}, status[1].Interceptors)
	require.Len(t, status[1].Digest, 64)
}

func TestModuleThatDoesNotLoadIsLeftOut(t *testing.T) {
	dir, book := t.TempDir(), &logbook.Book{}
	put(t, dir, "bad.wasm", "rubbish")
	put(t, dir, "good.wasm", "serves good")
	o := quick(newFakes())
	o.Logger, o.FileBytes = book.Text(), 100
	put(t, dir, "huge.wasm", "serves huge"+strings.Repeat(" ", 100))
	l := openFolder(t, dir, o)
	require.Equal(t, []string{"good"}, names(l))
	require.Equal(t, map[string]string{
		"bad.wasm":  "not a module: 7 bytes",
		"huge.wasm": "has 111 bytes, more than the limit of 100 for a module file",
	}, problems(l))
	require.Equal(t, 1, book.Count("level=ERROR", "bad.wasm", "not a module"))
}

// A module is all or nothing (field case bad_hint_one_descriptor, its half of a
// module; protocol.md §2).
func TestOneBadDescriptorRefusesTheModule(t *testing.T) {
	for name, bad := range map[string]string{
		"no type":         `{"name":"x","hooks":[]}`,
		"unknown mode":    `{"name":"x","type":"sink","hooks":[],"mode":"loud"}`,
		"sink in audit":   `{"name":"x","type":"sink","hooks":[],"mode":"audit"}`,
		"schema":          `{"name":"x","type":"sink","hooks":[],"configSchema":{"type":"object","properties":{"a":{"$ref":"#/$defs/none"}}}}`,
		"remote schema":   `{"name":"x","type":"sink","hooks":[],"configSchema":{"type":"object","$ref":"https://example.com/s"}}`,
		"endless schema":  `{"name":"x","type":"sink","hooks":[],"configSchema":{"type":"object","$ref":"#"}}`,
		"the same name":   `fine`,
		"no interceptors": ``,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			text := "serves fine " + bad
			if bad == "" {
				text = "serves "
			}
			put(t, dir, "m.wasm", text)
			put(t, dir, "n.wasm", "serves other")
			f := newFakes()
			l := openFolder(t, dir, quick(f))
			require.Equal(t, []string{"other"}, names(l))
			require.Contains(t, problems(l), "m.wasm")
			require.Equal(t, []string{text}, f.closedTexts(), "nothing half-loaded")
		})
	}
}

func TestReplaceRemoveAppear(t *testing.T) {
	noLeaks(t)
	dir, f := t.TempDir(), newFakes()
	put(t, dir, "a.wasm", "serves a")
	l := openFolder(t, dir, quick(f))
	var changes atomic.Int32
	stop := l.Subscribe(func() { changes.Add(1) })

	put(t, dir, "a.wasm", "serves a a2")
	rescan(t, l)
	require.Equal(t, []string{"a", "a2"}, names(l))
	eventually(t, func() bool { return slices.Equal(f.closedTexts(), []string{"serves a"}) })
	require.EqualValues(t, 1, changes.Load())

	put(t, dir, "b.wasm", "serves b")
	rescan(t, l)
	require.Equal(t, []string{"a", "a2", "b"}, names(l))

	remove(t, dir, "a.wasm")
	rescan(t, l)
	require.Equal(t, []string{"b"}, names(l))
	_, err := l.Invoke(t.Context(), call("a"))
	require.True(t, failure(t, err).Unknown)
	require.EqualValues(t, 3, changes.Load())

	stop()
	put(t, dir, "b.wasm", "serves b b2")
	rescan(t, l)
	require.EqualValues(t, 3, changes.Load())
}

func TestSameBytesAreNotLoadedAgain(t *testing.T) {
	dir, f := t.TempDir(), newFakes()
	put(t, dir, "a.wasm", "serves a")
	l := openFolder(t, dir, quick(f))
	put(t, dir, "a.wasm", "serves a")
	rescan(t, l)
	require.Equal(t, 1, f.loadsOf("a.wasm"))
	require.Equal(t, []string{"a"}, names(l))
}

func TestLastGoodVersionStays(t *testing.T) {
	dir, f, book := t.TempDir(), newFakes(), &logbook.Book{}
	put(t, dir, "a.wasm", "serves a")
	o := quick(f)
	o.Logger = book.Text()
	l := openFolder(t, dir, o)
	good := l.Status()[0].Digest
	put(t, dir, "a.wasm", "rubbish")
	rescan(t, l)
	require.Equal(t, []string{"a"}, names(l))
	status := l.Status()[0]
	require.Equal(t, good, status.Digest)
	require.ErrorContains(t, status.Err, "not a module")
	require.Equal(t, 1, book.Count("level=ERROR", "a new version of a module is refused", good))
	r, err := l.Invoke(t.Context(), call("a"))
	require.NoError(t, err)
	require.Equal(t, `"a of serves a"`, string(r.Info))

	put(t, dir, "a.wasm", "serves a")
	rescan(t, l)
	require.NoError(t, l.Status()[0].Err, "put back")
	require.Equal(t, 1, f.loadsOf("a.wasm")-1)
}

// What users and reviewers of neighbouring systems reported of folders of modules,
// each under its name.
func TestFieldCases(t *testing.T) {
	t.Run("half_copied_file", halfCopiedFile)
	t.Run("half_copied_file, a real module", realModuleHalfCopied)
	t.Run("hundred_at_once", hundredAtOnce)
	t.Run("same_module_twice", sameModuleTwice)
}

func halfCopiedFile(t *testing.T) {
	dir, f, book := t.TempDir(), newFakes(), &logbook.Book{}
	whole := "serves slow " + "slower slowest"
	f.delay = func(_ context.Context, _, text string) error {
		if text != whole && strings.HasPrefix(whole, text) {
			return fmt.Errorf("unexpected end at byte %d", len(text))
		}
		return nil
	}
	o := quick(f)
	o.Logger = book.Text()
	l := openFolder(t, dir, o)
	file, err := os.Create(filepath.Join(dir, "slow.wasm"))
	require.NoError(t, err)
	for i := range len(whole) {
		require.Empty(t, l.List(), "not served until whole")
		_, err = file.WriteString(whole[i : i+1])
		require.NoError(t, err)
		rescan(t, l)
	}
	require.Equal(t, []string{"slow", "slower", "slowest"}, names(l))
	require.Equal(t, 1, book.Count("level=ERROR"), book)
	require.Equal(t, 1, book.Count("level=INFO", "a module serves"))

	require.NoError(t, file.Truncate(9)) // in place
	rescan(t, l)
	require.Equal(t, []string{"slow", "slower", "slowest"}, names(l), "the last good version stays")
	require.NoError(t, file.Truncate(3))
	rescan(t, l)
	require.Equal(t, 2, book.Count("level=ERROR"), book)
	require.NoError(t, file.Close())
}

func sameModuleTwice(t *testing.T) {
	dir, f := t.TempDir(), newFakes()
	put(t, dir, "one.wasm", "serves a")
	put(t, dir, "two.wasm", "serves a")
	l := openFolder(t, dir, quick(f))
	require.Equal(t, []string{"a"}, names(l))
	require.Equal(t, map[string]string{"two.wasm": "has the same bytes as one.wasm, which serves; remove one of them"}, problems(l))
	require.Equal(t, 0, f.loadsOf("two.wasm"), "compiled once")

	remove(t, dir, "one.wasm")
	rescan(t, l)
	require.Equal(t, []string{"a"}, names(l), "the other one takes over")
	require.Empty(t, problems(l))
}

func TestNameInCommon(t *testing.T) {
	t.Run("at start the first by file name serves, whoever loads first", func(t *testing.T) {
		dir, f := t.TempDir(), newFakes()
		put(t, dir, "1.wasm", "serves x one")
		put(t, dir, "2.wasm", "serves two x")
		put(t, dir, "3.wasm", "serves three")
		second := make(chan struct{})
		loaded := sync.OnceFunc(func() { close(second) })
		f.delay = func(_ context.Context, name, _ string) error {
			switch name {
			case "1.wasm":
				<-second
			case "2.wasm":
				defer loaded()
			}
			return nil
		}
		l := openFolder(t, dir, quick(f))
		require.Equal(t, []string{"x", "one", "three"}, names(l))
		require.Equal(t, map[string]string{
			"2.wasm": `the whole module is refused: 1.wasm serves an interceptor "x" already; rename it or remove one of the files`,
		}, problems(l))
		require.Equal(t, 1, f.loadsOf("2.wasm"))
	})
	t.Run("later the one that serves already stays", func(t *testing.T) {
		dir, f := t.TempDir(), newFakes()
		put(t, dir, "2.wasm", "serves x")
		l := openFolder(t, dir, quick(f))
		put(t, dir, "1.wasm", "serves x one")
		rescan(t, l)
		require.Equal(t, []string{"x"}, names(l))
		require.Contains(t, problems(l)["1.wasm"], "2.wasm serves")

		put(t, dir, "2.wasm", "serves y")
		rescan(t, l)
		require.Equal(t, []string{"x", "one", "y"}, names(l), "it is tried again when the other lets go of the name")
		require.Empty(t, problems(l))
	})
	t.Run("a new version that takes a name is refused and the old one stays", func(t *testing.T) {
		dir, f := t.TempDir(), newFakes()
		put(t, dir, "1.wasm", "serves x")
		put(t, dir, "2.wasm", "serves y")
		l := openFolder(t, dir, quick(f))
		put(t, dir, "1.wasm", "serves x y")
		rescan(t, l)
		require.Equal(t, []string{"x", "y"}, names(l))
		require.Contains(t, problems(l)["1.wasm"], "2.wasm serves")
	})
	t.Run("a native interceptor keeps its name", func(t *testing.T) {
		dir, f := t.TempDir(), newFakes()
		put(t, dir, "1.wasm", "serves native")
		put(t, dir, "2.wasm", "serves y")
		l := library.New(quick(f))
		require.NoError(t, l.Register(library.Validator("native", abi.Hooks{}, allow)))
		require.NoError(t, l.Open(t.Context(), dir))
		defer l.Close(t.Context())
		require.NoError(t, l.Ready(t.Context()))
		require.Equal(t, []string{"y", "native"}, names(l), "modules first, then native ones")
		require.Contains(t, problems(l)["1.wasm"], "native interceptor")
		require.ErrorContains(t, l.Register(library.Validator("y", abi.Hooks{}, allow)), "2.wasm serves this name already")
	})
}

// A missed notification is not for ever, and none is needed.
func TestChangesAreSeen(t *testing.T) {
	ways := map[string]func(o *library.Options){
		"by notification":  func(*library.Options) {},
		"by looking again": func(o *library.Options) { o.Settle, o.Rescan = time.Hour, 5*time.Millisecond },
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			noLeaks(t)
			top := t.TempDir()
			dir := filepath.Join(top, "modules")
			require.NoError(t, os.Mkdir(dir, 0o700))
			o := quick(newFakes())
			way(&o)
			l := openFolder(t, dir, o)
			serves := func(want ...string) {
				t.Helper()
				eventually(t, func() bool { return slices.Equal(names(l), want) })
			}
			put(t, dir, "a.wasm", "serves a")
			serves("a")
			require.NoError(t, os.WriteFile(filepath.Join(dir, "a.wasm"), []byte("serves a a2"), 0o600))
			serves("a", "a2")
			require.NoError(t, os.Rename(filepath.Join(dir, "a.wasm"), filepath.Join(dir, "b.wasm")))
			serves("a", "a2")
			remove(t, dir, "b.wasm")
			serves()

			// As Kubernetes updates a mounted ConfigMap.
			for _, v := range []string{"v1", "v2"} {
				require.NoError(t, os.Mkdir(filepath.Join(dir, ".."+v), 0o700))
				put(t, filepath.Join(dir, ".."+v), "k.wasm", "serves "+v)
			}
			turn := func(v string) {
				require.NoError(t, os.Symlink(".."+v, filepath.Join(dir, "..new")))
				require.NoError(t, os.Rename(filepath.Join(dir, "..new"), filepath.Join(dir, "..data")))
			}
			turn("v1")
			require.NoError(t, os.Symlink("..data/k.wasm", filepath.Join(dir, "k.wasm")))
			serves("v1")
			turn("v2")
			serves("v2")
		})
	}
}

func TestFolderThatGoesAndComesBack(t *testing.T) {
	noLeaks(t)
	dir, book := filepath.Join(t.TempDir(), "modules"), &logbook.Book{}
	require.NoError(t, os.Mkdir(dir, 0o700))
	put(t, dir, "a.wasm", "serves a")
	o := quick(newFakes())
	o.Rescan, o.Logger = 5*time.Millisecond, book.Text()
	l := openFolder(t, dir, o)
	require.NoError(t, os.RemoveAll(dir))
	eventually(t, func() bool { return len(l.List()) == 0 && book.Count("has gone") > 0 })
	require.NoError(t, os.Mkdir(dir, 0o700))
	put(t, dir, "b.wasm", "serves b")
	eventually(t, func() bool { return slices.Equal(names(l), []string{"b"}) })
	require.Equal(t, 1, book.Count("has gone"), book)
	require.Equal(t, 1, book.Count("modules is back"), book)
}

func TestRetries(t *testing.T) {
	dir, f, book := t.TempDir(), newFakes(), &logbook.Book{}
	var good atomic.Bool
	f.delay = func(context.Context, string, string) error {
		if good.Load() {
			return nil
		}
		return errors.New("no memory for a compilation at the moment")
	}
	put(t, dir, "a.wasm", "serves a")
	o := quick(f)
	o.Retry, o.Logger = time.Millisecond, book.Text()
	l := openFolder(t, dir, o)
	eventually(t, func() bool { return f.loadsOf("a.wasm") > 5 })
	require.Equal(t, 1, book.Count("level=ERROR"), "one line, not one a retry")
	good.Store(true)
	eventually(t, func() bool { return len(l.List()) == 1 })
	require.Empty(t, problems(l))
}

// A module that hangs while it loads does not hold up the others for ever.
func TestReadyIsBounded(t *testing.T) {
	noLeaks(t)
	dir, f := t.TempDir(), newFakes()
	put(t, dir, "good.wasm", "serves good")
	put(t, dir, "hangs.wasm", "serves hangs")
	f.delay = func(ctx context.Context, name, _ string) error {
		if name == "hangs.wasm" {
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	}
	o := quick(f)
	o.FirstLoad = 50 * time.Millisecond
	l, err := library.OpenFolder(t.Context(), dir, o)
	require.NoError(t, err)
	require.ErrorIs(t, l.Ready(t.Context()), library.ErrLoading)
	eventually(t, func() bool { return slices.Equal(names(l), []string{"good"}) })
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, l.Ready(gone))
	require.NoError(t, l.Close(t.Context()), "closing ends the load")
}

func TestFileThatChangesWhileItLoads(t *testing.T) {
	dir, f := t.TempDir(), newFakes()
	loading, goOn := make(chan struct{}), make(chan struct{})
	f.delay = func(_ context.Context, _, text string) error {
		if text == "serves old" {
			close(loading)
			<-goOn
		}
		return nil
	}
	o := quick(f)
	o.Rescan = time.Millisecond
	l := library.New(o)
	put(t, dir, "a.wasm", "serves old")
	require.NoError(t, l.Open(t.Context(), dir))
	defer l.Close(t.Context())
	<-loading
	put(t, dir, "a.wasm", "serves new")
	close(goOn)
	eventually(t, func() bool { return slices.Equal(names(l), []string{"new"}) })
}

func TestFileThatGoesWhileItLoads(t *testing.T) {
	// start opens a folder with a module that is removed while it loads.
	start := func(t *testing.T, o func(*library.Options)) (l *library.Library, dir string, f *fakes, goOn, other chan struct{}) {
		dir, f = t.TempDir(), newFakes()
		loading := make(chan struct{})
		goOn, other = make(chan struct{}), make(chan struct{})
		f.delay = func(_ context.Context, name, _ string) error {
			if name != "a.wasm" {
				close(other)
				return nil
			}
			close(loading)
			<-goOn
			return nil
		}
		options := quick(f)
		o(&options)
		l = library.New(options)
		put(t, dir, "a.wasm", "serves a")
		require.NoError(t, l.Open(t.Context(), dir))
		t.Cleanup(func() { require.NoError(t, l.Close(context.Background())) })
		<-loading
		remove(t, dir, "a.wasm")
		return l, dir, f, goOn, other
	}
	t.Run("the removal is seen before the load is done", func(t *testing.T) {
		l, dir, f, goOn, other := start(t, func(o *library.Options) { o.Rescan = time.Millisecond })
		put(t, dir, "b.wasm", "serves b")
		<-other // whoever saw this file saw that the first had gone
		close(goOn)
		require.NoError(t, l.Ready(t.Context()))
		eventually(t, func() bool { return slices.Equal(f.closedTexts(), []string{"serves a"}) })
		rescan(t, l)
		require.Equal(t, []string{"b"}, names(l))
	})
	t.Run("the load is done before the removal is seen", func(t *testing.T) {
		l, _, f, goOn, _ := start(t, func(o *library.Options) { o.Settle = time.Hour })
		close(goOn)
		require.NoError(t, l.Ready(t.Context()))
		require.Equal(t, []string{"a"}, names(l))
		rescan(t, l)
		require.Empty(t, l.List())
		eventually(t, func() bool { return slices.Equal(f.closedTexts(), []string{"serves a"}) })
	})
}

// Readers see the old set or the new one, and no call meets a closed module.
func TestHammer(t *testing.T) {
	noLeaks(t)
	dir, f := t.TempDir(), newFakes()
	put(t, dir, "a.wasm", "serves x y 0")
	l := openFolder(t, dir, quick(f))
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if got := names(l); len(got) != 3 || got[0] != "x" || got[1] != "y" {
					t.Error("a mixture:", got)
				}
				if _, err := l.Invoke(context.Background(), call("x")); err != nil {
					t.Error(err)
				}
				_ = l.Status()
			}
		})
	}
	for i := 1; i <= 60; i++ {
		put(t, dir, "a.wasm", fmt.Sprintf("serves x y %d", i))
		rescan(t, l)
		require.Equal(t, []string{"x", "y", fmt.Sprint(i)}, names(l))
	}
	close(stop)
	readers.Wait()
	eventually(t, func() bool { return len(f.closedTexts()) == 60 })
}

func TestOldModuleIsClosedAfterItsCalls(t *testing.T) {
	dir, f := t.TempDir(), newFakes()
	entered, goOn := make(chan struct{}), make(chan struct{})
	f.invoke = func(_ context.Context, inv abi.Invocation) (abi.Result, error) {
		close(entered)
		<-goOn
		return abi.Result{Type: abi.Validation, Interceptor: inv.Name, Phase: inv.Phase, Valid: true}, nil
	}
	put(t, dir, "a.wasm", "serves a")
	l := openFolder(t, dir, quick(f))
	answered := make(chan error, 1)
	go func() {
		_, err := l.Invoke(context.Background(), call("a"))
		answered <- err
	}()
	<-entered
	remove(t, dir, "a.wasm")
	rescan(t, l)
	require.Empty(t, l.List(), "unlisted at once")
	require.Empty(t, f.closedTexts())

	soon, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, l.Close(soon), context.DeadlineExceeded, "closing waits for calls, and for no longer than it may")
	close(goOn)
	require.NoError(t, <-answered)
	eventually(t, func() bool { return len(f.closedTexts()) == 1 })
}

func TestClosed(t *testing.T) {
	noLeaks(t)
	dir, f := t.TempDir(), newFakes()
	put(t, dir, "a.wasm", "serves a")
	l := library.New(quick(f))
	require.NoError(t, l.Register(library.Validator("n", abi.Hooks{}, allow)))
	require.NoError(t, l.Open(t.Context(), dir))
	require.Error(t, l.Open(t.Context(), dir), "one folder")
	require.NoError(t, l.Ready(t.Context()))
	require.NoError(t, l.Close(t.Context()))
	require.NoError(t, l.Close(t.Context()), "again")
	require.Empty(t, l.List())
	require.Equal(t, 0, f.open)
	require.ErrorIs(t, l.Register(library.Validator("m", abi.Hooks{}, allow)), library.ErrClosed)
	require.ErrorIs(t, l.Rescan(t.Context()), library.ErrClosed)
	require.ErrorIs(t, library.New(quick(f)).Rescan(t.Context()), nil, "without a folder there is nothing to look at")
}

func TestOpenFile(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "a.bin", "serves a")
	put(t, dir, "b.wasm", "rubbish")
	l, err := library.OpenFile(t.Context(), filepath.Join(dir, "a.bin"), quick(newFakes()))
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, names(l))
	require.Equal(t, "a.bin", l.Status()[0].Name)
	require.NoError(t, l.Ready(t.Context()))
	require.NoError(t, l.Close(t.Context()))
	_, err = library.OpenFile(t.Context(), filepath.Join(dir, "b.wasm"), quick(newFakes()))
	require.ErrorContains(t, err, "b.wasm: not a module")
	_, err = library.OpenFile(t.Context(), filepath.Join(dir, "c.wasm"), quick(newFakes()))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = library.OpenFile(t.Context(), dir, quick(newFakes()))
	require.ErrorContains(t, err, "no regular file")
}

func allow(context.Context, *abi.Invocation) (library.Verdict, error) { return library.Allow(), nil }
