//go:build unix

package cache

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/internal/need"
)

func TestModes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	c, _ := open(t, dir, 0)
	c.Put(keyOf("a"), []byte("right"))
	for path, mode := range map[string]fs.FileMode{dir: 0o700, c.path(keyOf("a")): 0o600, filepath.Join(dir, secretFile): 0o600} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm(), path)
	}
}

func systemDamages() map[string]func(t *testing.T, c *Cache, path string, whole []byte) {
	planted := func(make func(from, to string) error) func(t *testing.T, c *Cache, path string, whole []byte) {
		return func(t *testing.T, _ *Cache, path string, whole []byte) {
			target := filepath.Join(t.TempDir(), "target")
			write(t, target, whole) // it would verify
			require.NoError(t, os.Remove(path))
			require.NoError(t, make(target, path))
			t.Cleanup(func() { require.FileExists(t, target, "what a link leads to stays") })
		}
	}
	return map[string]func(t *testing.T, c *Cache, path string, whole []byte){
		"a link": planted(os.Symlink),
		"a link to nothing": func(t *testing.T, _ *Cache, path string, _ []byte) {
			require.NoError(t, os.Remove(path))
			require.NoError(t, os.Symlink("nothing", path))
		},
		"a pipe": func(t *testing.T, _ *Cache, path string, _ []byte) {
			require.NoError(t, os.Remove(path))
			require.NoError(t, syscall.Mkfifo(path, 0o600))
		},
		"others can write": func(t *testing.T, _ *Cache, path string, _ []byte) { require.NoError(t, os.Chmod(path, 0o622)) },
		"others can read":  func(t *testing.T, _ *Cache, path string, _ []byte) { require.NoError(t, os.Chmod(path, 0o640)) },
		"another owner": func(t *testing.T, _ *Cache, path string, _ []byte) {
			if err := os.Chown(path, 12345, -1); err != nil {
				need.Missing(t, "root, who alone gives files away", "run it as root: "+err.Error())
			}
		},
	}
}

func systemSecretDamages() map[string]func(t *testing.T, path string) {
	return map[string]func(t *testing.T, path string){
		"others can read": func(t *testing.T, path string) { require.NoError(t, os.Chmod(path, 0o644)) },
		"a link": func(t *testing.T, path string) {
			target := filepath.Join(t.TempDir(), "target")
			write(t, target, bytes.Repeat([]byte("k"), 32))
			require.NoError(t, os.Remove(path))
			require.NoError(t, os.Symlink(target, path))
		},
		"another owner": func(t *testing.T, path string) {
			if err := os.Chown(path, 12345, -1); err != nil {
				need.Missing(t, "root, who alone gives files away", "run it as root: "+err.Error())
			}
		},
	}
}

func TestAFolderThatOthersCanUse(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o755))
	_, err := Open(Options{Dir: dir})
	require.ErrorContains(t, err, "chmod go-rwx")
}

// A disk that takes nothing more is one warning; what is there is still found.
func TestADiskThatTakesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	c, log := open(t, dir, 0)
	c.Put(keyOf("a"), []byte("right"))
	require.Empty(t, log.lines())

	var old syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old))
	// As on a full disk, files do not grow; Go ignores the signal that comes
	// with it. This process's other tests do not run meanwhile.
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 100, Max: old.Max}))
	for range 3 {
		c.Put(keyOf("b"), bytes.Repeat([]byte("x"), 1000))
	}
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old))
	require.Len(t, log.lines(), 1)
	require.Contains(t, log.lines()[0], "cannot be written to")
	_, ok := c.Get(keyOf("b"))
	require.False(t, ok)
	_, ok = c.Get(keyOf("a"))
	require.True(t, ok)
	left, err := filepath.Glob(filepath.Join(dir, tmpPrefix+"*"))
	require.NoError(t, err)
	require.Empty(t, left, "nothing half written stays")

	require.NoError(t, os.RemoveAll(dir)) // it may go at any time, too
	c.Put(keyOf("b"), []byte("x"))
	_, ok = c.Get(keyOf("b"))
	require.False(t, ok)
}
