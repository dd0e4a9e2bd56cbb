// Package need is how a test says what it needs beyond Go. Where the thing is
// missing, the test is skipped with a message that says how to get it; with
// WEIR_CI=1 in the environment, as .ci/run sets it, it fails instead, so that
// CI never passes by leaving something out.
//
// It is for tests only and knows nothing of weir. A test calls
// [Command] or [NPM] first and then uses what it returns, or [Missing] where it
// has looked by itself.
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
		t.Skip("left out by -short: " + why)
	}
}

// npmPackages are the servers that nobody here wrote, at the versions the
// tests were written against.
var npmPackages = []string{
	"@modelcontextprotocol/server-everything@2026.8.31",
	"@modelcontextprotocol/server-filesystem@2026.8.31",
}

var npm struct {
	once sync.Once
	dir  string
	why  string
}

// NPM returns the command that starts a program of one of the npm packages
// that the tests use, such as "mcp-server-everything". It installs them once
// into the user's cache.
func NPM(t testing.TB, program string) []string {
	t.Helper()
	node := Command(t, "node", "install Node.js 20 or newer")
	Command(t, "npm", "install Node.js 20 or newer with npm")
	npm.once.Do(installNPM)
	if npm.why != "" {
		Missing(t, "an npm package", npm.why)
	}
	return []string{node, filepath.Join(npm.dir, "node_modules", ".bin", program)}
}

// installNPM installs into a fresh folder and moves it into place, so that two
// test processes that run at once never see half of it.
func installNPM() {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	name := strings.NewReplacer("@", "_", "/", "_").Replace(strings.Join(npmPackages, "+"))
	npm.dir = filepath.Join(cache, "weir-tests", name)
	if _, err := os.Stat(npm.dir); err == nil {
		return
	}
	if err := os.MkdirAll(filepath.Dir(npm.dir), 0o755); err != nil {
		npm.why = err.Error()
		return
	}
	fresh, err := os.MkdirTemp(filepath.Dir(npm.dir), "installing-")
	if err != nil {
		npm.why = err.Error()
		return
	}
	defer os.RemoveAll(fresh)
	args := append([]string{"install", "--prefix", fresh, "--no-audit", "--no-fund", "--loglevel=error"}, npmPackages...)
	if out, err := exec.Command("npm", args...).CombinedOutput(); err != nil {
		npm.why = "npm install failed (is the registry reachable?): " + err.Error() + "\n" + string(out)
		return
	}
	if err := os.Rename(fresh, npm.dir); err != nil {
		if _, other := os.Stat(npm.dir); other != nil {
			npm.why = err.Error()
		}
	}
}
