package meter_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"

	"github.com/weir-mcp/weir/runtime/meter"
)

// judge compiles what the parser accepts, before and after the rewriting: the
// engine must agree with itself. It reports whether there was anything to judge,
// and what the engine found.
func judge(tb testing.TB, e wazero.Runtime, b []byte) (accepted, valid bool) {
	tb.Helper()
	m, err := meter.Parse(b)
	if err != nil {
		return false, false
	}
	ctx := context.Background()
	plain, before := e.CompileModule(ctx, m.Stripped())
	if before == nil {
		defer plain.Close(ctx)
	}
	r, err := m.Rewrite(generous)
	if err != nil {
		var refused *meter.Error
		require.ErrorAs(tb, err, &refused)
		return true, before == nil
	}
	metered, after := e.CompileModule(ctx, r.Binary)
	if after == nil {
		defer metered.Close(ctx)
	}
	require.Equal(tb, before == nil, after == nil, "before: %v\nafter: %v", before, after)
	return true, before == nil
}

// TestMutants: of modules with a few bytes changed, those that the parser
// accepts are rewritten without a panic, valid ones to valid ones and invalid
// ones to invalid ones: no index comes to mean what the rewriting has added, and
// no type is mended by it.
func TestMutants(t *testing.T) {
	e := engine(t, wazero.NewRuntimeConfigInterpreter())
	r := rand.New(rand.NewPCG(1, 2))
	seeds := [][]byte{rich()}
	for seed := range uint64(20) {
		seeds = append(seeds, generate(seed))
	}
	mutants := volume(20_000, 5_000, 1_000)
	accepted, valid := 0, 0
	for range mutants {
		seed := seeds[r.IntN(len(seeds))]
		b := append([]byte(nil), seed...)
		for range 1 + r.IntN(3) {
			at := 8 + r.IntN(len(b)-8)
			switch r.IntN(3) {
			case 0:
				b[at] = byte(r.Uint32())
			case 1:
				b[at] += byte(1 + r.IntN(3))
			default:
				b[at] ^= 1 << r.IntN(8)
			}
		}
		a, v := judge(t, e, b)
		if a {
			accepted++
		}
		if v {
			valid++
		}
	}
	t.Logf("%d mutants, %d accepted by the parser, %d of them valid", mutants, accepted, valid)
	require.Greater(t, accepted, mutants/20)
	require.Greater(t, accepted, valid, "some are invalid in a way that only the engine finds")
}

// FuzzRewrite is the same from any bytes.
func FuzzRewrite(f *testing.F) {
	f.Add(rich())
	f.Add(module())
	for seed := range uint64(4) {
		f.Add(generate(seed))
	}
	f.Add(work(body(forever(count)), body(byte(0x10), 0)))
	f.Add(module(section(secMemory, vec(cat(byte(0), 1))), section(secData, vec(at(0, "a"), at(9, "b")))))
	e := engine(f, wazero.NewRuntimeConfigInterpreter())
	f.Fuzz(func(t *testing.T, b []byte) { judge(t, e, b) })
}
