package runtime

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Grants is what a module may reach beyond its own memory (abi.md "What a
// module can reach"). The zero value grants nothing.
type Grants struct {
	// Clock opens the real wall-clock time, in steps of 1 ms.
	Clock bool
	// Env is the environment that the guest sees.
	Env map[string]string
}

func (g Grants) validate() error {
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

// grantImports are the functions of module "weir" that need a grant, with the
// grant's name.
var grantImports = map[string]string{
	"kv_get": "kv", "kv_set": "kv", "kv_add": "kv", "kv_delete": "kv",
	"http": "http",
}

// grantLine is what the operator would write under grants: to open it.
var grantLine = map[string]string{
	"kv":   "kv: {scope: principal}",
	"http": `http: ["https://api.example.com"]`,
}

// configLine is the line of weir.yaml that would open the grant to the file.
func configLine(file, grant string) string {
	return fmt.Sprintf("files: {%s: {grants: {%s}}}", file, grantLine[grant])
}
