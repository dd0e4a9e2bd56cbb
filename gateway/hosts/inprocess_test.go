package hosts_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/hosts"
)

// loading is a set that becomes whole when told to.
type loading struct {
	set
	whole chan struct{}
}

func (l loading) Ready(ctx context.Context) error {
	select {
	case <-l.whole:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A folder that is still loading has guards that cannot run yet: that is a
// failed discovery, and no list with fewer of them.
func TestSetThatIsStillLoadingIsNotListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := loading{whole: make(chan struct{})}
		s := hosts.NewSet([]*hosts.Host{hosts.InProcess("local", l, hosts.Options{})}, hosts.SetOptions{})
		defer s.Close(t.Context())

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		listings, version := s.Listings(ctx)
		require.Zero(t, version, "nothing to keep plans for")
		require.ErrorContains(t, listings[0].Err, "local")
		require.True(t, errors.Is(listings[0].Err, context.DeadlineExceeded))

		close(l.whole)
		listings, version = s.Listings(t.Context())
		require.NotZero(t, version)
		require.NoError(t, listings[0].Err)
		require.Equal(t, abi.SupportedEvents(l.List()), abi.SupportedEvents(listings[0].Interceptors))
	})
}
