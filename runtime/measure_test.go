package runtime

import (
	"context"
	"encoding/binary"
	"testing"

	"github.com/weir-mcp/weir/abi"
)

// Measured makes a call of a reactor in its captured state, and tells with the
// answer what fuel it has spent.
func Measured(m *Module, inv abi.Invocation) (output []byte, fuel int64, err error) {
	until := within(m.limits.CallTime)
	c := m.newCall(abi.AppendCall(nil, &inv))
	ctx := c.context(context.Background())
	g, err := m.borrow(ctx, c, until)
	if err != nil {
		return nil, 0, err
	}
	if err := c.begin(g, until, m.limits.Fuel); err != nil {
		panic(err)
	}
	defer c.end()
	err = m.enact(ctx, c, g)
	fuel = c.tank.spent + c.tank.given - int64(g.fuel.Get())
	m.giveBack(g, err == nil)
	if err != nil {
		return nil, fuel, failureOf(err).as(inv)
	}
	return c.output, fuel, nil
}

// MeasuredStack makes a call of a reactor, and tells the largest stack that it
// was seen to have, in bytes, and the most that it ever had beyond what was
// charged for it. One that grows has with it the one before, of half the size,
// which an engine has while it copies; of one that does not, only what was
// touched counts, where the system tells (touched).
func MeasuredStack(m *Module, inv abi.Invocation, touched func(stack uint64) uint64) (largest, uncharged uint64, err error) {
	until := within(m.limits.CallTime)
	c := m.newCall(abi.AppendCall(nil, &inv))
	ctx := c.context(context.Background())
	g, err := m.borrow(ctx, c, until)
	if err != nil {
		return 0, 0, err
	}
	if err := c.begin(g, until, m.limits.Fuel); err != nil {
		return 0, 0, err
	}
	next := int64(0)
	look := func() {
		size, grows := g.instance.Stack()
		all := size + size/2
		if !grows {
			if c.stack.units < next {
				return // to look takes long
			}
			next = 2 * c.stack.units
			size = touched(size)
			all = size
		}
		largest = max(largest, size)
		if charged := c.stack.charge.Bytes(); all > charged {
			uncharged = max(uncharged, all-charged)
		}
	}
	c.stack.instance = lookingInstance{g.instance, look}
	if err = m.enact(ctx, c, g); err != nil {
		err = failureOf(err).as(inv)
	}
	next = 0
	look()
	c.end()
	m.giveBack(g, err == nil)
	return largest, uncharged, err
}

// lookingInstance looks before the stack is charged for anew.
type lookingInstance struct {
	Instance
	look func()
}

func (i lookingInstance) Stack() (uint64, bool) {
	i.look()
	return i.Instance.Stack()
}

// as makes an [abi.Error] of a failure.
func (f *failure) as(inv abi.Invocation) error {
	return abi.Failed(inv.Name, inv.Phase, f.reason, f.cause)
}

// Repeatable has the guests of engines that are made from now on draw the same
// randomness and see a clock that stands still, until the test ends.
func Repeatable(t *testing.T) {
	for i := range wasiFuncs {
		f := &wasiFuncs[i]
		was := f.Call
		switch f.Name {
		case "random_get":
			f.Call = func(ctx context.Context, m Memory, words []uint64) error {
				b, ok := m.Read(uint32(words[0]), uint32(words[1]))
				for n := range b {
					b[n] = byte(n*7 + 1)
				}
				words[0] = errnoFault
				if ok {
					words[0] = errnoSuccess
				}
				return nil
			}
		case "clock_time_get":
			f.Call = func(ctx context.Context, m Memory, words []uint64) error {
				b, ok := m.Read(uint32(words[2]), 8)
				words[0] = errnoFault
				if ok {
					binary.LittleEndian.PutUint64(b, uint64(clockEpoch))
					words[0] = errnoSuccess
				}
				return nil
			}
		default:
			continue
		}
		t.Cleanup(func() { f.Call = was })
	}
}
