//go:build unix

package guestbuild

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAFolderThatOthersCanWriteToIsNoCache(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "weir")
	require.NoError(t, privateDir(dir))
	require.NoError(t, privateDir(dir))
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())

	require.NoError(t, os.Chmod(dir, 0o777))
	require.ErrorContains(t, privateDir(dir), "not a folder of this user's own")

	link := filepath.Join(t.TempDir(), "weir")
	require.NoError(t, os.Symlink(t.TempDir(), link))
	require.ErrorContains(t, privateDir(link), "not a folder of this user's own")
}
