package leak

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func stuck(begun chan<- struct{}, release <-chan struct{}) {
	close(begun)
	<-release
}

func TestHoldingFindsGoroutinesByTheirStacks(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	go stuck(begun, release)
	<-begun
	require.Len(t, holding(stacks(), []string{"internal/leak.stuck("}), 1)
	require.Empty(t, holding(stacks(), []string{"nothing is called so("}))
	require.Empty(t, holding(stacks(), nil))
	Goroutines(t, "internal/leak.stuck(") // waits for it
	close(release)
}

func TestDescriptorsAreCounted(t *testing.T) {
	before := descriptors()
	if before == 0 {
		return // a system that does not tell
	}
	f, err := os.Open(os.DevNull)
	require.NoError(t, err)
	require.Equal(t, before+1, descriptors())
	require.NoError(t, f.Close())
	Descriptors(t)
}

func ExampleGoroutines() {
	_ = func(t *testing.T) {
		Goroutines(t, "weir/runtime/library.", "fsnotify.")
		// …
	}
}
