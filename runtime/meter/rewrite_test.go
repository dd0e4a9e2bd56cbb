package meter_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/weir-mcp/weir/runtime/meter"
)

// generous are options that change nothing that a small module could notice.
var generous = meter.Options{MemoryPages: meter.MaxPages, TableElements: 10_000_000}

// rewritten parses and rewrites a module, and parses what came out.
func rewritten(tb testing.TB, b []byte, o meter.Options) (*meter.Rewritten, *meter.Module) {
	tb.Helper()
	m, err := meter.Parse(b)
	require.NoError(tb, err)
	r, err := m.Rewrite(o)
	require.NoError(tb, err)
	out, err := meter.Parse(r.Binary)
	require.NoError(tb, err)
	return r, out
}

// instance meters a module and makes an instance of it in the engine's compiler
// or interpreter.
func instance(tb testing.TB, ctx context.Context, config wazero.RuntimeConfig, b []byte, o meter.Options) api.Module {
	tb.Helper()
	r, _ := rewritten(tb, b, o)
	i, err := engine(tb, config).InstantiateWithConfig(ctx, r.Binary, wazero.NewModuleConfig().WithStartFunctions())
	require.NoError(tb, err)
	return i
}

// eachMode runs a test on the engine's compiler and on its interpreter.
func eachMode(t *testing.T, f func(t *testing.T, config wazero.RuntimeConfig)) {
	t.Run("compiler", func(t *testing.T) { f(t, wazero.NewRuntimeConfigCompiler()) })
	t.Run("interpreter", func(t *testing.T) { f(t, wazero.NewRuntimeConfigInterpreter()) })
}

func TestReservedNames(t *testing.T) {
	for name, b := range map[string][]byte{
		"the import itself":        module(section(secType, vec(fn([]byte{i64}, []byte{i64}))), section(secImport, vec(cat("weir:meter", "exhausted", byte(0), 0)))),
		"a module of the prefix":   module(section(secType, vec(fn(nil, nil))), section(secImport, vec(cat("weir:", "f", byte(0), 0)))),
		"the fuel":                 module(section(secGlobal, vec(cat(i64, byte(1), byte(0x42), 0, end))), section(secExport, vec(cat("weir:fuel", byte(3), 0)))),
		"an export of the prefix":  module(memory(), section(secExport, vec(cat("weir:", byte(2), 0)))),
		"a name that is unprinted": module(memory(), section(secExport, vec(cat("weir:\x00\x1b[2J", byte(2), 0)))),
	} {
		t.Run(name, func(t *testing.T) {
			m, err := meter.Parse(b)
			require.NoError(t, err)
			_, err = m.Rewrite(generous)
			require.ErrorIs(t, err, meter.ErrReserved)
			require.NotContains(t, err.Error(), "\x1b")
		})
	}
	t.Run("like them, but not reserved", func(t *testing.T) {
		rewritten(t, module(section(secType, vec(fn(nil, nil))), section(secImport, vec(cat("weir", "weir:", byte(0), 0))),
			section(secExport, vec(cat("weir_abi_v1", byte(0), 0)))), generous)
	})
}

func TestMemoryAndTableLimits(t *testing.T) {
	limits := func(l ...int) []byte { // minimum, maximum
		if len(l) == 1 {
			return cat(byte(0), l[0])
		}
		return cat(byte(1), l[0], l[1])
	}
	for name, c := range map[string]struct {
		limits           []byte
		limit            uint32
		room             bool
		memory, declared meter.Limits // what holds, what the output declares
		refused          bool
	}{
		"no maximum gets the operator's":      {limits(1), 10, false, meter.Limits{Min: 1, Max: 10, HasMax: true}, meter.Limits{Min: 1, Max: 10, HasMax: true}, false},
		"a lower maximum stays":               {limits(1, 5), 10, false, meter.Limits{Min: 1, Max: 5, HasMax: true}, meter.Limits{Min: 1, Max: 5, HasMax: true}, false},
		"a higher maximum is lowered":         {limits(1, 50), 10, false, meter.Limits{Min: 1, Max: 10, HasMax: true}, meter.Limits{Min: 1, Max: 10, HasMax: true}, false},
		"room for a reset is one page":        {limits(1, 5), 10, true, meter.Limits{Min: 1, Max: 5, HasMax: true}, meter.Limits{Min: 1, Max: 6, HasMax: true}, false},
		"room above the operator's limit":     {limits(10), 10, true, meter.Limits{Min: 10, Max: 10, HasMax: true}, meter.Limits{Min: 10, Max: 11, HasMax: true}, false},
		"no room above the format's limit":    {limits(1), meter.MaxPages, true, meter.Limits{Min: 1, Max: 65536, HasMax: true}, meter.Limits{Min: 1, Max: 65536, HasMax: true}, false},
		"beginning at the limit":              {limits(10), 10, false, meter.Limits{Min: 10, Max: 10, HasMax: true}, meter.Limits{Min: 10, Max: 10, HasMax: true}, false},
		"beginning above the limit":           {limits(11), 10, false, meter.Limits{}, meter.Limits{}, true},
		"the zero options allow no memory":    {limits(1), 0, false, meter.Limits{}, meter.Limits{}, true},
		"a limit above the format's is no-op": {limits(1), 1 << 30, false, meter.Limits{Min: 1, Max: 65536, HasMax: true}, meter.Limits{Min: 1, Max: 65536, HasMax: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := meter.Parse(module(section(secMemory, vec(c.limits))))
			require.NoError(t, err)
			r, err := m.Rewrite(meter.Options{MemoryPages: c.limit, ResetRoom: c.room})
			if c.refused {
				require.ErrorIs(t, err, meter.ErrLimit)
			} else {
				require.NoError(t, err)
				require.Equal(t, c.memory, r.Memory.Limits)
				out, err := meter.Parse(r.Binary)
				require.NoError(t, err)
				require.Equal(t, c.declared, out.Memory.Limits)
			}
			if c.room || c.limit > meter.MaxPages || c.limit == meter.MaxPages {
				return
			}
			m, err = meter.Parse(module(section(secTable, vec(cat(funcref, byte(0), 0), cat(externref, c.limits)))))
			require.NoError(t, err)
			r, err = m.Rewrite(meter.Options{TableElements: c.limit})
			if c.refused {
				require.ErrorIs(t, err, meter.ErrLimit)
				return
			}
			require.NoError(t, err)
			out, err := meter.Parse(r.Binary)
			require.NoError(t, err)
			require.Equal(t, c.declared, out.Tables[1].Limits)
			require.Equal(t, meter.Limits{Max: c.limit, HasMax: true}, out.Tables[0].Limits)
		})
	}
}

// TestGrowth: growth past a limit gives -1, is noted, and costs nothing by
// length; growth within it is charged by what it gave.
func TestGrowth(t *testing.T) {
	b := module(
		section(secType, vec(fn([]byte{i32}, []byte{i32}))),
		section(secFunction, vec(u(0), u(0), u(0))),
		section(secTable, vec(cat(funcref, byte(0), 0), cat(externref, byte(0), 1))),
		section(secMemory, vec(cat(byte(0), 1))),
		section(secExport, vec(cat("memory", byte(0), 0), cat("funcs", byte(0), 1), cat("externs", byte(0), 2))),
		section(secCode, vec(
			body(byte(0x20), 0, byte(0x40), byte(0)),
			body(byte(0xd0), funcref, byte(0x20), 0, byte(0xfc), 15, 0),
			body(byte(0xd0), externref, byte(0x20), 0, byte(0xfc), 15, 1),
		)),
	)
	eachMode(t, func(t *testing.T, config wazero.RuntimeConfig) {
		ctx, tank := fueled(unlimited, 1<<40)
		i := instance(t, ctx, config, b, meter.Options{MemoryPages: 4, TableElements: 100})
		refused := i.ExportedGlobal(meter.ExportRefused).(api.MutableGlobal)
		grow := func(what string, by uint32) (before int32, cost int64) {
			spent := tank.used(fuel(i))
			results, err := i.ExportedFunction(what).Call(ctx, uint64(by))
			require.NoError(t, err)
			return int32(results[0]), tank.used(fuel(i)) - spent
		}
		for _, c := range []struct {
			what         string
			by           uint32
			before       int32
			units        int64
			refusedSoFar uint64
		}{
			{"memory", 0, 1, 0, 0},
			{"memory", 2, 1, 2 << 16 / meter.BytesPerUnit, 0},
			{"memory", 2, -1, 0, meter.RefusedMemory},
			{"memory", 0xffffffff, -1, 0, meter.RefusedMemory},
			{"memory", 1, 3, 1 << 16 / meter.BytesPerUnit, meter.RefusedMemory},
			{"funcs", 100, 0, 100, meter.RefusedMemory},
			{"funcs", 1, -1, 0, meter.RefusedMemory | meter.RefusedTable},
			{"externs", 99, 1, 99, meter.RefusedMemory | meter.RefusedTable},
			{"externs", 1, -1, 0, meter.RefusedMemory | meter.RefusedTable},
		} {
			before, cost := grow(c.what, c.by)
			require.Equal(t, c.before, before, "%v", c)
			require.GreaterOrEqual(t, cost, c.units, "%v", c)
			require.Less(t, cost, c.units+200, "%v", c)
			require.Equal(t, c.refusedSoFar, refused.Get(), "%v", c)
		}
		refused.Set(0)
		require.Zero(t, refused.Get())
	})
}

func TestStart(t *testing.T) {
	// The start function writes 7 to memory at 0.
	b := module(
		section(secType, vec(fn(nil, nil))),
		section(secFunction, vec(u(0))),
		memory(),
		section(secExport, vec(cat("memory", byte(2), 0))),
		section(secStart, 0),
		section(secCode, vec(body(byte(0x41), 0, byte(0x41), 7, byte(0x3a), 0, 0))),
	)
	eachMode(t, func(t *testing.T, config wazero.RuntimeConfig) {
		written := func(i api.Module) byte {
			b, ok := i.Memory().ReadByte(0)
			require.True(t, ok)
			return b
		}
		ctx, _ := fueled(unlimited, 1000)
		i := instance(t, ctx, config, b, generous)
		require.Equal(t, byte(7), written(i))
		require.Nil(t, i.ExportedFunction(meter.ExportStart))

		o := generous
		o.DeferStart = true
		r, out := rewritten(t, b, o)
		require.True(t, r.DeferredStart)
		require.Nil(t, out.Start)
		i = instance(t, ctx, config, b, o)
		require.Zero(t, written(i))
		_, err := i.ExportedFunction(meter.ExportStart).Call(ctx)
		require.NoError(t, err)
		require.Equal(t, byte(7), written(i))
	})
	o := generous
	o.DeferStart = true
	r, _ := rewritten(t, module(), o)
	require.False(t, r.DeferredStart, "there is nothing to defer")
}

// TestADeferredStartDeclaresNothing: a function may be named by ref.func only if
// something outside of bodies names it, and being the start function does not
// count. To export it would.
func TestADeferredStartDeclaresNothing(t *testing.T) {
	b := module(section(secType, vec(fn(nil, nil))), section(secFunction, vec(u(0))), section(secStart, 0),
		section(secCode, vec(body(byte(0xd2), 0, byte(0x1a)))))
	o := generous
	o.DeferStart = true
	r, _ := rewritten(t, b, o)
	e := engine(t, wazero.NewRuntimeConfigInterpreter())
	_, err := e.CompileModule(context.Background(), b)
	require.Error(t, err)
	_, err = e.CompileModule(context.Background(), r.Binary)
	require.Error(t, err)
}

func TestRestorability(t *testing.T) {
	code := func(parts ...any) []byte { return section(secCode, vec(body(parts...))) }
	base := func(sections ...[]byte) []byte {
		return module(append([][]byte{section(secType, vec(fn(nil, nil)))}, sections...)...)
	}
	function := section(secFunction, vec(u(0)))
	table := section(secTable, vec(cat(funcref, byte(0), 1)))
	three := cat(byte(0x41), 0, byte(0x41), 0, byte(0x41), 0)
	for name, c := range map[string]struct {
		module  []byte
		reasons []string
	}{
		"nothing":                  {module(), nil},
		"memory and numbers":       {base(memory(), section(secGlobal, vec(cat(i32, byte(1), byte(0x41), 0, end)))), nil},
		"a table that is read":     {base(function, table, code(byte(0x41), 0, byte(0x25), 0, byte(0x1a))), nil},
		"memory.init":              {base(function, memory(), section(secDataCount, 1), code(three, byte(0xfc), 8, 0, byte(0)), section(secData, vec(cat(1, "x")))), nil},
		"an immutable reference":   {base(section(secGlobal, vec(cat(externref, byte(0), byte(0xd0), externref, end)))), nil},
		"an imported constant":     {base(section(secImport, vec(cat("m", "g", byte(3), i32, byte(0))))), nil},
		"table.set":                {base(function, table, code(byte(0x41), 0, byte(0xd0), funcref, byte(0x26), 0)), []string{"uses table.set"}},
		"table.grow":               {base(function, table, code(byte(0xd0), funcref, byte(0x41), 0, byte(0xfc), 15, 0, byte(0x1a))), []string{"uses table.grow"}},
		"table.fill":               {base(function, table, code(byte(0x41), 0, byte(0xd0), funcref, byte(0x41), 0, byte(0xfc), 17, 0)), []string{"uses table.fill"}},
		"table.copy, twice":        {base(function, table, code(three, byte(0xfc), 14, 0, 0, three, byte(0xfc), 14, 0, 0)), []string{"uses table.copy"}},
		"table.init and elem.drop": {base(function, table, section(secElement, vec(cat(1, byte(0), vec(u(0))))), code(three, byte(0xfc), 12, 0, 0, byte(0xfc), 13, 0)), []string{"uses elem.drop", "uses table.init"}},
		"data.drop":                {base(function, memory(), section(secDataCount, 1), code(byte(0xfc), 9, 0), section(secData, vec(cat(1, "x")))), []string{"uses data.drop"}},
		"an exported table":        {base(table, section(secExport, vec(cat("t", byte(1), 0)))), []string{"exports a table"}},
		"an imported table":        {base(section(secImport, vec(cat("m", "t", byte(1), funcref, byte(0), 1)))), []string{"imports a table"}},
		"imported memory":          {base(section(secImport, vec(cat("m", "m", byte(2), byte(0), 1)))), []string{"imports its memory"}},
		"an imported variable":     {base(section(secImport, vec(cat("m", "g", byte(3), i32, byte(1))))), []string{"imports a mutable global"}},
		"variables of other types": {base(section(secGlobal, vec(
			cat(externref, byte(1), byte(0xd0), externref, end),
			cat(funcref, byte(1), byte(0xd0), funcref, end),
			cat(byte(0x7b), byte(1), byte(0xfd), 12, make([]byte, 16), end),
		))), []string{"has a mutable global of type externref", "has a mutable global of type funcref", "has a mutable global of type v128"}},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := rewritten(t, c.module, generous)
			require.Equal(t, c.reasons, r.Unrestorable)
			require.Equal(t, len(c.reasons) == 0, r.Restorable())
		})
	}
}

func TestSavedGlobals(t *testing.T) {
	b := module(
		section(secImport, vec(cat("m", "g", byte(3), i32, byte(0)))),
		section(secGlobal, vec(
			cat(i32, byte(1), byte(0x41), 5, end),
			cat(i64, byte(0), byte(0x42), 0, end),
			cat(i64, byte(1), byte(0x42), 6, end),
			cat(externref, byte(1), byte(0xd0), externref, end),
			cat(byte(0x7d), byte(1), byte(0x43), make([]byte, 4), end),
			cat(byte(0x7c), byte(1), byte(0x44), make([]byte, 8), end),
		)),
		section(secExport, vec(cat("mine", byte(3), 1))),
	)
	r, out := rewritten(t, b, generous)
	require.Equal(t, []meter.SavedGlobal{
		{Export: "weir:global:1", Type: meter.I32}, {Export: "weir:global:3", Type: meter.I64},
		{Export: "weir:global:5", Type: meter.F32}, {Export: "weir:global:6", Type: meter.F64},
	}, r.Globals)
	exports := map[string]uint32{}
	for _, e := range out.Exports {
		exports[e.Name] = e.Index
	}
	require.Equal(t, map[string]uint32{
		"mine": 1, "weir:global:1": 1, "weir:global:3": 3, "weir:global:5": 5, "weir:global:6": 6,
		meter.ExportFuel: 7, meter.ExportRefused: 8,
	}, exports)
}

func TestIndexesAreShifted(t *testing.T) {
	r, out := rewritten(t, rich(), generous)
	require.Empty(t, out.Custom)
	require.Equal(t, meter.Import{
		Module: meter.ImportModule, Name: meter.ImportName, Kind: meter.KindFunc, Index: 1,
		Type: meter.FuncType{Params: []meter.ValueType{meter.I64}, Results: []meter.ValueType{meter.I64}},
	}, out.Imports[len(out.Imports)-1])
	require.Equal(t, uint32(2), out.Exports[0].Index, "the function that was 1")
	require.Equal(t, uint32(0), *out.Start, "an imported one stays")
	require.Equal(t, []string{"exports a table", "uses elem.drop", "uses table.copy", "uses table.init", "uses data.drop"}, []string{r.Unrestorable[0], r.Unrestorable[2], r.Unrestorable[3], r.Unrestorable[4], r.Unrestorable[1]})
}

// TestAtOnce: the same module and options give the same bytes, to several
// goroutines at once, and leave the module as it was.
func TestAtOnce(t *testing.T) {
	for _, b := range [][]byte{rich(), guest(t)} {
		m, err := meter.Parse(b)
		require.NoError(t, err)
		before := bytes.Clone(b)
		memory := m.CompileMemory
		results := make(chan []byte)
		for range 4 {
			go func() {
				r, err := m.Rewrite(generous)
				if err != nil {
					results <- nil
					return
				}
				results <- r.Binary
			}()
		}
		one := <-results
		require.NotEmpty(t, one)
		for range 3 {
			require.True(t, bytes.Equal(one, <-results))
		}
		require.True(t, bytes.Equal(before, b))
		require.Equal(t, memory, m.CompileMemory)
	}
}

func BenchmarkRewrite(b *testing.B) {
	m, err := meter.Parse(guest(b))
	require.NoError(b, err)
	b.SetBytes(int64(len(m.Stripped())))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.Rewrite(generous); err != nil {
			b.Fatal(err)
		}
	}
}
