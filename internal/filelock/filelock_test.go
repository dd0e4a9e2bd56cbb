package filelock

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOneHolderAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := Try(path)
	require.NoError(t, err)
	second, err := Try(path)
	require.NoError(t, err)
	require.Nil(t, second)

	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(context.Canceled)
	_, err = Wait(ctx, path)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, path)

	first.Unlock()
	second, err = Wait(ctx, path)
	require.NoError(t, err, "what is free is taken, whatever the context")
	second.Unlock()
}

func TestAFolderThatIsMissing(t *testing.T) {
	_, err := Wait(context.Background(), filepath.Join(t.TempDir(), "missing", "lock"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestHammer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	var inside int // guarded by the lock alone: the race detector watches
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 5 {
				lock, err := Wait(context.Background(), path)
				if err != nil {
					t.Error(err)
					return
				}
				// The detector does not know file locks; TryLock fails if two are in.
				if !mu.TryLock() {
					t.Error("two hold the lock")
				}
				inside++
				mu.Unlock()
				lock.Unlock()
			}
		})
	}
	wg.Wait()
	require.Equal(t, 40, inside)
}

func ExampleTry() {
	dir, _ := os.MkdirTemp("", "filelock")
	defer os.RemoveAll(dir)
	lock, err := Try(filepath.Join(dir, "lock"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer lock.Unlock()
	other, _ := Try(filepath.Join(dir, "lock"))
	fmt.Println(other == nil)
	// Output: true
}
