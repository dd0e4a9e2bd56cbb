package runtime

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/runtime/memory"
)

// Renew captures a module's state again, now, if it is one that can be.
func Renew(m *Module) {
	if m.way != memory.Fresh && m.enter() {
		m.renew()
	}
}

// CloseIdle closes all instances that wait for a call.
func CloseIdle(r *Runtime) { r.closeIdle() }

func TestWhenTheStateIsCapturedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r renewal
		due := func(calls int) (n int) {
			for range calls {
				if r.due(time.Now()) {
					n++
				}
			}
			return n
		}
		require.Zero(t, due(2*renewCalls), "there is nothing to be captured again, or it is under way")

		r.captured()
		require.Zero(t, due(2*renewCalls), "not before the pause")
		time.Sleep(renewPause)
		require.Equal(t, 1, due(2), "by the number of calls, and only once")

		r.captured()
		time.Sleep(renewAge * 3 / 4)
		require.Zero(t, due(1), "few calls")
		time.Sleep(renewAge / 4)
		require.Equal(t, 1, due(2))

		wait := renewPause
		for range 10 {
			require.Equal(t, wait, r.failed())
			time.Sleep(wait - time.Nanosecond)
			require.Zero(t, due(2*renewCalls))
			time.Sleep(time.Nanosecond)
			require.Equal(t, 1, due(2))
			wait = min(2*wait, renewAge)
		}
		require.Equal(t, renewAge, wait)

		r.captured()
		time.Sleep(renewAge)
		require.Equal(t, 1, due(2))
		require.Equal(t, renewPause, r.failed(), "a capture that works begins it anew")
	})
}

// Charge takes memory that a runtime's modules may have together.
func Charge(r *Runtime, bytes uint64) *memory.Charge {
	c := memory.NewCharge(r.account)
	if err := c.Set(bytes); err != nil {
		panic(err)
	}
	return &c
}
