package meter_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/weir-mcp/weir/internal/need"
	"github.com/weir-mcp/weir/runtime/meter"
)

// acceptedFeatures are those of the package, in the engine's words.
const acceptedFeatures = api.CoreFeaturesV2 | experimental.CoreFeaturesExtendedConst | experimental.CoreFeaturesTailCall

// specCommand is one line of a specification test, as wast2json writes it.
type specCommand struct {
	Type       string `json:"type"`
	Line       int    `json:"line"`
	Filename   string `json:"filename"`
	Text       string `json:"text"`
	ModuleType string `json:"module_type"`
}

// specSuites gives the directory of the specification suites that the engine
// is tested with: they are in its module, in the module cache.
func specSuites(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	if err != nil {
		need.Missing(t, "the module of wazero", "go mod download fetches it: "+err.Error())
	}
	dir := filepath.Join(strings.TrimSpace(string(out)), "internal", "integration_test", "spectest")
	if _, err := os.Stat(dir); err != nil {
		need.Missing(t, "the folder of the specification suites", "a wazero that go mod download fetches has it: "+err.Error())
	}
	return dir
}

// eachSpecModule calls f for each binary module of a suite.
func eachSpecModule(t *testing.T, suite string, f func(c specCommand, name string, b []byte)) {
	t.Helper()
	scripts, err := filepath.Glob(filepath.Join(suite, "testdata", "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, scripts)
	for _, script := range scripts {
		raw, err := os.ReadFile(script)
		require.NoError(t, err)
		var spec struct {
			Commands []specCommand `json:"commands"`
		}
		require.NoError(t, json.Unmarshal(raw, &spec))
		for _, c := range spec.Commands {
			if !strings.HasSuffix(c.Filename, ".wasm") || c.ModuleType == "text" {
				continue
			}
			b, err := os.ReadFile(filepath.Join(filepath.Dir(script), c.Filename))
			require.NoError(t, err)
			f(c, filepath.Base(suite)+"/"+c.Filename, b)
		}
	}
}

// TestSpecificationSuites holds the parser against what the specification says
// of thousands of modules. Valid modules are accepted and what is left of them
// compiles; malformed ones are refused; of the invalid ones only those that
// type-checking finds may pass, and the engine then refuses them.
func TestSpecificationSuites(t *testing.T) {
	dir := specSuites(t)
	ctx := context.Background()
	// The interpreter validates exactly as the compiler does and is quicker to
	// have done with a module.
	engine := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(acceptedFeatures))
	defer engine.Close(ctx)

	for _, suite := range []string{"v1", "v2", "extended-const", "tail-call"} {
		t.Run(suite, func(t *testing.T) {
			var valid, malformed, invalid, leftToEngine int
			eachSpecModule(t, filepath.Join(dir, suite), func(c specCommand, name string, b []byte) {
				m, err := meter.Parse(b)
				switch c.Type {
				case "assert_malformed":
					malformed++
					if err == nil {
						t.Errorf("%s (%s): malformed, yet accepted", name, c.Text)
					}
				case "assert_invalid":
					invalid++
					if err == nil {
						leftToEngine++
						if compiled, err := engine.CompileModule(ctx, m.Stripped()); err == nil {
							compiled.Close(ctx)
							t.Logf("%s line %d (%s): invalid, yet neither the parser nor the engine minds", name, c.Line, c.Text)
						}
					}
				default:
					valid++
					if err != nil {
						t.Errorf("%s line %d (%s): %v", name, c.Line, c.Type, err)
						return
					}
					compiled, err := engine.CompileModule(ctx, m.Stripped())
					if err != nil {
						t.Errorf("%s line %d (%s): the engine refuses what the parser accepts: %v", name, c.Line, c.Type, err)
						return
					}
					compiled.Close(ctx)
				}
			})
			t.Logf("%d valid, %d malformed, %d invalid of which %d are left to the engine's type checker", valid, malformed, invalid, leftToEngine)
		})
	}
}

// TestForeignSuites: of the suites of features that are not accepted, whatever
// valid module is not simply accepted is refused by the name of its feature,
// or of one that it builds on, never as malformed.
func TestForeignSuites(t *testing.T) {
	dir := specSuites(t)
	for suite, features := range map[string]string{
		"threads":                   "threads",
		"exception-handling":        "exception handling|function references|garbage collection",
		"typed-function-references": "function references|garbage collection",
	} {
		t.Run(suite, func(t *testing.T) {
			accepted, refused := 0, 0
			eachSpecModule(t, filepath.Join(dir, suite), func(c specCommand, name string, b []byte) {
				if c.Type == "assert_malformed" || c.Type == "assert_invalid" {
					return
				}
				switch _, err := meter.Parse(b); {
				case err == nil:
					accepted++
				default:
					refused++
					var e *meter.Error
					require.ErrorAs(t, err, &e, name)
					require.ErrorIs(t, err, meter.ErrUnsupported, name)
					require.Regexp(t, "^("+features+"):", e.Reason, name)
				}
			})
			require.Positive(t, refused)
			t.Logf("%d refused, %d accepted", refused, accepted)
		})
	}
}
