//go:build unix

package privatedir_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/internal/privatedir"
)

func TestMake(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "by", "weir")
	for range 2 {
		require.NoError(t, privatedir.Make(dir))
		info, err := os.Stat(dir)
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o700), info.Mode().Perm())
	}
}

func TestFoldersThatOthersCanUse(t *testing.T) {
	for _, mode := range []os.FileMode{0o777, 0o770, 0o750, 0o705} {
		dir := t.TempDir()
		require.NoError(t, os.Chmod(dir, mode))
		require.ErrorContains(t, privatedir.Make(dir), "chmod 700", "%o", mode)
	}
}

func TestWhatIsNoFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.Error(t, privatedir.Make(file))
}
