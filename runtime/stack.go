package runtime

import (
	"fmt"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/runtime/memory"
	"github.com/weir-mcp/weir/runtime/meter"
)

// The stack of a guest is memory of the host's, which engines take without
// asking. But a guest pays for its frames in fuel, so what its stack may come to
// until it next asks for fuel is known beforehand: that is charged to the account
// of all memories before each slice, and where there is little room for it the
// slice is smaller.
const (
	// stackPerUnit is how many bytes of stack a guest can have for one unit of
	// fuel: a frame is charged one for so many locals, none of which takes more
	// than 16 bytes. All else that is kept in a frame costs more.
	stackPerUnit = 16 * meter.LocalsPerUnit
	// stackGrowing: an engine whose stacks grow makes another of twice the size
	// while it still has the first.
	stackGrowing = 3
	// mostStack is what a call may have charged for a stack that grows: past it,
	// it fails for its stack, if the engine does not end it before.
	mostStack = 128 << 20
	// trimUnits is what a call may spend without that what it leaves of a stack
	// is given back: calls that short are too many to ask the system each time.
	trimUnits = 1 << 15
)

// stackRoom is what a run of a guest is charged for its stack. Nil is for runs
// that are not charged. It belongs to the goroutine that runs the guest.
type stackRoom struct {
	instance Instance
	charge   memory.Charge
	units    int64 // that there was room for, in all
	begun    bool
}

// reserve charges what the stack may come to until so many more units are spent,
// or fewer, as many as there is room for, and returns how many. A run whose stack
// does not grow can always go on.
func (s *stackRoom) reserve(units int64) (int64, error) {
	if s == nil {
		return units, nil
	}
	has, most, perUnit := uint64(s.units)*stackPerUnit, uint64(0), uint64(stackPerUnit)
	size, grows := s.instance.Stack()
	if grows {
		has, most, perUnit = stackGrowing*size, mostStack, stackGrowing*stackPerUnit
	} else if most = size; has >= most {
		return units, nil // it has all that it may take
	}
	least := has + perUnit*uint64(min(units, leastSlice))
	if least > most {
		if grows {
			return 0, failuref(abi.ReasonStack, "its stack has grown to %d MiB, with room for more it would pass %d MiB", size>>20, most>>20)
		}
		least = most
	}
	got := s.charge.Share(min(most, has+perUnit*uint64(units)))
	if got < least && !grows {
		// There is no room for all that it may have come to. What it has come to
		// takes longer to find out, and is mostly far less.
		has = min(most, s.instance.UsedStack())
		s.units = int64(has / perUnit)
		least = min(most, has+perUnit*uint64(min(units, leastSlice)))
		got = s.charge.Share(min(most, has+perUnit*uint64(units)))
	}
	if got < least {
		if err := s.charge.Set(least); err != nil {
			return 0, s.none(err)
		}
		got = least
	}
	if grows || got < most {
		units = min(units, int64((got-has)/perUnit))
	}
	s.units, s.begun = s.units+units, true
	return units, nil
}

// none is the failure of a run for whose stack there is no room. One that has
// not begun can be tried again; for one that has, it is its own stack.
func (s *stackRoom) none(err error) error {
	err = fmt.Errorf("its stack has %d KiB and may need more: %w", s.charge.Bytes()>>10, err)
	if !s.begun {
		return err
	}
	return &failure{reason: abi.ReasonStack, cause: err}
}

// begin fills the tank for a run in the guest, and charges the run for its
// stack. Who has begun a run ends it, or begins another.
func (c *call) begin(g *guest, until deadline, budget int64) error {
	c.end()
	c.stack = stackRoom{instance: g.instance, charge: memory.NewCharge(c.m.runtime.account)}
	err := c.tank.fill(g.fuel, &c.stack, until, budget)
	if err != nil {
		c.end()
	}
	return err
}

// end gives back what the run has left of its stack, and what it was charged.
func (c *call) end() {
	if c.stack.units > trimUnits {
		trimGuarded(c.stack.instance)
	}
	c.stack.charge.Free()
	c.stack.units = 0
}
