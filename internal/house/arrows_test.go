package house

import (
	"encoding/json"
	"go/parser"
	"go/token"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/weir-mcp/weir"

// arrows says what each room may import of ours (CONTRIBUTING.md, The house).
// A room that is not listed is covered by the nearest one above it.
var arrows = map[string][]string{
	"abi":                            {},
	"guest":                          {"abi"},
	"guest/guesttest":                {"abi", "guest"},
	"internal/wire":                  {},
	"internal/sse":                   {"internal/wire"},
	"internal/mirror":                {"abi", "internal/wire"},
	"internal/conformance":           {"abi", "gateway/chain", "gateway/hosts", "internal/conformance/mockhost"},
	"internal/conformance/mockhost":  {"abi"},
	"internal/leak":                  {},
	"internal/logbook":               {},
	"internal/parity":                {},
	"internal/parity/allowing":       {"guest"},
	"internal/need":                  {},
	"internal/nearest":               {},
	"internal/processgroup":          {},
	"internal/wasmtest":              {"abi"},
	"internal/hostile":               {"abi", "internal/wasmtest"},
	"internal/tracecontext":          {},
	"internal/filelock":              {},
	"internal/private":               {},
	"internal/guestbuild":            {"internal/filelock", "internal/private"},
	"internal/guestbuild/buildguest": {"internal/guestbuild"},
	"internal/config":                {"abi", "internal/nearest", "internal/wire"},
	"internal/door":                  {"abi"},
	"internal/house":                 {},
	"internal/telemetry":             {"abi", "internal/wire", "gateway/chain", "gateway/relay"},
	"runtime/meter":                  {},
	"runtime/memory":                 {},
	"runtime/cache":                  {"internal/filelock", "internal/private"},
	"runtime/store":                  {},
	"runtime/trust":                  {},
	"runtime":                        {"abi", "internal/wire", "runtime/meter", "runtime/memory", "runtime/store"},
	"runtime/wazero":                 {"runtime", "runtime/meter", "runtime/memory", "internal/filelock", "internal/private"},
	"runtime/wasmtime":               {"runtime", "runtime/meter", "runtime/memory"},
	"runtime/library":                {"abi", "internal/wire", "runtime", "runtime/trust"},
	"runtime/server":                 {"abi", "internal/wire", "internal/tracecontext", "internal/door"},
	"gateway/chain":                  {"abi", "internal/nearest", "internal/wire"},
	"gateway/hosts":                  {"abi", "internal/wire", "internal/sse", "internal/processgroup", "internal/tracecontext", "gateway/chain"},
	"gateway/relay":                  {"abi", "internal/wire"},
	"gateway/streamable":             {"abi", "internal/wire", "internal/sse", "internal/mirror", "gateway/relay"},
	"gateway/proxy":                  {"abi", "internal/wire", "internal/sse", "internal/mirror", "gateway/relay"},
	"gateway/expose":                 {"abi", "internal/wire", "gateway/chain"},
	"gateway":                        {"abi", "internal/wire", "internal/processgroup", "internal/tracecontext", "gateway/chain", "gateway/relay"},
	"gateway/middleware":             {"abi", "internal/wire", "internal/tracecontext", "gateway", "gateway/relay"},
	"cmd/weir": {"abi", "internal/wire", "internal/config", "internal/door", "internal/guestbuild", "runtime", "runtime/cache", "runtime/wazero", "runtime/wasmtime",
		"runtime/library", "runtime/server", "runtime/store", "runtime/trust", "gateway", "gateway/chain", "gateway/hosts", "gateway/relay",
		"gateway/streamable", "gateway/proxy", "gateway/expose", "internal/telemetry"},
	"examples": {"abi", "guest", "runtime", "runtime/cache", "runtime/wazero", "runtime/library", "runtime/server", "gateway", "gateway/chain", "gateway/hosts",
		"gateway/middleware"},
	// What the examples' tests share runs modules natively and in the sandbox, and the commands of READMEs.
	"examples/internal": {"abi", "guest/guesttest", "internal/guestbuild", "internal/need", "internal/processgroup", "runtime", "runtime/cache", "runtime/wazero",
		"runtime/library", "runtime/store"},
}

// standardOnly are the rooms that import nothing but the standard library.
var standardOnly = []string{"abi", "guest", "internal/wire", "internal/sse", "internal/mirror", "internal/nearest", "internal/tracecontext", "runtime/meter", "runtime/store", "runtime/trust"}

type listed struct {
	ImportPath, Name, Dir, Doc string
	Imports, IgnoredGoFiles    []string
}

func packages(t *testing.T) (all []listed) {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Name,Dir,Doc,Imports,IgnoredGoFiles", module+"/...").Output()
	require.NoError(t, err)
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		var p listed
		require.NoError(t, dec.Decode(&p))
		for _, file := range p.IgnoredGoFiles {
			if !strings.HasSuffix(file, "_test.go") {
				p.Imports = append(p.Imports, importsOf(t, filepath.Join(p.Dir, file))...)
			}
		}
		all = append(all, p)
	}
	return all
}

// importsOf reads the imports of a file that is not in this build: one of another
// system, or behind a tag whose dependencies are not to be downloaded for this.
func importsOf(t *testing.T, file string) (imports []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	require.NoError(t, err)
	for _, spec := range parsed.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		require.NoError(t, err)
		imports = append(imports, imported)
	}
	return imports
}

// roomOf is the entry of arrows that a package falls under.
func roomOf(t *testing.T, pkg string) string {
	t.Helper()
	for room := pkg; room != "."; room = path.Dir(room) {
		if _, ok := arrows[room]; ok {
			return room
		}
	}
	t.Fatalf("%s is in no room: give it one in arrows and in CONTRIBUTING.md", pkg)
	return ""
}

func TestArrowsRunOneWay(t *testing.T) {
	used := map[string]bool{}
	for _, p := range packages(t) {
		pkg := strings.TrimPrefix(p.ImportPath, module+"/")
		room := roomOf(t, pkg)
		for _, imported := range p.Imports {
			ours, ok := strings.CutPrefix(imported, module+"/")
			if !ok {
				continue
			}
			into := roomOf(t, ours)
			if into == room {
				continue
			}
			require.Contains(t, arrows[room], into, "%s imports %s", pkg, ours)
			used[room+" → "+into] = true
		}
	}
	// An arrow that nobody goes along is a door that was left open.
	var open []string
	for room, allowed := range arrows {
		for _, into := range allowed {
			if arrow := room + " → " + into; !used[arrow] {
				open = append(open, arrow)
			}
		}
	}
	require.Empty(t, open, "take these arrows away")
}

func TestTheBottomStandsOnTheStandardLibrary(t *testing.T) {
	for _, p := range packages(t) {
		pkg := strings.TrimPrefix(p.ImportPath, module+"/")
		for _, room := range standardOnly {
			if pkg != room {
				continue
			}
			for _, imported := range p.Imports {
				first, _, _ := strings.Cut(imported, "/")
				require.False(t, strings.Contains(first, ".") && !strings.HasPrefix(imported, module+"/"), "%s imports %s", pkg, imported)
			}
		}
	}
}
