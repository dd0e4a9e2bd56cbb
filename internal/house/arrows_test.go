package house

import (
	"encoding/json"
	"os/exec"
	"path"
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
	"internal/leak":                  {},
	"internal/logbook":               {},
	"internal/need":                  {},
	"internal/processgroup":          {},
	"internal/wasmtest":              {"abi"},
	"internal/filelock":              {},
	"internal/private":               {},
	"internal/guestbuild":            {"internal/filelock", "internal/private"},
	"internal/guestbuild/buildguest": {"internal/guestbuild"},
	"internal/config":                {"abi", "internal/wire"},
	"internal/house":                 {},
	"runtime/meter":                  {},
	"runtime/memory":                 {},
	"runtime/cache":                  {"internal/filelock", "internal/private"},
	"runtime/store":                  {},
	"runtime/trust":                  {},
	"runtime":                        {"abi", "internal/wire", "runtime/meter", "runtime/memory", "runtime/store"},
	"runtime/wazero":                 {"runtime", "runtime/meter", "runtime/memory", "internal/filelock", "internal/private"},
	"runtime/library":                {"abi", "internal/wire", "runtime", "runtime/trust"},
	"runtime/server":                 {"abi", "internal/wire"},
	"gateway/chain":                  {"abi", "internal/wire"},
	"gateway/hosts":                  {"abi", "internal/wire", "internal/processgroup", "gateway/chain"},
	"gateway/relay":                  {"abi", "internal/wire"},
	"gateway":                        {"abi", "internal/wire", "internal/processgroup", "gateway/chain", "gateway/relay"},
	"cmd/weir": {"abi", "internal/wire", "internal/config", "internal/guestbuild", "runtime", "runtime/cache", "runtime/wazero",
		"runtime/library", "runtime/server", "runtime/store", "runtime/trust", "gateway", "gateway/chain", "gateway/hosts", "gateway/relay"},
	"examples": {"abi", "guest", "runtime/library", "runtime/server"},
	// What the examples' tests share runs modules natively and in the sandbox.
	"examples/internal": {"abi", "guest/guesttest", "internal/guestbuild", "runtime", "runtime/cache", "runtime/wazero", "runtime/library", "runtime/store"},
}

// standardOnly are the rooms that import nothing but the standard library.
var standardOnly = []string{"abi", "guest", "internal/wire", "runtime/meter", "runtime/store", "runtime/trust"}

type listed struct {
	ImportPath, Name, Dir, Doc string
	Imports                    []string
}

func packages(t *testing.T) (all []listed) {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Name,Dir,Doc,Imports", module+"/...").Output()
	require.NoError(t, err)
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		var p listed
		require.NoError(t, dec.Decode(&p))
		all = append(all, p)
	}
	return all
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
