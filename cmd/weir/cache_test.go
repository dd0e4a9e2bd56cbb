package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/internal/config"
	"github.com/weir-mcp/weir/internal/need"
	wt "github.com/weir-mcp/weir/internal/wasmtest"
	"github.com/weir-mcp/weir/runtime"
)

// loadWithCache loads a module as the commands do and gives what was logged.
func loadWithCache(t *testing.T, cache bool) string {
	t.Helper()
	var stderr bytes.Buffer
	box, err := newSandbox(streams{err: &stderr}, slog.New(slog.DiscardHandler), &config.File{Cache: cache})
	require.NoError(t, err)
	_, err = box.Load(t.Context(), wt.Allowing("guard"), runtime.ModuleOptions{Name: "guard.wasm"})
	require.NoError(t, err)
	require.NoError(t, box.Close(t.Context()))
	return stderr.String()
}

// The cache is in the user's cache folder, and nowhere when it is off; a folder
// that cannot be used is a warning.
func TestTheCompileCache(t *testing.T) {
	if goruntime.GOOS != "linux" {
		need.Missing(t, "a cache folder that XDG_CACHE_HOME sets", "run it on Linux")
	}
	user := filepath.Join(t.TempDir(), "cache")
	t.Setenv("XDG_CACHE_HOME", user)
	code, scratch := filepath.Join(user, "weir", "code"), filepath.Join(user, "weir", "scratch")

	require.Empty(t, loadWithCache(t, false))
	require.NoDirExists(t, user)
	require.Empty(t, loadWithCache(t, true))
	require.DirExists(t, code)
	stages, err := filepath.Glob(filepath.Join(scratch, "stage-*"))
	require.NoError(t, err)
	require.Empty(t, stages)

	require.NoError(t, os.Chmod(code, 0o777))
	said := loadWithCache(t, true)
	require.Equal(t, 1, strings.Count(said, "\n"), said)
	require.Contains(t, said, "no compile cache")
	require.Contains(t, said, "cache: off")
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "")
	require.Contains(t, loadWithCache(t, true), "this user has no cache folder")
}
