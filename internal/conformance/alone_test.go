package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/chain"
	"github.com/weir-mcp/weir/gateway/hosts"
	"github.com/weir-mcp/weir/internal/conformance/mockhost"
	"github.com/weir-mcp/weir/internal/need"
)

// alone are the hosts of tests that are no rows of the table.
var alone = []Case{
	{Name: "page_two", Hosts: func() []*mockhost.Host {
		h := host("h", mutator("a", tag), validator("b", pass), mutator("c", tag))
		h.PageSize = 2
		return []*mockhost.Host{h}
	}},
	{Name: "page_two_for_ever", Hosts: func() []*mockhost.Host {
		h := host("h", validator("v", pass))
		h.Endless = true
		return []*mockhost.Host{h}
	}},
	{Name: "mortal_guard", Hosts: one(validator("guard", func(ctx context.Context, inv abi.Invocation) (abi.Result, error) {
		if string(inv.Payload) == `{"name":"die"}` {
			return dropped(ctx, inv)
		}
		return deny("secret")(ctx, inv)
	}))},
}

// aloneCase gives one of them by name.
func aloneCase(t *testing.T, name string) *Case {
	for i := range alone {
		if alone[i].Name == name {
			return &alone[i]
		}
	}
	t.Fatal("no such case")
	return nil
}

// world is hosts, and what runs operations through what they list.
type world struct {
	t    *testing.T
	set  *hosts.Set
	exec *chain.Executor
}

func newWorld(t *testing.T, list ...*hosts.Host) *world {
	w := &world{t, hosts.NewSet(list, hosts.SetOptions{}), chain.NewExecutor(chain.Options{})}
	t.Cleanup(func() { require.NoError(t, w.set.Close(context.Background())) })
	return w
}

// run discovers as far as need be, plans and executes, as a gateway does.
func (w *world) run(ctx context.Context, name string) chain.Outcome {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	listings, _ := w.set.Listings(ctx)
	plan := chain.NewPlan(listings, nil, abi.ToolsCall, abi.Request, abi.Sending, "")
	return w.exec.Execute(ctx, plan, chain.Operation{Payload: fmt.Appendf(nil, `{"name":%q}`, name)})
}

// overEach runs a test over each transport, with the first host of a case.
func overEach(t *testing.T, name string, test func(t *testing.T, w *world, r *Reached)) {
	need.Short(t, "real processes and real time")
	for label, over := range map[string]Transport{"stdio": Stdio, "http": HTTP, "stateless http": StatelessHTTP} {
		t.Run(label, func(t *testing.T) {
			leavesNothing(t, func() {
				c := aloneCase(t, name)
				r := over(t, c, c.Hosts()[0])
				test(t, newWorld(t, r.Host), r)
			})
		})
	}
}

// page_two: all interceptors of a list with two pages; a list whose cursor
// repeats for ever is an error, and blocks.
func TestPageTwo(t *testing.T) {
	overEach(t, "page_two", func(t *testing.T, w *world, r *Reached) {
		out := w.run(t.Context(), "t")
		require.Equal(t, "a=applied c=applied b=passed", Effects(&out))
		require.Equal(t, `{"name":"t+a+c"}`, string(out.FinalPayload))
	})
}

func TestPageTwoForEver(t *testing.T) {
	overEach(t, "page_two_for_ever", func(t *testing.T, w *world, r *Reached) {
		out := w.run(t.Context(), "t")
		require.Equal(t, abi.StatusDiscoveryFailed, out.Status)
		require.Contains(t, out.Aborted.Detail, "cursor that came before")
		require.Empty(t, r.calls(t))
	})
}

// host_recovers: calls fail closed while the host is not there, then work again
// with the same executor and the same set.
func TestHostRecovers(t *testing.T) {
	overEach(t, "mortal_guard", func(t *testing.T, w *world, r *Reached) {
		out := w.run(t.Context(), "fine")
		require.Equal(t, abi.StatusSuccess, out.Status)

		r.set(isAway)
		out = w.run(t.Context(), "die")
		require.Equal(t, abi.StatusInterceptorFailed, out.Status, "C27")
		for range 5 {
			out = w.run(t.Context(), "fine")
			require.False(t, out.Released(), "the guard cannot be asked")
		}
		before := len(r.calls(t))
		require.LessOrEqual(t, before, 2, "nothing was sent twice, and nothing after it")

		r.unset(t, isAway)
		require.Eventually(t, func() bool {
			out := w.run(t.Context(), "fine")
			return out.Released()
		}, patience, 5*time.Millisecond)
		require.Greater(t, len(r.calls(t)), before, "the guard was asked")
		out = w.run(t.Context(), "secret")
		require.Equal(t, abi.StatusValidationFailed, out.Status)
	})
}

// first_caller_leaves: two operations start while the host connects; the first
// is cancelled and the second succeeds.
func TestFirstCallerLeaves(t *testing.T) {
	overEach(t, "mortal_guard", func(t *testing.T, w *world, r *Reached) {
		r.set(isSlow)
		ctx, leave := context.WithCancel(t.Context())
		first, second := make(chan chain.Outcome, 1), make(chan chain.Outcome, 1)
		go func() { first <- w.run(ctx, "fine") }()
		require.Eventually(t, func() bool { return r.folder.has(listing) }, patience, time.Millisecond)
		go func() { second <- w.run(t.Context(), "fine") }()
		leave()
		out := <-first
		require.False(t, out.Released())
		require.Empty(t, r.calls(t))
		r.unset(t, isSlow)
		out = <-second
		require.Equal(t, abi.StatusSuccess, out.Status)
		require.Len(t, r.calls(t), 1)
	})
}

// The order in which hosts answer is no part of the plan.
func TestTheOrderOfDiscoveryDoesNotMatter(t *testing.T) {
	need.Short(t, "real servers and real time")
	c := Case{Name: "order", Hosts: func() []*mockhost.Host {
		return []*mockhost.Host{
			host("a", mutator("m", tag), validator("v", pass), mutator("z", tag, priority(-1))),
			host("b", mutator("m", tag), sink("s", recorded), validator("v", reject, audit)),
			host("c", mutator("m", tag, priority(5)), validator("u", pass), sink("s", recorded)),
		}
	}}
	var direct []chain.Listing
	for _, h := range c.Hosts() {
		direct = append(direct, Listing(t, h))
	}
	planOf := func(listings []chain.Listing) string {
		return string(chain.NewPlan(listings, nil, abi.ToolsCall, abi.Request, abi.Sending, "").AppendJSON(nil))
	}
	want := planOf(direct)
	require.True(t, json.Valid([]byte(want)))
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			leavesNothing(t, func() {
				var list []*hosts.Host
				var reached []*Reached
				for _, h := range c.Hosts() {
					r := StatelessHTTP(t, &c, h)
					r.set(isSlow)
					list, reached = append(list, r.Host), append(reached, r)
				}
				w := newWorld(t, list...)
				whole := make(chan string, 1)
				go func() {
					listings, _ := w.set.Listings(t.Context())
					whole <- planOf(listings)
				}()
				now, cancel := context.WithCancel(t.Context())
				cancel()
				for _, i := range order {
					reached[i].unset(t, isSlow)
					require.Eventually(t, func() bool {
						listings, _ := w.set.Listings(now)
						return listings[i].Err == nil
					}, patience, time.Millisecond)
				}
				require.Equal(t, want, <-whole)
			})
		})
	}
}

// same_name_two_hosts, "1,000 runs the same".
func TestSameNameTwoHostsIsStable(t *testing.T) {
	var listings []chain.Listing
	for _, h := range []*mockhost.Host{host("second", mutator("m", tag)), host("first", mutator("m", tag))} {
		listings = append(listings, Listing(t, h))
	}
	for range 1000 {
		plan := chain.NewPlan(listings, nil, abi.ToolsCall, abi.Request, abi.Sending, "")
		out := chain.NewExecutor(chain.Options{}).Execute(t.Context(), plan, chain.Operation{Payload: []byte(`{"name":"t"}`)})
		require.True(t, out.Released())
		require.Equal(t, []string{"second", "first"}, []string{out.Results[0].Host, out.Results[1].Host})
	}
}
