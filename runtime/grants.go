package runtime

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-mcp/weir/abi"
)

// Grants is what a module may reach beyond its own memory (abi.md "What a
// module can reach"). The zero value grants nothing.
type Grants struct {
	// Clock opens the real wall-clock time, in steps of 1 ms.
	Clock bool
	// Env is the environment that the guest sees.
	Env map[string]string
	// KV opens the kv functions; nil does not.
	KV *KV
}

func (g Grants) validate() error {
	if g.KV != nil && g.KV.Scope != "" && !g.KV.Scope.Valid() {
		return fmt.Errorf("grant kv: there is no scope %q; it can be principal, session or module", g.KV.Scope)
	}
	for name, value := range g.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") {
			return fmt.Errorf("grant env: %q cannot be an environment variable", name)
		}
	}
	return nil
}

// environ is Env as WASI passes it, in a stable order.
func (g Grants) environ() []string {
	names := slices.Sorted(maps.Keys(g.Env))
	for i, name := range names {
		names[i] = name + "=" + g.Env[name]
	}
	return names
}

// opens reports whether the functions of a grant may be imported.
func (g Grants) opens(grant string) bool { return grant == grantKV && g.KV != nil }

const (
	grantKV   = "kv"
	grantHTTP = "http"
)

// grantImports are the functions of module "weir" that need a grant, with the
// grant's name.
var grantImports = map[string]string{
	abi.ImportKVGet: grantKV, abi.ImportKVSet: grantKV, abi.ImportKVAdd: grantKV, abi.ImportKVDelete: grantKV,
	"http": grantHTTP,
}

// grantLine is what the operator would write under grants: to open it.
var grantLine = map[string]string{
	grantKV:   "kv: {scope: principal}",
	grantHTTP: `http: ["https://api.example.com"]`,
}

// GrantLine is what opens a grant, such as one that [ImportFact] names, to a
// file: a line of its host's entry in weir.yaml.
func GrantLine(file, grant string) string {
	return fmt.Sprintf("files: {%s: {grants: {%s}}}", file, grantLine[grant])
}
