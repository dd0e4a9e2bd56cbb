package hosts

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/chain"
	"github.com/weir-mcp/weir/internal/logbook"
)

var errRefused = &unreachable{errors.New("connection refused")}

func TestBreakerOpensOnTransportFailuresOnly(t *testing.T) {
	answer := errors.New("interceptors/list failed: method not found")
	for name, c := range map[string]struct {
		attempts []error
		open     bool
	}{
		"nothing yet":                     {nil, false},
		"twice":                           {[]error{errRefused, errRefused}, false},
		"three times":                     {[]error{errRefused, errRefused, errRefused}, true},
		"as often as it likes":            {[]error{errRefused, errRefused, errRefused, errRefused, errRefused}, true},
		"what it answers is another case": {[]error{answer, answer, answer, answer, answer}, false},
		"an answer begins anew":           {[]error{errRefused, errRefused, answer, errRefused, errRefused}, false},
		"an answer closes it":             {[]error{errRefused, errRefused, errRefused, answer}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var b breaker
			for _, err := range c.attempts {
				b = b.after(err)
			}
			require.Equal(t, c.open, b.open())
			require.Equal(t, len(c.attempts), b.failures)
		})
	}
}

func TestBreakerPausesGrowAndDiffer(t *testing.T) {
	var b breaker
	longest := firstPause
	for range 100 {
		b = b.after(errRefused)
		seen := map[time.Duration]bool{}
		for range 50 {
			pause := b.pause()
			require.GreaterOrEqual(t, pause, longest/2)
			require.LessOrEqual(t, pause, longest)
			seen[pause] = true
		}
		require.Greater(t, len(seen), 10, "gateways do not come back together")
		longest = min(2*longest, longestPause)
	}
}

// scripted is a source whose answers a test gives.
type scripted struct {
	answer chan error // of list; nil is a list
	asked  chan struct{}
	life   bool
	failed error // of invoke
}

func newScripted() *scripted {
	return &scripted{answer: make(chan error, 100), asked: make(chan struct{}, 1000), life: true}
}

func (s *scripted) list(ctx context.Context) (offer, error) {
	s.asked <- struct{}{}
	select {
	case err := <-s.answer:
		if err != nil {
			return offer{}, err
		}
		return offer{interceptors: []abi.Descriptor{{Name: "guard", Type: abi.Validation, Hooks: abi.On(abi.Request, "*")}}}, nil
	case <-ctx.Done():
		return offer{}, &unreachable{ctx.Err()}
	}
}

func (s *scripted) invoke(context.Context, abi.Invocation) (abi.Result, error) {
	return abi.Result{}, s.failed
}
func (s *scripted) valid() bool                 { return s.life }
func (s *scripted) wayOut() string              { return "start it" }
func (s *scripted) close(context.Context) error { return nil }

func scriptedHost(o Options) (*Host, *scripted) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	h, s := newHost("h", o), newScripted()
	h.source = s
	return h, s
}

func TestBreakerOpenIsADiscoveryFailureAndHalfOpenProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logbook.Book
		h, src := scriptedHost(Options{Logger: log.Text()})
		s := NewSet([]*Host{h}, SetOptions{})
		defer s.Close(context.Background())
		require.Equal(t, []HostStatus{{Name: "h", Breaker: BreakerClosed}}, s.Status())

		for i := range openAfter {
			src.answer <- errRefused
			l, _ := s.Listings(t.Context())
			require.ErrorContains(t, l[0].Err, `host "h": connection refused: start it`)
			require.Equal(t, i+1 == openAfter, s.Status()[0].Breaker == BreakerOpen)
			time.Sleep(time.Until(h.state.Load().next))
			synctest.Wait()
		}
		asked := len(src.asked)
		require.Equal(t, openAfter+1, asked, "the keeper probes by itself")
		require.Equal(t, BreakerHalfOpen, s.Status()[0].Breaker)

		// One probe, and nobody waits for it.
		began := time.Now()
		for range 100 {
			l, version := s.Listings(t.Context())
			require.Error(t, l[0].Err)
			require.NotZero(t, version)
			_, err := h.Invoke(t.Context(), invocation(`{}`))
			require.NoError(t, err)
		}
		require.Zero(t, time.Since(began))
		require.Len(t, src.asked, asked)

		src.answer <- errors.New("interceptors/list failed: internal error") // it is there, but not well
		synctest.Wait()
		require.Equal(t, BreakerClosed, s.Status()[0].Breaker)
		require.False(t, s.Status()[0].Up)

		src.answer <- nil
		time.Sleep(longestPause)
		l, _ := s.Listings(t.Context())
		require.NoError(t, l[0].Err)
		st := s.Status()[0]
		require.True(t, st.Up)
		require.Equal(t, 1, st.Listed)
		require.EqualValues(t, openAfter+1, st.Failures)
		require.EqualValues(t, openAfter+2, st.Attempts)
		require.EqualError(t, st.LastError, "interceptors/list failed: internal error")
		require.Equal(t, 1, log.Count("the host cannot be listed", "breaker=closed", `wayOut="start it"`, "connection refused"))
		require.Equal(t, 1, log.Count("the host cannot be listed", "breaker=open"))
		require.Equal(t, 1, log.Count("the host answers again"))
	})
}

// Whatever becomes of invocations, the breaker does not count them: that would
// be a client's way to switch a guard off.
func TestBreakerDoesNotCountCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, src := scriptedHost(Options{FailOpen: true})
		s := NewSet([]*Host{h}, SetOptions{})
		defer s.Close(context.Background())
		src.answer <- nil
		_, version := s.Listings(t.Context())
		for _, reason := range []abi.Reason{abi.ReasonTimeout, abi.ReasonUnavailable, abi.ReasonTrap, abi.ReasonBadOutput, abi.ReasonCancelled} {
			src.failed = abi.Failed("guard", abi.Request, reason, errors.New("no"))
			for range 1000 {
				_, err := h.Invoke(t.Context(), invocation(`{}`))
				require.Equal(t, reason, failed(t, err).Reason)
			}
		}
		l, after := s.Listings(t.Context())
		require.NoError(t, l[0].Err)
		require.Equal(t, version, after)
		require.Equal(t, BreakerClosed, s.Status()[0].Breaker)
	})
}

// The keeper fetches lists before they are too old: no operation waits, however
// seldom they come.
func TestKeeperFetchesListsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, src := scriptedHost(Options{})
		s := NewSet([]*Host{h}, SetOptions{})
		defer s.Close(context.Background())
		for range 20 {
			src.answer <- nil
		}
		s.Listings(t.Context())
		time.Sleep(10 * DefaultFresh)
		synctest.Wait()
		require.InDelta(t, 11, len(src.asked), 1)
		began := time.Now()
		l, version := s.Listings(t.Context())
		require.NoError(t, l[0].Err)
		require.EqualValues(t, 2, version, "the same list")
		require.Zero(t, time.Since(began))
		require.LessOrEqual(t, s.Status()[0].Age, DefaultFresh)
	})
}

// A list that cannot be fetched again stays in force until it is twice as old as
// it should get, and the host is not pestered meanwhile.
func TestKeeperAListStaysForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logbook.Book
		h, src := scriptedHost(Options{Logger: log.Text()})
		s := NewSet([]*Host{h}, SetOptions{})
		defer s.Close(context.Background())
		src.answer <- nil
		s.Listings(t.Context())
		answer := errors.New("busy")
		for range 50 {
			src.answer <- answer
		}
		time.Sleep(2*DefaultFresh - time.Second)
		for range 1000 {
			l, _ := s.Listings(t.Context())
			require.NoError(t, l[0].Err)
		}
		require.Less(t, len(src.asked), 30)
		require.True(t, s.Status()[0].Up)
		require.Equal(t, 1, log.Count("stays in force for a while"))
		time.Sleep(longestPause)
		l, _ := s.Listings(t.Context())
		require.ErrorIs(t, l[0].Err, answer)
		require.False(t, s.Status()[0].Up)
	})
}

// A required interceptor blocks even where its dead host fails open.
func TestRequiredUnderADeadHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, src := scriptedHost(Options{FailOpen: true})
		s := NewSet([]*Host{h}, SetOptions{})
		defer s.Close(context.Background())
		policy, err := chain.NewPolicy([]chain.Entry{{Interceptor: "guard", Required: true}})
		require.NoError(t, err)
		for range 10 {
			src.answer <- errRefused
			time.Sleep(longestPause)
			l, _ := s.Listings(t.Context())
			require.Error(t, l[0].Err)
			require.Empty(t, chain.NewPlan(l, nil, abi.ToolsCall, abi.Request, abi.Sending, "").Failures(), "it fails open")
			failures := chain.NewPlan(l, policy, abi.ToolsCall, abi.Request, abi.Sending, "").Failures()
			require.NotEmpty(t, failures)
			require.Equal(t, "guard", failures[0].Interceptor)
		}
		require.NotEqual(t, BreakerClosed, s.Status()[0].Breaker)
	})
}
