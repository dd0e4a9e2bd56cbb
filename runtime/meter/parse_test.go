package meter_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"

	"github.com/weir-mcp/weir/runtime/meter"
)

var kinds = []error{meter.ErrNotWasm, meter.ErrComponent, meter.ErrTruncated, meter.ErrUnsupported, meter.ErrLimit, meter.ErrMalformed}

// requireRefused checks that a module is refused as one kind and no other, with
// a reason that says the given words.
func requireRefused(t *testing.T, b []byte, kind error, words string) *meter.Error {
	t.Helper()
	m, err := meter.Parse(b)
	require.Nil(t, m)
	var e *meter.Error
	require.ErrorAs(t, err, &e)
	for _, k := range kinds {
		require.Equal(t, k == kind, errors.Is(err, k), "%v is %v", err, k)
	}
	require.Contains(t, err.Error(), words)
	require.NotEmpty(t, e.Section)
	require.LessOrEqual(t, e.Offset, len(b))
	return e
}

func requireAccepted(t *testing.T, b []byte) *meter.Module {
	t.Helper()
	m, err := meter.Parse(b)
	require.NoError(t, err)
	return m
}

func TestDeclarationsOfAModule(t *testing.T) {
	m := requireAccepted(t, rich())
	require.Len(t, m.Types, 2)
	require.Equal(t, "() -> ()", m.Types[0].String())
	require.Equal(t, "(i32, i64) -> i32", m.Types[1].String())
	require.Equal(t, []meter.Import{
		{Module: "weir", Name: "f", Kind: meter.KindFunc, Index: 0, Type: m.Types[0]},
		{Module: "weir", Name: "g", Kind: meter.KindGlobal, Index: 0},
	}, m.Imports)
	require.Equal(t, 1, m.ImportedFunctions())
	require.Equal(t, []uint32{0, 0}, m.Functions)
	require.Equal(t, []meter.Export{
		{Name: "run", Kind: meter.KindFunc, Index: 1, Type: m.Types[0]},
		{Name: "memory", Kind: meter.KindMemory},
		{Name: "t", Kind: meter.KindTable},
		{Name: "g", Kind: meter.KindGlobal, Index: 1},
	}, m.Exports)
	require.Equal(t, []meter.Table{{Limits: meter.Limits{Min: 2, Max: 10, HasMax: true}, Element: meter.FuncRef}}, m.Tables)
	require.Equal(t, &meter.Memory{Limits: meter.Limits{Min: 1, Max: 2, HasMax: true}}, m.Memory)
	require.Equal(t, []meter.Global{{Type: meter.I32, Imported: true}, {Type: meter.I32, Mutable: true}}, m.Globals)
	require.Zero(t, *m.Start)
	require.Equal(t, 2, m.ElementSegments)
	require.Equal(t, 3, m.Elements)
	require.Equal(t, 1, m.DataSegments)
	require.Equal(t, []string{"producers", "name"}, m.Custom)
	require.Positive(t, m.LargestBody)
}

func TestImportedEntriesComeFirstInTheirSpaces(t *testing.T) {
	m := requireAccepted(t, module(
		section(secImport, vec(
			cat("h", "t", byte(1), externref, byte(0), 7),
			cat("h", "m", byte(2), byte(0), 3),
			cat("h", "g", byte(3), i64, byte(1)),
		)),
		section(secTable, vec(cat(funcref, byte(0), 1))),
		section(secGlobal, vec(cat(i32, byte(0), byte(0x41), 0, end))),
	))
	require.Equal(t, []meter.Table{
		{Limits: meter.Limits{Min: 7}, Element: meter.ExternRef, Imported: true},
		{Limits: meter.Limits{Min: 1}, Element: meter.FuncRef},
	}, m.Tables)
	require.Equal(t, &meter.Memory{Limits: meter.Limits{Min: 3}, Imported: true}, m.Memory)
	require.Equal(t, []meter.Global{{Type: meter.I64, Mutable: true, Imported: true}, {Type: meter.I32}}, m.Globals)
}

func TestLargestBodyCountsTheWholeBody(t *testing.T) {
	m := requireAccepted(t, module(
		section(secType, vec(fn(nil, nil))),
		section(secFunction, vec(u(0), u(0))),
		section(secCode, vec(body(bytes.Repeat([]byte{1}, 10)), body())),
	))
	require.Equal(t, 12, m.LargestBody, "the count of locals, ten instructions, the end")
}

func TestTheEmptyModuleIsAModule(t *testing.T) {
	m := requireAccepted(t, module())
	require.Equal(t, module(), m.Stripped())
}

func TestSignaturesCompareByTheirTypes(t *testing.T) {
	a := meter.FuncType{Params: []meter.ValueType{meter.I32}}
	require.True(t, a.Equal(meter.FuncType{Params: []meter.ValueType{meter.I32}, Results: []meter.ValueType{}}))
	require.False(t, a.Equal(meter.FuncType{Results: []meter.ValueType{meter.I32}}))
	require.Equal(t, "(i32) -> ()", a.String())
	require.Equal(t, "() -> (v128, externref)", meter.FuncType{Results: []meter.ValueType{meter.V128, meter.ExternRef}}.String())
}

func TestStrippedLeavesOutCustomSectionsOnly(t *testing.T) {
	plain := requireAccepted(t, rich()).Stripped()
	m := requireAccepted(t, plain)
	require.Empty(t, m.Custom)
	require.Equal(t, plain, m.Stripped(), "stripping twice changes nothing")

	custom := section(secCustom, "x", []byte{1})
	require.Equal(t, len(rich())-len(section(secCustom, "producers", []byte{1, 2, 3}))-len(section(secCustom, "name", []byte{0xff})), len(plain))
	require.Equal(t, module(memory()), requireAccepted(t, module(custom, custom, memory(), custom)).Stripped())
}

// The engine reads name sections with no care for the lengths in them.
func TestCustomSectionsAreNotLookedInto(t *testing.T) {
	bomb := section(secCustom, "name", byte(1), 5, []byte{0xff, 0xff, 0xff, 0xff, 0x0f})
	m := requireAccepted(t, module(memory(), bomb))
	require.Equal(t, module(memory()), m.Stripped())
}

func TestTheEngineTakesWhatIsAccepted(t *testing.T) {
	ctx := context.Background()
	engine := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(acceptedFeatures))
	defer engine.Close(ctx)
	_, err := engine.CompileModule(ctx, requireAccepted(t, rich()).Stripped())
	require.NoError(t, err)
}

func TestTruncatedAnywhereIsRefused(t *testing.T) {
	b, whole := rich(), richBoundaries()
	for n := range len(b) {
		_, err := meter.Parse(b[:n:n])
		switch {
		case slices.Contains(whole, n):
			// Cut between sections: what is left may be a module of its own.
			require.NotErrorIs(t, err, meter.ErrTruncated, "cut at %d", n)
		default:
			require.ErrorIs(t, err, meter.ErrTruncated, "cut at %d", n)
		}
	}
}

func TestAChangedByteNeverPanics(t *testing.T) {
	b := rich()
	for at := range b {
		for _, v := range []byte{0, 1, 0x0b, 0x40, 0x7f, 0x80, 0xfc, 0xfd, 0xff, b[at] ^ 1, b[at] + 1} {
			mutant := bytes.Clone(b)
			mutant[at] = v
			m, err := meter.Parse(mutant)
			require.Equal(t, err == nil, m != nil)
		}
	}
}

func TestErrorsSayWhatAndWhere(t *testing.T) {
	e := requireRefused(t, function(byte(0x20), 3), meter.ErrMalformed, "unknown local 3")
	require.Equal(t, "code", e.Section)
	require.Equal(t, 0, e.Function)
	require.Equal(t, len(function(byte(0x20), 3))-2, e.Offset)
	require.Equal(t, "malformed: code, function 0, offset 0x18: unknown local 3: there are 0", e.Error())

	e = requireRefused(t, module(section(secExport, vec(cat("x", byte(0), 9)))), meter.ErrMalformed, "unknown function 9")
	require.Equal(t, -1, e.Function)
	require.Equal(t, "export", e.Section)
}
