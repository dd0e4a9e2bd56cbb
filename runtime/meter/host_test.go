package meter_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/weir-mcp/weir/runtime/meter"
)

// errNoFuel is how the host of these tests ends a guest.
var errNoFuel = errors.New("out of fuel")

// tank is the host's side of metering, as small as it can be: it hands out
// slices of fuel until a budget is spent.
type tank struct {
	budget int64  // what may be spent
	slice  int64  // the most that is handed out at once
	spent  int64  // of what has come back
	out    int64  // what the guest was given last
	asked  func() // called with each question
}

const unlimited = math.MaxInt64 / 2

// refuel answers a guest that has left, which is below zero.
func (t *tank) refuel(left int64) int64 {
	if t.asked != nil {
		t.asked()
	}
	t.spent += t.out - left
	t.out = 0
	if t.spent > t.budget {
		panic(errNoFuel)
	}
	t.out = min(t.slice, t.budget-t.spent)
	return t.out
}

// used is what has been spent in all, when the guest has left of its last slice.
func (t *tank) used(left int64) int64 { return t.spent + t.out - left }

type tankKey struct{}

// engine is a wazero runtime with the import of metered modules.
func engine(tb testing.TB, config wazero.RuntimeConfig) wazero.Runtime {
	tb.Helper()
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, config.WithCoreFeatures(acceptedFeatures))
	tb.Cleanup(func() { r.Close(ctx) })
	_, err := r.NewHostModuleBuilder(meter.ImportModule).NewFunctionBuilder().
		WithGoFunction(api.GoFunc(func(ctx context.Context, stack []uint64) {
			stack[0] = uint64(ctx.Value(tankKey{}).(*tank).refuel(int64(stack[0])))
		}), []api.ValueType{api.ValueTypeI64}, []api.ValueType{api.ValueTypeI64}).
		Export(meter.ImportName).Instantiate(ctx)
	require.NoError(tb, err)
	return r
}

// fueled is a context with a tank.
func fueled(budget, slice int64) (context.Context, *tank) {
	t := &tank{budget: budget, slice: slice}
	return context.WithValue(context.Background(), tankKey{}, t), t
}

// fuel is what an instance has left.
func fuel(m api.Module) int64 {
	return int64(m.ExportedGlobal(meter.ExportFuel).Get())
}
