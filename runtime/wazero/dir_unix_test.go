//go:build unix

package wazero

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestACacheFolderIsMadeForItsOwnerOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "by", "weir")
	newEngine(t, Options{CacheDir: dir})
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o700), info.Mode().Perm())
}

func TestCacheFoldersThatOthersCanUse(t *testing.T) {
	for _, mode := range []os.FileMode{0o777, 0o770, 0o750, 0o705} {
		dir := t.TempDir()
		require.NoError(t, os.Chmod(dir, mode))
		_, err := New(Options{CacheDir: dir})
		require.ErrorContains(t, err, "chmod 700", "%o", mode)
	}
}
