package library

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// A folder on a network that has gone never answers: opening it ends with its
// context all the same.
func TestFolderThatDoesNotAnswer(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	asked := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	err := await(ctx, "/mnt/gone", func(string) error {
		close(asked)
		<-release
		return nil
	})
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "/mnt/gone does not answer")
	require.ErrorIs(t, New(Options{Loader: LoaderFunc(nil)}).Open(ctx, t.TempDir()), context.Canceled, "over before it began")

	no := errors.New("no")
	require.ErrorIs(t, await(t.Context(), "dir", func(string) error { return no }), no)
}
