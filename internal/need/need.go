// Package need is how a test says what it needs beyond Go. Where the thing is
// missing, the test is skipped with a message that says how to get it; with
// WEIR_CI=1 in the environment, as .ci/run sets it, it fails instead, so that
// CI never passes by leaving something out.
//
// No other test may skip, which internal/house sees to. This package is for tests
// only and knows nothing of weir. A test calls
// [Command], [NPM] or [Packages] first and then uses what it returns, or
// [Missing] where it has looked by itself.
package need

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Missing skips the test, or fails it in CI. wayOut says how to get what is
// missing.
func Missing(t testing.TB, what, wayOut string) {
	t.Helper()
	if os.Getenv("WEIR_CI") != "" {
		t.Fatalf("%s is missing, and CI leaves nothing out; %s", what, wayOut)
	}
	t.Skipf("%s is missing: %s", what, wayOut)
}

// Command returns the path of a program. wayOut says how to get it.
func Command(t testing.TB, name, wayOut string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Missing(t, name, wayOut)
	}
	return path
}

// Short skips a test that takes too long for go test -short.
func Short(t testing.TB, why string) {
	t.Helper()
	if testing.Short() {
		Missing(t, "time", "run it without -short: "+why)
	}
}

// npmPackages are the servers that nobody here wrote, at the versions the
// tests were written against.
var npmPackages = []string{
	"@modelcontextprotocol/server-everything@2026.8.31",
	"@modelcontextprotocol/server-filesystem@2026.8.31",
}

// NPM returns the command that starts a program of one of the npm packages
// that the tests use, such as "mcp-server-everything". It installs them once
// into the user's cache.
func NPM(t testing.TB, program string) []string {
	t.Helper()
	dir := Packages(t, npmPackages...)
	return []string{Command(t, "node", nodeWayOut), filepath.Join(dir, "node_modules", ".bin", program)}
}

// Node22 returns the path of Node.js 22, for programs that an older one is too
// old for. It is that of npm, whatever this machine has.
func Node22(t testing.TB) string {
	t.Helper()
	return filepath.Join(Packages(t, "node@22.23.3"), "node_modules", "node", "bin", "node")
}

const nodeWayOut = "install Node.js 20 or newer, with npm"

var npm struct {
	mu  sync.Mutex
	why map[string]string // folder → why it is not there, empty where it is
}

// Packages returns a folder with npm packages in its node_modules, each given
// with its version, such as "node@22.23.3". They are installed once into the
// user's cache; the same packages are the same folder.
func Packages(t testing.TB, packages ...string) string {
	t.Helper()
	Command(t, "node", nodeWayOut)
	Command(t, "npm", nodeWayOut)
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	dir := filepath.Join(cache, "weir-tests", strings.NewReplacer("@", "_", "/", "_").Replace(strings.Join(packages, "+")))
	npm.mu.Lock()
	defer npm.mu.Unlock()
	why, tried := npm.why[dir]
	if !tried {
		if npm.why == nil {
			npm.why = map[string]string{}
		}
		why = install(dir, packages)
		npm.why[dir] = why
	}
	if why != "" {
		Missing(t, "an npm package", why)
	}
	return dir
}

// install installs into a fresh folder and moves it into place, so that two
// test processes that run at once never see half of it. It returns why it could
// not.
func install(dir string, packages []string) (why string) {
	if _, err := os.Stat(dir); err == nil {
		return ""
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err.Error()
	}
	fresh, err := os.MkdirTemp(filepath.Dir(dir), "installing-")
	if err != nil {
		return err.Error()
	}
	defer os.RemoveAll(fresh)
	args := append([]string{"install", "--prefix", fresh, "--no-audit", "--no-fund", "--loglevel=error"}, packages...)
	if out, err := exec.Command("npm", args...).CombinedOutput(); err != nil {
		return "npm install failed (is the registry reachable?): " + err.Error() + "\n" + string(out)
	}
	if err := os.Rename(fresh, dir); err != nil {
		if _, other := os.Stat(dir); other != nil {
			return err.Error()
		}
	}
	return ""
}
