package runtime

import (
	"context"
	"time"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/runtime/meter"
)

// A guest gets its fuel in slices, after each of which the host looks at the
// clock. The first is small, so that it takes little time on any engine; each
// next one is larger or smaller by how long the last took. What a call spends
// does not depend on it.
const (
	firstSlice = 1 << 16 // 3 to 25 µs of compiled code, or 1 ms of interpreted
	mostSlice  = 1 << 22 // 200 µs of code whose dearest ways are rarely taken
	leastSlice = 1 << 10

	shortSlice = 250 * time.Microsecond // the next one is larger
	longSlice  = time.Millisecond       // the next one is smaller
)

// tank is the fuel of a run of a guest. What the guest has left is in a global
// of its instance, from which its code takes the cost of what it does next; the
// tank knows the rest.
type tank struct {
	until  deadline
	budget int64 // what may be spent; 0 when only time counts
	spent  int64 // besides what the guest has in its global
	given  int64 // what that was when it was last filled
	size   int64 // of a slice
	since  time.Time
	gauge  Global
	stack  *stackRoom // nil for none
}

// fill begins a run in an instance with that global. It gives out the first
// slice at once, so that a short call never asks. It fails when there is no room
// for the stack that the run may need.
func (t *tank) fill(gauge Global, stack *stackRoom, until deadline, budget int64) (err error) {
	defer recoverFault(&err)
	*t = tank{until: until, budget: budget, size: firstSlice, gauge: gauge, stack: stack}
	given, err := t.slice()
	t.gauge.Set(uint64(given))
	return err
}

// slice takes the next slice out of the tank.
func (t *tank) slice() (given int64, err error) {
	given = t.size
	if t.budget > 0 {
		given = min(given, t.budget-t.spent)
	}
	t.given, err = t.stack.reserve(given)
	return t.given, err
}

// refuel answers a guest that has used up its slice and left is what it has,
// less than nothing.
func (t *tank) refuel(ctx context.Context, left int64) (int64, error) {
	t.spent += t.given - left
	t.given = 0
	now := time.Now()
	if f := t.until.passedAt(ctx, now); f != nil {
		return 0, f
	}
	if t.budget > 0 && t.spent > t.budget {
		return 0, t.empty()
	}
	if !t.since.IsZero() {
		switch took := now.Sub(t.since); {
		case took < shortSlice:
			t.size = min(2*t.size, mostSlice)
		case took > longSlice:
			t.size = max(t.size/2, leastSlice)
		}
	}
	t.since = now
	return t.slice()
}

// settle says at the end of a run whether what the host did last for the guest
// was more than the budget had left.
func (t *tank) settle() (err error) {
	defer recoverFault(&err)
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
