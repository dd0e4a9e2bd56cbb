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
	if err := c.tank.fill(g.fuel, until, m.limits.Fuel); err != nil {
		panic(err)
	}
	err = m.enact(ctx, c, g)
	fuel = c.tank.spent + c.tank.given - int64(g.fuel.Get())
	m.giveBack(g, err == nil)
	if err != nil {
		return nil, fuel, failureOf(err).as(inv)
	}
	return c.output, fuel, nil
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
