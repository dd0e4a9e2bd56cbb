package streamable

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A request that finds its backend gone is not left waiting for it: it gets another
// one, or an error at once.
func TestNobodyEntersABackendThatIsGone(t *testing.T) {
	waiting := &exchange{wake: make(chan struct{}, 1)}
	w := &worker{exchanges: map[string]*exchange{}}
	_, ok := w.enter(waiting)
	require.True(t, ok)
	w.abandon()
	_, over, _ := waiting.next()
	require.True(t, over, "it is told")
	_, ok = w.enter(&exchange{})
	require.False(t, ok, "though nobody has closed the worker yet")
	require.False(t, w.hold())
}
