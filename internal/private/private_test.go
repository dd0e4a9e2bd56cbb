package private_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/internal/private"
)

func TestWhatIsNoFolderIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.Error(t, private.Dir(file))
	require.Error(t, private.Dir(filepath.Join(file, "below")))
}

func TestOpenTakesFilesOnly(t *testing.T) {
	dir := t.TempDir()
	_, err := private.Open(dir)
	require.ErrorContains(t, err, "not a regular file")
	_, err = private.Open(filepath.Join(dir, "missing"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func ExampleOpen() {
	dir, _ := os.MkdirTemp("", "private")
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "file")
	_ = os.WriteFile(path, []byte("mine"), 0o600)
	f, err := private.Open(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Close()
	text, _ := io.ReadAll(f)
	fmt.Println(string(text))
	// Output: mine
}
