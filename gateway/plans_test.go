package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway"
	"github.com/weir-mcp/weir/gateway/chain"
	"github.com/weir-mcp/weir/gateway/relay"
)

// A plan is made once for each event, phase, direction and protocol version, and
// anew when the lists change.
func TestPlansAreKeptWhileTheListsStay(t *testing.T) {
	s := words(watcher("a"))
	g, _ := newGateway(t, s, nil)
	plan := func(scope relay.Scope) *chain.Plan { return g.Plan(t.Context(), scope) }
	scopes := []relay.Scope{
		{Event: "tools/call", Phase: abi.Request},
		{Event: "tools/call", Phase: abi.Response},
		{Event: "tools/call", Phase: abi.Request, Direction: abi.Receiving},
		{Event: "tools/call", Phase: abi.Request, ProtocolVersion: "2025-11-25"},
		{Event: "tools/list", Phase: abi.Request},
	}
	made := map[*chain.Plan]bool{}
	for _, scope := range scopes {
		first := plan(scope)
		require.Same(t, first, plan(scope))
		made[first] = true
	}
	require.Len(t, made, len(scopes))
	s.put(watcher("a")) // a change to the same
	require.True(t, made[plan(scopes[0])])
	s.put(watcher("a"), watcher("b"))
	changed := plan(scopes[0])
	require.False(t, made[changed])
	require.Len(t, changed.Steps(), 2)
	require.Same(t, changed, plan(scopes[0]))
}

// What matches nothing is told at start, and follows the lists: each change is
// logged once, and a metric can ask at any time.
func TestWhatMatchesNothingFollowsTheLists(t *testing.T) {
	policy, err := chain.NewPolicy([]chain.Entry{
		{Interceptor: "guard", Source: "f:1"}, {Interceptor: "later", Source: "f:2"}, {Interceptor: "*", Hooks: abi.On(abi.Request, "ping"), Source: "f:3"},
	})
	require.NoError(t, err)
	s := words(watcher("guard"))
	g, l := newGateway(t, s, func(o *gateway.Options) { o.Policy = policy })
	require.NoError(t, g.Ready(t.Context()))
	sources := func() (list []string) {
		for _, u := range g.Unmatched() {
			list = append(list, u.Source)
		}
		return list
	}
	require.Equal(t, []string{"f:2", "f:3"}, sources())
	require.Equal(t, 1, l.Count("WARN", "f:2", "matches nothing"))
	require.Equal(t, 1, l.Count("WARN", "f:3", "match no event"))
	require.Zero(t, l.Count("f:1"))

	s.put(watcher("later"), watcher("other"))
	require.NoError(t, g.Ready(t.Context()))
	require.Equal(t, []string{"f:1", "f:3"}, sources())
	require.Equal(t, 1, l.Count("WARN", "f:1", "matches nothing"))
	require.Equal(t, 1, l.Count("INFO", "f:2", "matches now"))

	for range 3 {
		s.put(watcher("later"))
		require.NoError(t, g.Ready(t.Context()))
	}
	require.Equal(t, 1, l.Count("f:3"), "said once")
	require.Equal(t, 2, l.Count("WARN", "matches nothing"))
}

// What waits for a host that is down is told of at start, and again only when
// the host has answered without it.
func TestWhatWaitsForAHostIsToldOfOnce(t *testing.T) {
	policy, err := chain.NewPolicy([]chain.Entry{{Interceptor: "guard", Source: "f:1"}})
	require.NoError(t, err)
	h := &turns{}
	g, l := newGateway(t, words(), func(o *gateway.Options) { o.Hosts, o.Policy = h, policy })
	show := func(list chain.Listing) {
		h.version++
		h.listing = list
		g.Listings(t.Context())
	}
	down := chain.Listing{Host: &listener{name: "h"}, Err: errors.New("down")}
	show(down)
	require.Equal(t, 1, l.Count("WARN", "f:1", "so far"))
	require.True(t, g.Unmatched()[0].Pending)
	show(listing(&listener{name: "h"}, watcher("guard")))
	require.Empty(t, g.Unmatched())
	require.Equal(t, 1, l.Count("INFO", "f:1", "matches now"))
	show(down)
	require.Equal(t, 1, l.Count("WARN"), "the host is told of by itself")
	show(listing(&listener{name: "h"}, watcher("other")))
	require.Equal(t, 2, l.Count("WARN", "f:1"))
	require.False(t, g.Unmatched()[0].Pending)
}

// turns is a host whose list the test changes, one goroutine only.
type turns struct {
	listing chain.Listing
	version uint64
}

func (h *turns) Listings(context.Context) ([]chain.Listing, uint64) {
	return []chain.Listing{h.listing}, h.version
}
func (*turns) Close(context.Context) error { return nil }

// While lists change, nobody gets a plan with fewer interceptors than there were
// before or are after.
func TestPlansHammer(t *testing.T) {
	s := words(watcher("a"), watcher("always"))
	g, _ := newGateway(t, s, nil)
	stop, changed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(changed)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				s.put(watcher(fmt.Sprint("a", i%3)), watcher("always"))
			}
		}
	}()
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for j := range 500 {
				scope := relay.Scope{Event: fmt.Sprint("x/", j%20), Phase: abi.Request, ProtocolVersion: fmt.Sprintf("2025-11-%02d", 10+i)}
				steps := g.Plan(t.Context(), scope).Steps()
				if len(steps) != 2 || steps[1].Name != "always" {
					t.Errorf("%v", steps)
					return
				}
				g.Governs(relay.Scope{Phase: abi.Request, ProtocolVersion: scope.ProtocolVersion})
				g.Unmatched()
			}
		})
	}
	all.Wait()
	close(stop)
	<-changed
}
