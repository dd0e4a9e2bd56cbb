package meter_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/weir-mcp/weir/runtime/meter"
)

// scriptCommand is a line of a specification test with what it does.
type scriptCommand struct {
	Type       string `json:"type"`
	Line       int    `json:"line"`
	Name       string `json:"name"`
	As         string `json:"as"`
	Filename   string `json:"filename"`
	ModuleType string `json:"module_type"`
	Action     struct {
		Type   string        `json:"type"`
		Module string        `json:"module"`
		Field  string        `json:"field"`
		Args   []scriptValue `json:"args"`
	} `json:"action"`
}

type scriptValue struct {
	Type     string `json:"type"`
	LaneType string `json:"lane_type"`
	Value    any    `json:"value"`
}

// words encodes a value as the engine wants it.
func (v scriptValue) words(t *testing.T) []uint64 {
	t.Helper()
	parse := func(s any) uint64 {
		n, err := strconv.ParseUint(s.(string), 10, 64)
		require.NoError(t, err)
		return n
	}
	switch v.Type {
	case "v128":
		bits := map[string]int{"i8": 8, "i16": 16, "i32": 32, "i64": 64, "f32": 32, "f64": 64}[v.LaneType]
		var w [2]uint64
		for i, lane := range v.Value.([]any) {
			at := i * bits
			w[at/64] |= parse(lane) << (at % 64)
		}
		return w[:]
	case "externref", "funcref":
		if v.Value == "null" {
			return []uint64{0}
		}
		return []uint64{parse(v.Value) + 1}
	}
	return []uint64{parse(v.Value)}
}

// world runs the script of a specification test.
type world struct {
	engine    wazero.Runtime
	ctx       context.Context
	tank      *tank
	metered   bool
	dir       string
	instances map[string]api.Module
	last      api.Module
	// outcomes is what each command did, fuel what each that returned cost.
	outcomes []string
	fuel     map[int]int64
}

func newWorld(t *testing.T, config wazero.RuntimeConfig, spectest []byte, dir string, metered bool) *world {
	w := &world{engine: engine(t, config), metered: metered, dir: dir, instances: map[string]api.Module{}, fuel: map[int]int64{}}
	w.ctx, w.tank = fueled(unlimited, 5000)
	_, err := w.engine.InstantiateWithConfig(w.ctx, spectest, wazero.NewModuleConfig())
	require.NoError(t, err)
	return w
}

// binary reads a module, and meters it where the world is metered.
func (w *world) binary(t *testing.T, file string) ([]byte, error) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(w.dir, file))
	require.NoError(t, err)
	m, err := meter.Parse(b)
	if err != nil {
		return nil, err
	}
	if !w.metered {
		return m.Stripped(), nil
	}
	r, err := m.Rewrite(generous)
	if err != nil {
		return nil, err
	}
	_, err = meter.Parse(r.Binary)
	require.NoError(t, err, "the parser refuses what was rewritten of %s", file)
	return r.Binary, nil
}

// instantiate gives the first line of why it failed, or nothing.
func (w *world) instantiate(t *testing.T, file, name, registered string) string {
	t.Helper()
	b, err := w.binary(t, file)
	if err != nil {
		return "refused"
	}
	instance, err := w.engine.InstantiateWithConfig(w.ctx, b, wazero.NewModuleConfig().WithName(registered).WithStartFunctions())
	if err != nil {
		// What the engine says of an import names indexes, which are others.
		if _, trap, ok := strings.Cut(firstLine(err), "wasm error"); ok {
			return trap
		}
		return "not instantiated"
	}
	w.last = instance
	if name != "" {
		w.instances[name] = instance
	}
	return ""
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

func (w *world) run(t *testing.T, commands []scriptCommand) {
	t.Helper()
	for i, c := range commands {
		w.outcomes = append(w.outcomes, fmt.Sprintf("line %d %s: %s", c.Line, c.Type, w.outcome(t, i, commands)))
	}
}

func (w *world) outcome(t *testing.T, i int, commands []scriptCommand) string {
	t.Helper()
	c := commands[i]
	if c.ModuleType == "text" || c.Type == "register" {
		return ""
	}
	if c.Filename != "" {
		registered := ""
		if i+1 < len(commands) && commands[i+1].Type == "register" {
			registered = commands[i+1].As
		}
		if c.Type != "module" {
			last := w.last
			defer func() { w.last = last }()
		}
		return w.instantiate(t, c.Filename, c.Name, registered)
	}
	instance := w.last
	if c.Action.Module != "" {
		instance = w.instances[c.Action.Module]
	}
	if c.Action.Type == "get" {
		return fmt.Sprint(instance.ExportedGlobal(c.Action.Field).Get())
	}
	var args []uint64
	for _, a := range c.Action.Args {
		args = append(args, a.words(t)...)
	}
	before := w.spent(instance)
	results, err := instance.ExportedFunction(c.Action.Field).Call(w.ctx, args...)
	if err != nil {
		return firstLine(err)
	}
	w.fuel[i] = w.spent(instance) - before
	definitions := instance.ExportedFunction(c.Action.Field).Definition().ResultTypes()
	for k, typ := range definitions {
		// A reference is an address, if it is not null.
		if len(results) == len(definitions) && (typ == api.ValueTypeExternref || typ == 0x70) && results[k] != 0 {
			results[k] = 1
		}
	}
	return fmt.Sprint(results)
}

// spent is what the world has spent so far, by what the instance has left.
// Several instances spend in one script; those of the others are in the tank.
func (w *world) spent(instance api.Module) int64 {
	if !w.metered {
		return 0
	}
	if g := instance.ExportedGlobal(meter.ExportFuel); g != nil {
		return w.tank.used(int64(g.Get()))
	}
	return 0 // the host's own module
}

// touched are the scripts that run what the rewriting changes: control flow and
// calls, which are charged; growth and bulk operations, which are replaced;
// segments, which are joined; indexes, which are shifted; starts and links.
var touched = map[string]bool{
	"block": true, "br": true, "br_if": true, "br_table": true, "if": true, "loop": true, "return": true, "unreachable": true, "unwind": true,
	"call": true, "call_indirect": true, "return_call": true, "return_call_indirect": true, "fac": true, "func_ptrs": true,
	"memory_grow": true, "memory_copy": true, "memory_fill": true, "memory_init": true, "bulk": true,
	"table_copy": true, "table_fill": true, "table_grow": true, "table_init": true, "table_get": true, "table_set": true,
	"data": true, "elem": true, "global": true, "ref_func": true, "start": true, "exports": true, "imports": true, "linking": true, "names": true,
}

// TestRewrittenSpecificationSuites: every module of the specification suites
// does, rewritten, what it did before: each command of their scripts returns the
// same, traps for the same reason, or fails to link or to be instantiated alike;
// what was invalid stays so. The compiler and the interpreter charge the same
// fuel. Without -meter.long it is a fixed sample of the scripts, with all those
// that have to do with what the rewriting touches (of v1 only the sample: v2 has
// them all again).
func TestRewrittenSpecificationSuites(t *testing.T) {
	dir := specSuites(t)
	spectest, err := os.ReadFile(filepath.Join(dir, "testdata", "spectest.wasm"))
	require.NoError(t, err)
	for _, suite := range []string{"v1", "v2", "extended-const", "tail-call"} {
		t.Run(suite, func(t *testing.T) {
			scripts, err := filepath.Glob(filepath.Join(dir, suite, "testdata", "*.json"))
			require.NoError(t, err)
			require.NotEmpty(t, scripts)
			commands := 0
			for i, script := range scripts {
				if step := volume(1, 6, 24); i%step != 0 && (raced || suite == "v1" || !touched[strings.TrimSuffix(filepath.Base(script), ".json")]) {
					continue
				}
				raw, err := os.ReadFile(script)
				require.NoError(t, err)
				var s struct {
					Commands []scriptCommand `json:"commands"`
				}
				require.NoError(t, json.Unmarshal(raw, &s))
				commands += len(s.Commands)
				t.Run(filepath.Base(script), func(t *testing.T) {
					var fuel []map[int]int64
					modes := []wazero.RuntimeConfig{wazero.NewRuntimeConfigCompiler(), wazero.NewRuntimeConfigInterpreter()}
					if raced {
						modes = modes[:1]
					}
					for _, config := range modes {
						plain := newWorld(t, config, spectest, filepath.Dir(script), false)
						metered := newWorld(t, config, spectest, filepath.Dir(script), true)
						plain.run(t, s.Commands)
						metered.run(t, s.Commands)
						require.Equal(t, plain.outcomes, metered.outcomes)
						fuel = append(fuel, metered.fuel)
					}
					require.Equal(t, fuel[0], fuel[len(fuel)-1], "the compiler and the interpreter charge different fuel")
				})
			}
			t.Logf("%d commands", commands)
		})
	}
}
