package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway"
	"github.com/weir-mcp/weir/gateway/chain"
	"github.com/weir-mcp/weir/gateway/hosts"
	"github.com/weir-mcp/weir/gateway/relay"
	"github.com/weir-mcp/weir/internal/logbook"
)

// adder is a host whose mutator writes down that it was there.
type adder string

func (a adder) Name() string { return string(a) }

func (a adder) Invoke(_ context.Context, inv abi.Invocation) (abi.Result, error) {
	end := len(inv.Payload) - len(`"]}`)
	payload := append(inv.Payload[:end:end], a+`",""]}`...)
	return abi.Result{Type: abi.Mutation, Interceptor: inv.Name, Phase: inv.Phase, Modified: true, Payload: payload}, nil
}

func adds(name string) chain.Listing {
	return listing(adder(name), abi.Descriptor{Name: "add", Type: abi.Mutation, Hooks: abi.On(abi.Request, "*")})
}

// open makes a resolved set of one key.
func open(key string, h gateway.Hosts) gateway.Resolved {
	return gateway.Resolved{Key: key, Open: func() (gateway.Hosts, error) { return h, nil }}
}

func call(payload string) gateway.Operation {
	return gateway.Operation{Event: abi.ToolsCall, Payload: json.RawMessage(payload)}
}

func TestResolvedHostsComeBehindTheConfiguredOnesInTheirOrder(t *testing.T) {
	c := newChain(t, gateway.ChainOptions{
		Hosts:  gateway.Fixed(adds("one"), adds("two")),
		Claims: []string{},
		Resolver: func(_ context.Context, op *gateway.Operation, c *abi.Context) (gateway.Resolved, error) {
			require.Equal(t, "files", op.Server)
			if c.Principal == nil {
				return gateway.Resolved{}, nil
			}
			require.Equal(t, `{"tenant":"acme"}`, string(c.Principal.Claims), "those that do not travel included")
			return open("acme", gateway.Fixed(adds("z"), adds("a"))), nil
		},
	})
	op := call(`{"name":"t","by":[""]}`)
	op.Server = "files"
	out := c.Execute(t.Context(), op)
	require.Equal(t, `{"name":"t","by":["one","two",""]}`, string(out.FinalPayload))

	op.Context = &abi.Context{Principal: &abi.Principal{Type: abi.PrincipalUser, ID: "u", Claims: json.RawMessage(`{"tenant":"acme"}`)}}
	out = c.Execute(t.Context(), op)
	require.Equal(t, `{"name":"t","by":["one","two","z","a",""]}`, string(out.FinalPayload))
	require.True(t, c.Governs(relay.Scope{Event: "prompts/get", Phase: abi.Response}), "whatever else the resolver may choose")
}

// changing is hosts whose list can be changed.
type changing struct {
	mu       sync.Mutex
	listings []chain.Listing
	version  uint64
}

func (c *changing) set(list ...chain.Listing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listings, c.version = list, c.version+1
}

func (c *changing) Listings(context.Context) ([]chain.Listing, uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.listings, c.version
}

func (*changing) Close(context.Context) error { return nil }

func TestPlansOfAResolvedSetAreKeptUntilAListChanges(t *testing.T) {
	configured, extra := &changing{}, &changing{}
	configured.set(adds("one"))
	extra.set(adds("two"))
	opened := 0
	c := newChain(t, gateway.ChainOptions{Hosts: configured, Resolver: func(context.Context, *gateway.Operation, *abi.Context) (gateway.Resolved, error) {
		return gateway.Resolved{Key: "k", Open: func() (gateway.Hosts, error) { opened++; return extra, nil }}, nil
	}})
	scope := relay.Scope{Event: abi.ToolsCall, Phase: abi.Request}
	by := func() string {
		out := c.Execute(t.Context(), call(`{"name":"t","by":[""]}`))
		require.True(t, out.Released())
		return string(out.FinalPayload)
	}
	require.Equal(t, `{"name":"t","by":["one","two",""]}`, by())
	first := c.ResolvedPlan("k", scope)
	require.NotNil(t, first)
	by()
	require.Same(t, first, c.ResolvedPlan("k", scope))

	extra.set(adds("two"), adds("three"))
	require.Equal(t, `{"name":"t","by":["one","two","three",""]}`, by())
	second := c.ResolvedPlan("k", scope)
	require.NotSame(t, first, second)

	configured.set(adds("zero"))
	require.Equal(t, `{"name":"t","by":["zero","two","three",""]}`, by())
	require.NotSame(t, second, c.ResolvedPlan("k", scope))
	require.Equal(t, 1, opened)
}

func TestAResolverThatFailsBlocks(t *testing.T) {
	hang := make(chan struct{})
	defer close(hang)
	for name, tt := range map[string]struct {
		resolve gateway.Resolver
		says    string
	}{
		"an error": {func(context.Context, *gateway.Operation, *abi.Context) (gateway.Resolved, error) {
			return gateway.Resolved{}, errors.New("directory down")
		}, "directory down"},
		"a panic": {func(context.Context, *gateway.Operation, *abi.Context) (gateway.Resolved, error) {
			panic("out of tenants")
		}, "out of tenants"},
		"no way to open": {func(context.Context, *gateway.Operation, *abi.Context) (gateway.Resolved, error) {
			return gateway.Resolved{Key: "k"}, nil
		}, "no way to open"},
		"a set that does not open": {func(context.Context, *gateway.Operation, *abi.Context) (gateway.Resolved, error) {
			return gateway.Resolved{Key: "k", Open: func() (gateway.Hosts, error) { return nil, errors.New("no certificate") }}, nil
		}, "no certificate"},
		"a set that is none": {func(context.Context, *gateway.Operation, *abi.Context) (gateway.Resolved, error) {
			return open("k", nil), nil
		}, "gave none"},
		"a set that panics": {func(context.Context, *gateway.Operation, *abi.Context) (gateway.Resolved, error) {
			return gateway.Resolved{Key: "k", Open: func() (gateway.Hosts, error) { panic("no disk") }}, nil
		}, "no disk"},
		"silence": {func(context.Context, *gateway.Operation, *abi.Context) (gateway.Resolved, error) {
			<-hang
			return gateway.Resolved{}, nil
		}, "not answered in time"},
		"a host that cannot be listed": {func(context.Context, *gateway.Operation, *abi.Context) (gateway.Resolved, error) {
			return open("k", gateway.Fixed(chain.Listing{Host: adder("two"), Err: errors.New("refused to connect")})), nil
		}, "refused to connect"},
		"a host with a configured one's name": {func(context.Context, *gateway.Operation, *abi.Context) (gateway.Resolved, error) {
			return open("k", gateway.Fixed(adds("one"))), nil
		}, "another host has this name"},
	} {
		t.Run(name, func(t *testing.T) {
			book := &logbook.Book{}
			c, err := gateway.NewChain(gateway.ChainOptions{Hosts: gateway.Fixed(adds("one")), Resolver: tt.resolve, Logger: book.JSON(), Timeout: time.Second})
			require.NoError(t, err)
			for range 2 { // a failure is not kept
				op := call(`{"name":"t","by":[""]}`)
				if name == "silence" {
					op.Arrived = time.Now().Add(50*time.Millisecond - time.Second)
				}
				out := c.Execute(t.Context(), op)
				require.Equal(t, abi.StatusDiscoveryFailed, out.Status)
				require.Nil(t, out.FinalPayload)
			}
			require.Contains(t, book.String(), tt.says)
			require.NoError(t, c.Close(context.Background()))
		})
	}
}

func TestWhatIsNotGovernedIsNotResolved(t *testing.T) {
	c := newChain(t, gateway.ChainOptions{Hosts: gateway.Fixed(), Events: []string{"tools/*"},
		Resolver: func(context.Context, *gateway.Operation, *abi.Context) (gateway.Resolved, error) {
			return gateway.Resolved{}, errors.New("down")
		}})
	out := c.Execute(t.Context(), gateway.Operation{Event: abi.PromptsGet})
	require.True(t, out.Released())
	out = c.Execute(t.Context(), gateway.Operation{Event: "ping"})
	require.True(t, out.Released())
}

// tenants is a resolver that opens a set for each session, and keeps them.
type tenants struct {
	mu     sync.Mutex
	sets   map[string]*closer
	opened int
	// list is what each set offers.
	list chain.Listing
}

func (r *tenants) resolve(_ context.Context, _ *gateway.Operation, c *abi.Context) (gateway.Resolved, error) {
	return gateway.Resolved{Key: c.SessionID, Open: func() (gateway.Hosts, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.opened++
		r.sets[c.SessionID] = &closer{Hosts: gateway.Fixed(r.list)}
		return r.sets[c.SessionID], nil
	}}, nil
}

func (r *tenants) closed(key string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sets[key].times()
}

func of(session string) gateway.Operation {
	op := call(`{"name":"t","by":[""]}`)
	op.Context = &abi.Context{SessionID: session}
	return op
}

func TestResolvedSetsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &tenants{sets: map[string]*closer{}, list: adds("two")}
		c, err := gateway.NewChain(gateway.ChainOptions{Hosts: gateway.Fixed(), Resolver: r.resolve, ResolvedSets: 2, ResolvedIdle: time.Minute, Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		use := func(session string) {
			require.True(t, new(c.Execute(t.Context(), of(session))).Released())
			synctest.Wait()
		}
		use("a")
		use("b")
		use("a")
		use("c")
		require.Equal(t, 1, r.closed("b"), "the one that was not used for the longest time")
		require.Equal(t, 0, r.closed("a"))

		time.Sleep(40 * time.Second)
		use("a")
		time.Sleep(40 * time.Second)
		synctest.Wait()
		require.Equal(t, 1, r.closed("c"), "one that nobody uses")
		require.Equal(t, 0, r.closed("a"))
		use("c")
		require.Equal(t, 4, r.opened)

		require.NoError(t, c.Close(context.Background()))
		require.Equal(t, 1, r.closed("a"))
		require.Equal(t, 1, r.closed("c"))
		require.False(t, new(c.Execute(t.Context(), of("d"))).Released(), "after Close there is no more")
	})
}

// waiter is a host that answers when it is let.
type waiter struct {
	typ     abi.Type
	entered chan string
	leave   chan struct{}
}

func (w *waiter) Name() string { return "waiter" }

func (w *waiter) Invoke(ctx context.Context, inv abi.Invocation) (abi.Result, error) {
	w.entered <- inv.Name
	select {
	case <-w.leave:
	case <-ctx.Done():
		return abi.Result{}, ctx.Err()
	}
	return abi.Result{Type: w.typ, Interceptor: inv.Name, Phase: inv.Phase, Valid: true, Recorded: true}, nil
}

// A set stays open while an operation, or a sink that it started, uses it.
func TestResolvedSetsStayOpenWhileTheyAreUsed(t *testing.T) {
	for _, typ := range []abi.Type{abi.Validation, abi.Sink} {
		t.Run(string(typ), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &waiter{typ: typ, entered: make(chan string, 2), leave: make(chan struct{})}
				r := &tenants{sets: map[string]*closer{}, list: listing(w, abi.Descriptor{Name: "w", Type: typ, Hooks: abi.On(abi.Request, "*")})}
				c, err := gateway.NewChain(gateway.ChainOptions{Hosts: gateway.Fixed(), Resolver: r.resolve, ResolvedSets: 1,
					ResolvedIdle: time.Second, Timeout: time.Hour, Sinks: chain.SinkOptions{Timeout: time.Hour}, Logger: slog.New(slog.DiscardHandler)})
				require.NoError(t, err)
				done := make(chan gateway.Outcome, 1)
				go func() { done <- c.Execute(context.Background(), of("a")) }()
				<-w.entered
				time.Sleep(time.Minute)
				require.Equal(t, 0, r.closed("a"))
				out := c.Execute(t.Context(), of("b"))
				require.Equal(t, abi.StatusDiscoveryFailed, out.Status, "all sets are in use")
				require.Contains(t, out.Aborted.Detail, "all 1 sets")

				close(w.leave)
				require.True(t, new(<-done).Released())
				synctest.Wait()
				require.Equal(t, 0, r.closed("a"))
				require.True(t, new(c.Execute(t.Context(), of("b"))).Released())
				synctest.Wait()
				require.Equal(t, 1, r.closed("a"))
				require.NoError(t, c.Close(context.Background()))
			})
		})
	}
}

func TestClosingSaysThatResolvedSetsAreInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &waiter{typ: abi.Validation, entered: make(chan string, 1), leave: make(chan struct{})}
		r := &tenants{sets: map[string]*closer{}, list: listing(w, watcher("w"))}
		c, err := gateway.NewChain(gateway.ChainOptions{Hosts: gateway.Fixed(), Resolver: r.resolve, Logger: slog.New(slog.DiscardHandler), Timeout: time.Hour})
		require.NoError(t, err)
		done := make(chan gateway.Outcome, 1)
		go func() { done <- c.Execute(context.Background(), of("a")) }()
		<-w.entered
		require.ErrorContains(t, c.Close(context.Background()), "1 sets of resolved hosts are in use")
		require.Equal(t, 0, r.closed("a"))
		close(w.leave)
		<-done
		synctest.Wait()
		require.Equal(t, 1, r.closed("a"))
	})
}

// Many tenants at once in little room: every set that is opened is closed once,
// none while it is used, and whoever finds no room is blocked.
func TestHammerResolvedSets(t *testing.T) {
	type set struct {
		gateway.Hosts
		using, closed atomic.Int32
	}
	var opened, released, wrong atomic.Int32
	newSet := func() *set {
		s := &set{}
		opened.Add(1)
		s.Hosts = gateway.Fixed(listing(hostFunc{"two", func(inv abi.Invocation) abi.Result {
			s.using.Add(1)
			defer s.using.Add(-1)
			if s.closed.Load() > 0 {
				wrong.Add(1)
			}
			if inv.Name == "s" {
				return abi.Result{Type: abi.Sink, Interceptor: inv.Name, Phase: inv.Phase, Recorded: true}
			}
			return abi.Result{Type: abi.Validation, Interceptor: inv.Name, Phase: inv.Phase, Valid: true}
		}}, watcher("w"), abi.Descriptor{Name: "s", Type: abi.Sink, Hooks: abi.On(abi.Request, "*")}))
		return s
	}
	var mu sync.Mutex
	var all []*set
	c, err := gateway.NewChain(gateway.ChainOptions{Hosts: gateway.Fixed(), ResolvedSets: 4, ResolvedIdle: time.Microsecond, Logger: slog.New(slog.DiscardHandler),
		Sinks: chain.SinkOptions{PerSink: 1000},
		Resolver: func(_ context.Context, _ *gateway.Operation, c *abi.Context) (gateway.Resolved, error) {
			return gateway.Resolved{Key: c.SessionID, Open: func() (gateway.Hosts, error) {
				s := newSet()
				mu.Lock()
				defer mu.Unlock()
				all = append(all, s)
				return closing{s, &s.closed, &s.using, &wrong}, nil
			}}, nil
		}})
	require.NoError(t, err)
	var workers sync.WaitGroup
	for w := range 8 {
		workers.Go(func() {
			for i := range 300 {
				if new(c.Execute(context.Background(), of(fmt.Sprint((w+i)%6)))).Released() {
					released.Add(1)
				}
			}
		})
	}
	workers.Wait()
	require.NoError(t, c.Close(context.Background()))
	require.Zero(t, wrong.Load(), "a set was closed while it was used, or twice")
	require.NotZero(t, released.Load())
	require.Len(t, all, int(opened.Load()))
	for _, s := range all {
		require.Equal(t, int32(1), s.closed.Load())
	}
}

// hostFunc is a host of one function.
type hostFunc struct {
	name string
	do   func(abi.Invocation) abi.Result
}

func (h hostFunc) Name() string { return h.name }

func (h hostFunc) Invoke(_ context.Context, inv abi.Invocation) (abi.Result, error) {
	return h.do(inv), nil
}

// closing counts being closed, and being closed at the wrong time.
type closing struct {
	gateway.Hosts
	closed, using, wrong *atomic.Int32
}

func (c closing) Close(context.Context) error {
	if c.closed.Add(1) > 1 || c.using.Load() > 0 {
		c.wrong.Add(1)
	}
	return nil
}

// loading is a set that is whole once it is told to be.
type loading struct {
	*set
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

func TestJoin(t *testing.T) {
	a, b := &changing{}, &changing{}
	a.set(adds("a"))
	b.set(adds("b"))
	slow := loading{words(guard()), make(chan struct{})}
	late := hosts.NewSet([]*hosts.Host{hosts.InProcess("c", slow, hosts.Options{})}, hosts.SetOptions{})
	j := gateway.Join(a, b, late)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, version := j.Listings(ctx)
	require.Zero(t, version, "somebody has not answered yet")
	close(slow.whole)
	list, first := j.Listings(t.Context())
	require.NotZero(t, first)
	require.Len(t, list, 3)
	for i, name := range []string{"a", "b", "c"} {
		require.Equal(t, name, list[i].Host.Name())
		require.NoError(t, list[i].Err)
	}
	again, version := j.Listings(t.Context())
	require.Equal(t, first, version)
	require.Same(t, &list[0], &again[0])
	b.set(adds("b"), adds("a"))
	list, version = j.Listings(t.Context())
	require.Greater(t, version, first)
	require.NoError(t, list[0].Err)
	require.ErrorContains(t, list[2].Err, "another host has this name")
	require.NoError(t, j.Close(t.Context()))
}
