package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/internal/guestbuild"
	"github.com/weir-mcp/weir/internal/need"
)

// runTimes differ from run to run.
var runTimes = regexp.MustCompile(`"durationMs":\d+`)

// The commands of the README that have their output under them are run as they
// stand, in a shell, where the README says they work.
func TestReadmeCommandsPrintWhatItShows(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		need.Missing(t, "a POSIX shell, whose the README's commands are", "run it elsewhere than on Windows")
	}
	shell := need.Command(t, "sh", "install a POSIX shell")
	dir := t.TempDir()
	examples := filepath.Join(dir, "examples", "interceptors")
	own := filepath.Join(dir, "interceptors")
	for pkg, file := range map[string]string{
		"examples/pii-redactor":    filepath.Join(examples, "pii-redactor.wasm"),
		"examples/secret-scanner":  filepath.Join(examples, "secret-scanner.wasm"),
		"examples/audit-trail":     filepath.Join(examples, "audit-trail.wasm"),
		"guest/internal/denytools": filepath.Join(own, "deny-tools.wasm"),
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		wasm, err := guestbuild.Bytes(t.Context(), guestbuild.Module+"/"+pkg)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, wasm, 0o600))
		// Into the compile cache: a folder is waited for 15 s, and this machine
		// may be busy with other tests.
		inspected := weir(t, "", "inspect", file)
		require.Equal(t, exitDone, inspected.code, inspected.errors)
	}
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)

	ran := 0
	for _, block := range strings.Split(string(readme), "```console\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		for _, command := range strings.Split(block, "$ ")[1:] {
			line, shown, _ := strings.Cut(command, "\n")
			if strings.TrimSpace(shown) == "" {
				continue
			}
			cmd := exec.Command(shell, "-c", line)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(weirBinary(t))+string(os.PathListSeparator)+os.Getenv("PATH"))
			out, err := cmd.Output()
			require.NoError(t, err, line)
			require.Equal(t, runTimes.ReplaceAllString(shown, ""), runTimes.ReplaceAllString(string(out), ""), line)
			ran++
		}
	}
	require.Equal(t, 2, ran, "weir plan and weir invoke")
}
