package library

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Each time it takes twice as long until the next attempt, up to a minute.
func TestPause(t *testing.T) {
	var pauses []time.Duration
	for failures := range 9 {
		pauses = append(pauses, pause(time.Second, failures)/time.Second)
	}
	require.Equal(t, []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60}, pauses)
	require.Equal(t, time.Minute, pause(time.Hour, 0))
	require.Equal(t, time.Minute, pause(time.Nanosecond, math.MaxInt))
}
