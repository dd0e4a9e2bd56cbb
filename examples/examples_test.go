package examples_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/examples/internal/moduletest"
	"github.com/weir-mcp/weir/guest/guesttest"
	"github.com/weir-mcp/weir/internal/guestbuild"
)

// modules are the folders here that hold a module: those whose main.go says how
// go generate builds it.
func modules(t *testing.T) (dirs []string) {
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	for _, e := range entries {
		source, err := os.ReadFile(filepath.Join(e.Name(), "main.go"))
		if err == nil && strings.Contains(string(source), "//go:generate ") {
			dirs = append(dirs, e.Name())
		}
	}
	return dirs
}

func TestModulesHaveTheirTests(t *testing.T) {
	dirs := modules(t)
	require.Subset(t, dirs, []string{"audit-trail", "pii-redactor", "quota", "secret-scanner"})
	for _, dir := range dirs {
		source, err := os.ReadFile(filepath.Join(dir, "main_test.go"))
		require.NoError(t, err)
		require.Contains(t, string(source), "moduletest.Run(t)", dir)
		main, err := os.ReadFile(filepath.Join(dir, "main.go"))
		require.NoError(t, err)
		folder := "../interceptors/"
		if settings, err := os.ReadFile(filepath.Join(dir, "weir.yaml")); err == nil {
			// It needs a grant: it would be refused in the folder of those that
			// do not, so it has one of its own.
			require.Contains(t, string(settings), dir+".wasm: {grants: ", dir)
			folder = "interceptors/"
		}
		require.Contains(t, string(main), "//go:generate go run ../../internal/guestbuild/buildguest -o "+folder+" .", dir)
	}
}

// TestOneFolder serves all modules as a user does: from one folder, by their
// names, with their configuration checked.
func TestOneFolder(t *testing.T) {
	folder := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	dirs := modules(t)
	for _, dir := range dirs {
		_, err := guestbuild.Copy(ctx, "./"+dir, folder+"/")
		require.NoError(t, err)
	}
	s := moduletest.OpenFolder(t, folder)
	var names []string
	for _, d := range s.List() {
		names = append(names, d.Name)
		require.NotEmpty(t, d.Version, d.Name)
		require.NotEmpty(t, d.Description, d.Name)
	}
	require.True(t, slices.IsSorted(names), names)
	require.Equal(t, dirs, names)

	for _, dir := range dirs {
		cases, err := guesttest.ReadCases(filepath.Join(dir, "testdata"))
		require.NoError(t, err)
		for _, c := range cases {
			t.Run(dir+"/"+c.Name, func(t *testing.T) {
				inv, err := c.Invocation()
				require.NoError(t, err)
				require.NoError(t, c.Check(s.Invoke(t.Context(), inv)))
			})
		}
		_, err = s.Invoke(t.Context(), abi.Invocation{
			Name: dir, Event: abi.ToolsCall, Phase: abi.Request, Payload: []byte(`{}`), Config: []byte(`{"no-such-option":1}`),
		})
		require.Equal(t, abi.ReasonConfig, abi.AsError(err, dir, abi.Request).Reason, dir)
	}
}
