package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// built is where the programs of the end-to-end tests are, made once when the
// first test asks.
var built struct {
	dir string
	mu  sync.Mutex
	of  map[string]string
}

func TestMain(m *testing.M) {
	if play, args := roleAsked(os.Args); play != nil {
		os.Exit(play(args))
	}
	dir, err := os.MkdirTemp("", "weir-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	built.dir, built.of = dir, map[string]string{}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// program builds the main package pkg and returns the binary.
func program(t testing.TB, pkg string) string {
	t.Helper()
	built.mu.Lock()
	defer built.mu.Unlock()
	if path := built.of[pkg]; path != "" {
		return path
	}
	path := filepath.Join(built.dir, filepath.Base(pkg))
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	out, err := exec.Command("go", "build", "-o", path, pkg).CombinedOutput()
	require.NoError(t, err, "%s", out)
	built.of[pkg] = path
	return path
}

func weirBinary(t testing.TB) string { return program(t, "github.com/weir-mcp/weir/cmd/weir") }

// everythingServer is the go-sdk's conformance server: a real backend that
// nobody here wrote.
func everythingServer(t testing.TB) string {
	return program(t, "github.com/modelcontextprotocol/go-sdk/conformance/everything-server")
}

// output is what one run of the command line gave.
type output struct {
	code        int
	out, errors string
}

// weir runs the command line in this process.
func weir(t testing.TB, stdin string, args ...string) output {
	t.Helper()
	var out, errs buffer
	code := run(context.Background(), args, streams{in: nopCloser{strings.NewReader(stdin)}, out: &out, err: &errs})
	return output{code, out.String(), errs.String()}
}

// buffer is a strings.Builder that goroutines may share, with a Close.
type buffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) Close() error { return nil }

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

type nopCloser struct{ *strings.Reader }

func (nopCloser) Close() error { return nil }
