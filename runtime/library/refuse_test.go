package library_test

import (
	"errors"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/logbook"
	"github.com/weir-mcp/weir/runtime/library"
)

// What the owner of the library does not admit is refused whole, and the last
// good version stays (protocol.md §5).
func TestAdmit(t *testing.T) {
	errWide := errors.New("weir.yaml:5:3 widens it")
	options := func(f *fakes) (library.Options, *atomic.Int64) {
		o, asked := quick(f), new(atomic.Int64)
		o.Admit = func(file string, interceptors []abi.Descriptor) error {
			asked.Add(1)
			if file != "a.wasm" {
				return nil
			}
			if slices.ContainsFunc(interceptors, func(d abi.Descriptor) bool { return d.Name == "wide" }) {
				return errWide
			}
			return nil
		}
		return o, asked
	}
	t.Run("refused whole, others serve", func(t *testing.T) {
		dir, f, book := t.TempDir(), newFakes(), &logbook.Book{}
		put(t, dir, "a.wasm", "serves narrow wide")
		put(t, dir, "b.wasm", "serves wide")
		o, _ := options(f)
		o.Logger = book.Text()
		l := openFolder(t, dir, o)
		require.Equal(t, []string{"wide"}, names(l), "of the file that it is admitted in")
		require.Equal(t, map[string]string{"a.wasm": "the whole module is refused: weir.yaml:5:3 widens it"}, problems(l))
		require.ErrorIs(t, l.Status()[0].Err, errWide)
		require.Equal(t, []string{"serves narrow wide"}, f.closedTexts())
		require.Equal(t, 1, book.Count("level=ERROR", "a.wasm", "weir.yaml:5:3 widens it"))
	})
	t.Run("the last good version stays", func(t *testing.T) {
		dir, f := t.TempDir(), newFakes()
		put(t, dir, "a.wasm", "serves a")
		o, _ := options(f)
		l := openFolder(t, dir, o)
		good := l.Status()[0].Digest
		put(t, dir, "a.wasm", "serves a wide")
		rescan(t, l)
		require.Equal(t, []string{"a"}, names(l))
		require.Equal(t, good, l.Status()[0].Digest)
		require.ErrorIs(t, l.Status()[0].Err, errWide)
		r, err := l.Invoke(t.Context(), call("a"))
		require.NoError(t, err)
		require.Equal(t, `"a of serves a"`, string(r.Info))

		put(t, dir, "a.wasm", "serves a better")
		rescan(t, l)
		require.Equal(t, []string{"a", "better"}, names(l))
		require.Empty(t, problems(l))
	})
	t.Run("what is refused is not tried again until it changes", func(t *testing.T) {
		dir, f := t.TempDir(), newFakes()
		put(t, dir, "a.wasm", "serves wide")
		put(t, dir, "b.wasm", "rubbish") // which is tried again
		o, asked := options(f)
		o.Retry = time.Millisecond
		l := openFolder(t, dir, o)
		eventually(t, func() bool { return f.loadsOf("b.wasm") > 5 })
		require.Equal(t, 1, f.loadsOf("a.wasm"))
		require.EqualValues(t, 1, asked.Load())
		put(t, dir, "a.wasm", "serves a")
		rescan(t, l)
		require.Equal(t, []string{"a"}, names(l))
	})
	t.Run("the same bytes under a name that is admitted take over", func(t *testing.T) {
		dir, f := t.TempDir(), newFakes()
		put(t, dir, "a.wasm", "serves wide")
		put(t, dir, "b.wasm", "serves wide")
		o, _ := options(f)
		l := openFolder(t, dir, o)
		require.Equal(t, []string{"wide"}, names(l))
		require.Equal(t, "b.wasm", l.Status()[1].Name)
		require.NoError(t, l.Status()[1].Err)
	})
	t.Run("a single file", func(t *testing.T) {
		dir, f := t.TempDir(), newFakes()
		put(t, dir, "a.wasm", "serves wide")
		o, _ := options(f)
		_, err := library.OpenFile(t.Context(), filepath.Join(dir, "a.wasm"), o)
		require.ErrorIs(t, err, errWide)
		require.Equal(t, 0, f.open)
	})
}
