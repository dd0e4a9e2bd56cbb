//go:build unix

package private_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/internal/need"
	"github.com/weir-mcp/weir/internal/private"
)

func TestFoldersAreMadeForTheirOwner(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "by", "weir")
	for range 2 {
		require.NoError(t, private.Dir(dir))
	}
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}

func TestWhatOthersHaveAccessToIsRefused(t *testing.T) {
	for _, mode := range []os.FileMode{0o777, 0o770, 0o750, 0o705, 0o701} {
		dir := t.TempDir()
		require.NoError(t, os.Chmod(dir, mode))
		require.ErrorContains(t, private.Dir(dir), "chmod go-rwx", "%o", mode)

		file := filepath.Join(dir, "file")
		require.NoError(t, os.WriteFile(file, nil, 0o600))
		require.NoError(t, os.Chmod(file, mode))
		_, err := private.Open(file)
		require.ErrorContains(t, err, "chmod go-rwx", "%o", mode)
	}
}

func TestWhatIsSomebodyElsesIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	if err := os.Chown(file, 12345, -1); err != nil {
		need.Missing(t, "root, who alone gives files away", "run it as root: "+err.Error())
	}
	_, err := private.Open(file)
	require.ErrorContains(t, err, "another user (uid 12345)")
}

func TestLinksAndPipesAreRefused(t *testing.T) {
	dir := t.TempDir()
	real, link, pipe := filepath.Join(dir, "real"), filepath.Join(dir, "link"), filepath.Join(dir, "pipe")
	require.NoError(t, private.Dir(real))
	require.NoError(t, os.Symlink(real, link))
	require.ErrorContains(t, private.Dir(link), "not a folder")

	file := filepath.Join(real, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, os.Remove(link))
	require.NoError(t, os.Symlink(file, link))
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for _, path := range []string{link, pipe} {
		_, err := private.Open(path)
		require.ErrorContains(t, err, "not a regular file")
	}
}

// A file that others exchange all the time, as a cache's are, is one of theirs.
func TestOpenWhileFilesAreExchanged(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	exchange := func() {
		next := filepath.Join(dir, "next")
		if err := errors.Join(os.WriteFile(next, []byte("whole"), 0o600), os.Rename(next, path)); err != nil {
			t.Error(err)
		}
	}
	exchange()
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				exchange()
			}
		}
	})
	for range 2000 {
		f, err := private.Open(path)
		if err != nil {
			t.Error(err)
			break
		}
		b, err := io.ReadAll(f)
		if err != nil || string(b) != "whole" {
			t.Errorf("%q %v", b, err)
		}
		_ = f.Close()
	}
	close(done)
	wg.Wait()
}
