package meter_test

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/weir-mcp/weir/runtime/meter"
)

// observed is all that can be told of a run from outside.
type observed struct {
	result  string
	memory  uint32 // its checksum
	globals string
}

// observe calls "run" and looks at what it left.
func observe(ctx context.Context, i api.Module, globals []meter.SavedGlobal, a, b uint64) (o observed, noFuel bool) {
	results, err := i.ExportedFunction("run").Call(ctx, a, b)
	if errors.Is(err, errNoFuel) {
		return o, true
	}
	if err != nil {
		o.result = firstLine(err)
	} else {
		o.result = fmt.Sprint(results)
	}
	memory, _ := i.Memory().Read(0, i.Memory().Size())
	o.memory = crc32.ChecksumIEEE(memory)
	var s strings.Builder
	for _, g := range globals {
		fmt.Fprint(&s, i.ExportedGlobal(g.Export).Get(), " ")
	}
	o.globals = s.String()
	return o, false
}

// withGlobals is the generated module with its globals exported as the
// rewriting does, but not metered: what to compare with.
func withGlobals(tb testing.TB, b []byte, globals []meter.SavedGlobal) []byte {
	tb.Helper()
	exports := [][]byte{cat("run", byte(0), 0), cat("memory", byte(2), 0)}
	for i, g := range globals {
		exports = append(exports, cat(strings.Replace(g.Export, "weir:", "plain:", 1), byte(3), i))
	}
	return replaceSection(tb, b, secExport, vec(exports...))
}

// replaceSection gives a module with other contents of one section.
func replaceSection(tb testing.TB, b []byte, id byte, content []byte) []byte {
	tb.Helper()
	out := header()
	found := false
	for at := range eachSection(b) {
		if b[at.start] == id {
			out = append(out, section(id, content)...)
			found = true
		} else {
			out = append(out, b[at.start:at.end]...)
		}
	}
	require.True(tb, found)
	return out
}

// differ runs a generated module metered and not, on both modes of the engine.
// It reports whether it ended within the budget.
func differ(t *testing.T, seed uint64) bool {
	b := generate(seed)
	r, _ := rewritten(t, b, generous)
	plain := withGlobals(t, b, r.Globals)
	plainGlobals := make([]meter.SavedGlobal, len(r.Globals))
	for i, g := range r.Globals {
		plainGlobals[i].Export = strings.Replace(g.Export, "weir:", "plain:", 1)
	}
	const budget = 2_000_000
	var used []int64
	for mode, config := range []wazero.RuntimeConfig{wazero.NewRuntimeConfigCompiler(), wazero.NewRuntimeConfigInterpreter()} {
		e := engine(t, config)
		// What it costs does not depend on how it is handed out.
		ctx, tank := fueled(budget, []int64{1000, 77_777}[mode])
		metered, err := e.InstantiateWithConfig(ctx, r.Binary, wazero.NewModuleConfig().WithName("metered"))
		require.NoError(t, err, "seed %d", seed)
		unmetered, err := e.InstantiateWithConfig(ctx, plain, wazero.NewModuleConfig().WithName("plain"))
		require.NoError(t, err, "seed %d", seed)
		before := int64(0)
		for k := range uint64(2) {
			got, noFuel := observe(ctx, metered, r.Globals, k*0x1234567, seed)
			if noFuel {
				return false
			}
			want, _ := observe(ctx, unmetered, plainGlobals, k*0x1234567, seed)
			require.Equal(t, want, got, "seed %d, mode %d", seed, mode)

			now := tank.used(fuel(metered))
			ticks := int64(metered.ExportedGlobal(r.Globals[tickGlobal].Export).Get())
			require.GreaterOrEqual(t, now, 4*ticks, "seed %d: more ran than was charged", seed)
			used = append(used, now-before)
			before = now
		}
		require.NoError(t, e.Close(ctx))
	}
	require.Equal(t, used[:2], used[2:], "seed %d: the engine's modes charge different fuel", seed)
	return true
}

// TestGeneratedPrograms: a metered program does what it did unmetered, and pays
// for what it does, the same on both modes of the engine.
func TestGeneratedPrograms(t *testing.T) {
	programs := uint64(volume(300, 100, 25))
	ended := 0
	for seed := range programs {
		if differ(t, seed) {
			ended++
		}
	}
	require.Greater(t, ended, int(programs)/2)
	t.Logf("%d of %d ended within their budget", ended, programs)
}

// FuzzDifferential is the same from any seed.
func FuzzDifferential(f *testing.F) {
	f.Add(uint64(1))
	f.Add(uint64(1 << 40))
	f.Fuzz(func(t *testing.T, seed uint64) { differ(t, seed) })
}
