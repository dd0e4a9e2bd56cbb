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

// sick is a set whose list cannot be had, and takes its time to say so.
type sick struct {
	set
	asked chan struct{}
}

func (s sick) Ready(ctx context.Context) error {
	s.asked <- struct{}{}
	<-ctx.Done()
	return ctx.Err()
}

// A host that fails open and is known to be down is tried again behind the
// backs of those who go on without it.
func TestKnownBadHostThatFailsOpenIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := sick{asked: make(chan struct{}, 10)}
		s := hosts.NewSet([]*hosts.Host{hosts.InProcess("legacy", down, hosts.Options{FailOpen: true})}, hosts.SetOptions{})
		defer s.Close(t.Context())

		listings, _ := s.Listings(t.Context()) // the first attempt is waited for, until it is given up
		require.Error(t, listings[0].Err)
		require.Len(t, down.asked, 1)

		time.Sleep(10 * time.Second) // its pause is over
		before := time.Now()
		listings, version := s.Listings(t.Context())
		require.Error(t, listings[0].Err)
		require.NotZero(t, version)
		require.Zero(t, time.Since(before), "nobody waited")
		synctest.Wait()
		require.Len(t, down.asked, 2, "and yet it is being tried")
	})
}
