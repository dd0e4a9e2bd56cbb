package expose

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/chain"
)

// fakeHost remembers what it was asked.
type fakeHost struct {
	name   string
	asked  []abi.Invocation
	answer func(context.Context, abi.Invocation) (abi.Result, error)
}

func (h *fakeHost) Name() string { return h.name }

func (h *fakeHost) Invoke(ctx context.Context, inv abi.Invocation) (abi.Result, error) {
	h.asked = append(h.asked, inv)
	if h.answer != nil {
		return h.answer(ctx, inv)
	}
	return abi.Result{Interceptor: inv.Name, Type: abi.Validation, Phase: inv.Phase, Valid: true}, nil
}

func validator(name string) abi.Descriptor {
	return abi.Descriptor{Name: name, Type: abi.Validation, Hooks: abi.Hooks{{Events: []string{"tools/call"}, Phase: abi.Request}}}
}

func listing(h chain.Host, names ...string) chain.Listing {
	l := chain.Listing{Host: h}
	for _, n := range names {
		l.Interceptors = append(l.Interceptors, validator(n))
	}
	return l
}

func setOf(policy *chain.Policy, listings ...chain.Listing) *Set {
	return New(Options{
		Listings:  func(context.Context) []chain.Listing { return listings },
		Policy:    policy,
		Principal: func(context.Context) *abi.Principal { return &abi.Principal{Type: "service", ID: "ci"} },
	})
}

func policyOf(t *testing.T, entries ...chain.Entry) *chain.Policy {
	t.Helper()
	p, err := chain.NewPolicy(entries)
	require.NoError(t, err)
	return p
}

func listed(s *Set) (names []string) {
	for _, d := range s.List() {
		names = append(names, d.Name)
	}
	return names
}

func call(name string) abi.Invocation {
	return abi.Invocation{Name: name, Event: "tools/call", Phase: abi.Request, Payload: []byte(`{"name":"x"}`)}
}

// config.md, expose: "lists under HOST/NAME every name that two hosts share and
// every name that begins with a host's name and /".
func TestSet_names(t *testing.T) {
	off := false
	for _, c := range []struct {
		name   string
		policy []chain.Entry
		hosts  map[string][]string
		listed []string
	}{
		{"alone", nil, map[string][]string{"one": {"a"}, "two": {"b"}}, []string{"a", "b"}},
		{"shared", nil, map[string][]string{"one": {"a", "b"}, "two": {"b", "c"}}, []string{"a", "one/b", "two/b", "c"}},
		{"begins with a host's name", nil, map[string][]string{"one": {"b", "two/b", "one/x"}, "two": {"two/c", "twofold/c"}},
			[]string{"b", "one/two/b", "one/one/x", "two/two/c", "twofold/c"}},
		{"would be taken for a shared one", nil, map[string][]string{"one": {"b", "two/b"}, "two": {"b"}}, []string{"one/b", "one/two/b", "two/b"}},
		{"of policy", []chain.Entry{{Interceptor: "b", As: "c"}, {Interceptor: "d", Enabled: &off}},
			map[string][]string{"one": {"a", "b"}, "two": {"d"}}, []string{"a", "c"}},
		{"one of the two is disabled", []chain.Entry{{Interceptor: "b", Host: "two", Enabled: &off}},
			map[string][]string{"one": {"b"}, "two": {"b"}}, []string{"b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			one, two := &fakeHost{name: "one"}, &fakeHost{name: "two"}
			s := setOf(policyOf(t, c.policy...), listing(one, c.hosts["one"]...), listing(two, c.hosts["two"]...))
			require.Equal(t, c.listed, listed(s))
			for _, name := range c.listed {
				r, err := s.Invoke(t.Context(), call(name))
				require.NoError(t, err, name)
				require.Equal(t, name, r.Interceptor, "the answer bears the listed name")
			}
			require.Len(t, append(one.asked, two.asked...), len(c.listed))
		})
	}
}

func TestSet_equalNamesReachTheirOwnHost(t *testing.T) {
	one, two := &fakeHost{name: "one"}, &fakeHost{name: "two"}
	s := setOf(nil, listing(one, "b"), listing(two, "b"))
	_, err := s.Invoke(t.Context(), call("two/b"))
	require.NoError(t, err)
	require.Empty(t, one.asked)
	require.Len(t, two.asked, 1)
	require.Equal(t, "b", two.asked[0].Name, "the host knows it by its own name")

	_, err = s.Invoke(t.Context(), call("b"))
	e, ok := errors.AsType[*abi.Error](err)
	require.True(t, ok)
	require.True(t, e.Unknown, "neither is meant")
}

// "an error of the owning host is passed on and never tried elsewhere"
func TestSet_anErrorIsPassedOnAndTriedNowhereElse(t *testing.T) {
	broken := &abi.Error{Reason: abi.ReasonTrap, Interceptor: "b", Phase: abi.Request, Cause: errors.New("unreachable")}
	one := &fakeHost{name: "one", answer: func(context.Context, abi.Invocation) (abi.Result, error) { return abi.Result{}, broken }}
	two := &fakeHost{name: "two"}
	s := setOf(nil, listing(one, "b"), listing(two, "b"))
	_, err := s.Invoke(t.Context(), call("one/b"))
	e, ok := errors.AsType[*abi.Error](err)
	require.True(t, ok)
	require.Equal(t, abi.ReasonTrap, e.Reason)
	require.Equal(t, "one/b", e.Interceptor)
	require.Equal(t, "b", broken.Interceptor, "the host's own error is not written to")
	require.Len(t, one.asked, 1)
	require.Empty(t, two.asked)
}

func TestSet_aHostThatAnswersForAnotherIsWrong(t *testing.T) {
	h := &fakeHost{name: "one", answer: func(context.Context, abi.Invocation) (abi.Result, error) {
		return abi.Result{Interceptor: "other", Type: abi.Validation, Phase: abi.Request, Valid: true}, nil
	}}
	_, err := setOf(nil, listing(h, "b")).Invoke(t.Context(), call("b"))
	e, ok := errors.AsType[*abi.Error](err)
	require.True(t, ok)
	require.Equal(t, abi.ReasonBadOutput, e.Reason)
}

func TestSet_refusesWhatIsNotOffered(t *testing.T) {
	h := &fakeHost{name: "one"}
	down := chain.Listing{Host: &fakeHost{name: "two"}, Err: errors.New("down"), Interceptors: []abi.Descriptor{validator("late")}}
	narrowed := chain.Entry{Interceptor: "n", Hooks: abi.Hooks{{Events: []string{"tools/call"}, Phase: abi.Response}}}
	both := validator("n")
	both.Hooks = abi.Hooks{{Events: []string{"tools/call"}, Phase: abi.Request}, {Events: []string{"tools/call"}, Phase: abi.Response}}
	l := listing(h, "b")
	l.Interceptors = append(l.Interceptors, both)
	s := setOf(policyOf(t, narrowed), l, down)
	require.Equal(t, []string{"b", "n"}, listed(s))
	for _, c := range []struct {
		name     string
		inv      abi.Invocation
		unknown  bool
		unhooked bool
	}{
		{"unknown", call("c"), true, false},
		{"of a host that is down", call("late"), true, false},
		{"an event that it does not hook", abi.Invocation{Name: "b", Event: "tools/list", Phase: abi.Request}, false, true},
		{"a phase that policy took away", call("n"), false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := s.Invoke(t.Context(), c.inv)
			e, ok := errors.AsType[*abi.Error](err)
			require.True(t, ok)
			require.Equal(t, abi.ReasonParams, e.Reason)
			require.Equal(t, c.unknown, e.Unknown)
			require.Equal(t, c.unhooked, e.Unhooked)
		})
	}
	require.Empty(t, h.asked)
}

// config.md: "the gateway then overwrites context.principal and sessionId, ignores a
// caller's config".
func TestSet_aCallerDecidesLittle(t *testing.T) {
	h := &fakeHost{name: "one"}
	s := setOf(policyOf(t, chain.Entry{Interceptor: "b", Config: json.RawMessage(`{"of":"policy"}`)}), listing(h, "a", "b"))
	said := &abi.Context{
		Principal: &abi.Principal{Type: "user", ID: "root"}, SessionID: "somebody's", TraceID: "0af7651916cd43dd8448eb211c80319c",
	}
	inv := call("b")
	inv.Config, inv.Context, inv.Connection, inv.Patient = json.RawMessage(`{"of":"caller"}`), said, "c1", true
	_, err := s.Invoke(t.Context(), inv)
	require.NoError(t, err)
	got := h.asked[0]
	require.JSONEq(t, `{"of":"policy"}`, string(got.Config))
	require.Equal(t, &abi.Principal{Type: "service", ID: "ci"}, got.Context.Principal)
	require.Empty(t, got.Context.SessionID)
	require.Equal(t, said.TraceID, got.Context.TraceID, "a trace may go on")
	require.Empty(t, got.Connection)
	require.False(t, got.Patient, "a caller may be told that all are busy")
	require.Equal(t, "root", said.Principal.ID, "what the caller holds is not written to")

	inv.Name = "a"
	_, err = s.Invoke(t.Context(), inv)
	require.NoError(t, err)
	require.Nil(t, h.asked[1].Config, "policy sets none")
}

func TestSet_nobodyIsAnonymous(t *testing.T) {
	h := &fakeHost{name: "one"}
	s := setOf(nil, listing(h, "b"))
	s.o.Principal = func(context.Context) *abi.Principal { return nil }
	_, err := s.Invoke(t.Context(), call("b"))
	require.NoError(t, err)
	require.Equal(t, abi.PrincipalAnonymous, h.asked[0].Context.Principal.Type)
}

// config.md: "never takes a timeoutMs below policy's"
func TestSet_timeouts(t *testing.T) {
	for _, c := range []struct {
		name                   string
		policy, caller, effect time.Duration
	}{
		{"nobody says", 0, 0, 10 * time.Second},
		{"the caller is in a hurry", 0, time.Second, time.Second},
		{"the caller has all day", 0, time.Hour, 10 * time.Second},
		{"policy", 3 * time.Second, 0, 3 * time.Second},
		{"policy, a caller in a hurry", 3 * time.Second, time.Millisecond, 3 * time.Second},
		{"policy, a caller that has all day", 3 * time.Second, time.Hour, 3 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &fakeHost{name: "one", answer: func(ctx context.Context, _ abi.Invocation) (abi.Result, error) {
					<-ctx.Done() // a host that does not keep time itself
					return abi.Result{}, ctx.Err()
				}}
				entry := chain.Entry{Interceptor: "b"}
				if c.policy > 0 {
					entry.Timeout = &c.policy
				}
				s := setOf(policyOf(t, entry), listing(h, "b"))
				inv := call("b")
				inv.Timeout = c.caller
				began := time.Now()
				_, err := s.Invoke(t.Context(), inv)
				require.Equal(t, c.effect, time.Since(began))
				require.Equal(t, c.effect, h.asked[0].Timeout)
				e, ok := errors.AsType[*abi.Error](err)
				require.True(t, ok)
				require.Equal(t, abi.ReasonTimeout, e.Reason)
				require.Equal(t, c.effect, e.Limit)
			})
		})
	}
}

func TestSet_aCallerThatLeavesCancels(t *testing.T) {
	h := &fakeHost{name: "one", answer: func(ctx context.Context, _ abi.Invocation) (abi.Result, error) {
		<-ctx.Done()
		return abi.Result{}, ctx.Err()
	}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := setOf(nil, listing(h, "b")).Invoke(ctx, call("b"))
	e, ok := errors.AsType[*abi.Error](err)
	require.True(t, ok)
	require.Equal(t, abi.ReasonCancelled, e.Reason)
}

func TestSet_capability(t *testing.T) {
	one, two := &fakeHost{name: "one"}, &fakeHost{name: "two"}
	l := listing(two, "b")
	l.Interceptors[0].Hooks = abi.Hooks{{Events: []string{"prompts/get", "tools/call"}, Phase: abi.Response}}
	require.JSONEq(t, `{"supportedEvents":["prompts/get","tools/call"]}`, string(setOf(nil, listing(one, "a"), l).Capability()))
}

// A host that does not answer keeps nobody from a handshake for long.
func TestSet_capabilityDoesNotWaitLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := setOf(nil)
		s.o.Listings = func(ctx context.Context) []chain.Listing {
			<-ctx.Done()
			return []chain.Listing{{Host: &fakeHost{name: "one"}, Err: ctx.Err()}}
		}
		began := time.Now()
		s.Capability()
		require.Equal(t, handshakeTime, time.Since(began))
	})
}
