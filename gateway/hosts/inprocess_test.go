package hosts_test

import (
	"context"
	"errors"
	"log/slog"
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

// A host that fails open and does not answer is waited for no longer than its
// operations can bear, and once it is known to be down not at all.
func TestHostThatFailsOpenIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := sick{asked: make(chan struct{}, 10)}
		s := hosts.NewSet([]*hosts.Host{hosts.InProcess("legacy", down, hosts.Options{FailOpen: true, Logger: discard})}, hosts.SetOptions{})
		defer s.Close(t.Context())

		began := time.Now()
		listings, version := s.Listings(t.Context())
		require.ErrorContains(t, listings[0].Err, "has not answered yet")
		require.NotZero(t, version)
		require.Equal(t, 2*time.Second, time.Since(began))
		for range 100 {
			time.Sleep(time.Second)
			began = time.Now()
			listings, version = s.Listings(t.Context())
			require.Error(t, listings[0].Err)
			require.NotZero(t, version)
			require.Zero(t, time.Since(began), "nobody waited")
		}
		require.Greater(t, len(down.asked), 3, "and yet it is being tried")
	})
}

// One that is slow the first time, and fails open, is in the plan as soon as it
// answers.
func TestHostThatFailsOpenMayBeLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := loading{whole: make(chan struct{})}
		s := hosts.NewSet([]*hosts.Host{hosts.InProcess("slow", l, hosts.Options{FailOpen: true, Logger: discard})}, hosts.SetOptions{})
		defer s.Close(t.Context())
		listings, before := s.Listings(t.Context())
		require.Error(t, listings[0].Err)
		close(l.whole)
		synctest.Wait()
		listings, after := s.Listings(t.Context())
		require.NoError(t, listings[0].Err)
		require.Greater(t, after, before)
	})
}

var discard = slog.New(slog.DiscardHandler)
