package runtime

import (
	"context"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/runtime/meter"
)

// fuelSlice is how much fuel a guest gets at once: after that it asks the host,
// which looks at the clock. Compiled code takes some 0.4 ms for it, interpreted
// code 20.
const fuelSlice = 1 << 20

// tank is the fuel of a run of a guest. What the guest has left is in a global
// of its instance, from which its code takes the cost of what it does next; the
// tank knows the rest.
type tank struct {
	until  deadline
	budget int64 // what may be spent; 0 when only time counts
	spent  int64 // besides what the guest has in its global
	given  int64 // what that was when it was last filled
	gauge  Global
}

// fill begins a run in an instance with that global. It gives out the first
// slice at once, so that a short call never asks.
func (t *tank) fill(gauge Global, until deadline, budget int64) {
	*t = tank{until: until, budget: budget, gauge: gauge}
	t.gauge.Set(uint64(t.slice()))
}

// slice takes the next slice out of the tank.
func (t *tank) slice() int64 {
	t.given = fuelSlice
	if t.budget > 0 {
		t.given = min(t.given, t.budget-t.spent)
	}
	return t.given
}

// refuel answers a guest that has used up its slice and left is what it has,
// less than nothing.
func (t *tank) refuel(ctx context.Context, left int64) (int64, error) {
	t.spent += t.given - left
	t.given = 0
	if f := t.until.passed(ctx); f != nil {
		return 0, f
	}
	if t.budget > 0 && t.spent > t.budget {
		return 0, t.empty()
	}
	return t.slice(), nil
}

// settle says at the end of a run whether what the host did last for the guest
// was more than the budget had left.
func (t *tank) settle() error {
	if left := int64(t.gauge.Get()); t.budget > 0 && t.spent+t.given-left > t.budget {
		return t.empty()
	}
	return nil
}

func (t *tank) empty() *failure {
	return failuref(abi.ReasonFuel, "the budget of %d units of fuel is spent", t.budget)
}

// charge takes for work that the host does on the guest's behalf, which is
// proportional to so many bytes, what the guest would have paid for a copy of
// them. The guest pays with its next step.
func (t *tank) charge(bytes int) {
	if bytes >= meter.BytesPerUnit {
		t.gauge.Set(t.gauge.Get() - uint64(bytes/meter.BytesPerUnit))
	}
}

// hostExhausted is the function that metered code calls without fuel.
func hostExhausted(ctx context.Context, _ Memory, words []uint64) error {
	fuel, err := callOf(ctx).tank.refuel(ctx, int64(words[0]))
	words[0] = uint64(fuel)
	return err
}
