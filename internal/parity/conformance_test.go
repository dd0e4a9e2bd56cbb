package parity

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/internal/need"
)

// TestConformance: the official suite finds in a server behind the gateway what
// it finds in the server itself, check by check. What fails directly has to fail
// the same through the gateway; how much that is, is that server's matter, and
// stands here so that a suite that checks nothing is seen.
func TestConformance(t *testing.T) {
	t.Parallel()
	need.Short(t, "each run of the suite takes seconds")
	const first, second = "@modelcontextprotocol/conformance@0.1.16", "@modelcontextprotocol/conformance@0.2.0-alpha.12"
	sessions := []string{"-stateless=false"}
	for _, c := range []struct {
		name, suite   string
		args          []string
		server        []string // flags of the server
		passes, fails int      // directly
		overStdio     bool     // the server behaves over stdio as over HTTP
	}{
		{"0.1.16", first, nil, sessions, 40, 0, true},
		{"0.2.0-alpha.12", second, nil, sessions, 73, 0, true},
		{"0.2.0-alpha.12, a server without sessions", second, nil, nil, 55, 4, false},
		{"0.2.0-alpha.12, 2026-07-28", second, []string{"--spec-version", "2026-07-28"}, nil, 42, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			node := need.Node22(t)
			suite := filepath.Join(need.Packages(t, c.suite), "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js")
			check := func(t *testing.T, url string) []string {
				t.Helper()
				return checks(t, append([]string{node, suite, "server", "--url", url}, c.args...))
			}
			direct := check(t, everythingOverHTTP(t, c.server...))
			require.Equal(t, c.passes, count(direct, "SUCCESS"), "%s", strings.Join(direct, "\n"))
			require.Equal(t, c.fails, count(direct, "FAILURE"), "%s", strings.Join(direct, "\n"))
			for name, of := range map[string]func(testing.TB) chain{"no chain": noChain, "allowing chain": allowing} {
				t.Run(name+", HTTP to HTTP", func(t *testing.T) {
					url, _ := gatewayOverHTTP(t, of(t), everythingOverHTTP(t, c.server...))
					require.Equal(t, direct, check(t, url))
				})
				if !c.overStdio {
					continue
				}
				t.Run(name+", HTTP to stdio", func(t *testing.T) {
					url, _ := gatewayOverHTTP(t, of(t), everything(t))
					require.Equal(t, direct, check(t, url))
				})
			}
		})
	}
}

func noChain(testing.TB) chain { return "" }

var scenarioFolder = regexp.MustCompile(`^server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$`)

// checks runs a suite and gives each check that it made with how it ended,
// sorted.
func checks(t *testing.T, suite []string) (found []string) {
	t.Helper()
	results := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, suite[0], append(suite[1:], "--output-dir", results)...)
	cmd.Dir = results
	out, err := cmd.CombinedOutput() // an error where a check failed, too
	require.NoError(t, ctx.Err(), "%s", out)
	folders, readErr := os.ReadDir(results)
	require.NoError(t, readErr)
	for _, f := range folders {
		scenario := scenarioFolder.FindStringSubmatch(f.Name())
		require.NotNil(t, scenario, f.Name())
		var list []struct{ ID, Name, Status string }
		b, err := os.ReadFile(filepath.Join(results, f.Name(), "checks.json"))
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(b, &list))
		for _, c := range list {
			found = append(found, scenario[1]+" "+c.ID+" "+c.Name+" "+c.Status)
		}
	}
	require.NotEmpty(t, found, "%v\n%s", err, out)
	slices.Sort(found)
	return found
}

func count(checks []string, status string) (n int) {
	for _, c := range checks {
		if strings.HasSuffix(c, " "+status) {
			n++
		}
	}
	return n
}
