package hosts

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/chain"
	"github.com/weir-mcp/weir/internal/leak"
	"github.com/weir-mcp/weir/internal/logbook"
)

const soon = 20 * time.Second // an outer limit, never a measure

func names(l chain.Listing) (names []string) {
	for _, d := range l.Interceptors {
		names = append(names, d.Name)
	}
	return names
}

func closing(t *testing.T, s *Set) {
	t.Cleanup(func() { require.NoError(t, s.Close(context.Background())) })
}

func TestSet_listsInConfiguredOrderWhateverFails(t *testing.T) {
	n := &native{}
	n.set("b", "a")
	s := NewSet([]*Host{
		HTTP("down", Endpoint{URL: "http://127.0.0.1:1/mcp"}, Options{FailOpen: true}),
		InProcess("local", n, Options{}),
		stdioHost(t, "plain", Options{}),
		Stdio("missing", Process{Command: []string{"./no-such-program"}}, Options{}),
		stdioHost(t, "exits", Options{}),
	}, SetOptions{})
	closing(t, s)
	l, version := s.Listings(t.Context())
	require.NotZero(t, version)
	require.Len(t, l, 5)
	require.ErrorContains(t, l[0].Err, `host "down"`)
	require.True(t, l[0].FailOpen)
	require.NoError(t, l[1].Err)
	require.Equal(t, []string{"b", "a"}, names(l[1]))
	require.Equal(t, []string{"guard"}, names(l[2]))
	require.Equal(t, "remote", l[2].Host.Name())
	require.ErrorContains(t, l[3].Err, "the command does not start")
	require.ErrorContains(t, l[4].Err, "does not answer as an MCP server")
}

func TestSet_neverAListPerCall(t *testing.T) {
	var lists atomic.Int32
	web := serveHTTP(t, script{list: func(context.Context, string) (string, error) {
		lists.Add(1)
		return oneValidator, nil
	}}, true)
	n := &native{}
	s := NewSet([]*Host{HTTP("remote", Endpoint{URL: web.URL}, Options{}), InProcess("local", n, Options{})}, SetOptions{})
	closing(t, s)
	_, first := s.Listings(t.Context())
	for range 1000 {
		_, version := s.Listings(t.Context())
		require.Equal(t, first, version)
	}
	require.EqualValues(t, 1, lists.Load())
	require.EqualValues(t, 1, n.lists.Load())
}

func TestSet_aChangeInThisProcessIsSeenAtOnce(t *testing.T) {
	n := &native{}
	n.set("a")
	s := NewSet([]*Host{InProcess("local", n, Options{})}, SetOptions{})
	closing(t, s)
	_, first := s.Listings(t.Context())
	for i := range 100 {
		n.set("a", "b"+strconv.Itoa(i))
		l, version := s.Listings(t.Context())
		require.Equal(t, []string{"a", "b" + strconv.Itoa(i)}, names(l[0]))
		require.Greater(t, version, first)
		first = version
	}
	n.set("a", "b99") // a change to the same
	_, version := s.Listings(t.Context())
	require.Equal(t, first, version)
	require.NoError(t, s.Close(t.Context()))
	require.True(t, n.stopped.Load())
}

// Nobody who finds that nothing has to be asked reads a listing from before.
func TestSet_whatIsKnownIsPublished(t *testing.T) {
	n := &native{}
	n.set("a")
	h := InProcess("local", n, Options{})
	s := NewSet([]*Host{h}, SetOptions{})
	closing(t, s)
	publish, news := h.publish, 0
	h.publish = func(l chain.Listing) {
		if !sameListing(&s.view.Load().listings[0], &l) {
			assert.Equal(t, wait, h.needs(time.Now()), "nobody takes the old one for the new")
			news++
		}
		publish(l)
	}
	for i := range 3 {
		n.set("a", "b"+strconv.Itoa(i))
		l, _ := s.Listings(t.Context())
		require.Len(t, l[0].Interceptors, 2)
	}
	require.NoError(t, s.Close(t.Context()))
	require.Equal(t, 3, news)
}

func TestInProcess_passesTheRequest(t *testing.T) {
	n := &native{}
	h := InProcess("local", n, Options{Envelope: true})
	inv := invocation(`{"a":1.0}`)
	inv.Request = []byte(`{"b":2}`)
	r, err := h.Invoke(t.Context(), inv)
	require.NoError(t, err)
	require.True(t, r.Valid)
	inv.Patient = true // a gateway's calls wait for a module
	require.Equal(t, inv, *n.last.Load(), "and the payload stays bare")
}

// first_caller_leaves
func TestSet_firstCallerLeaves(t *testing.T) {
	entered, gate := make(chan struct{}), make(chan struct{})
	var once sync.Once
	web := serveHTTP(t, script{list: func(context.Context, string) (string, error) {
		once.Do(func() { close(entered) })
		<-gate
		return oneValidator, nil
	}}, true)
	s := NewSet([]*Host{HTTP("remote", Endpoint{URL: web.URL}, Options{})}, SetOptions{})
	closing(t, s)

	ctx, leave := context.WithCancel(t.Context())
	first := make(chan chain.Listing)
	go func() {
		l, version := s.Listings(ctx)
		if version != 0 {
			t.Error("a listing that was cut short must not be kept")
		}
		first <- l[0]
	}()
	<-entered
	second := make(chan chain.Listing)
	go func() {
		l, _ := s.Listings(t.Context())
		second <- l[0]
	}()
	leave()
	require.ErrorIs(t, (<-first).Err, context.Canceled)
	close(gate)
	l := <-second
	require.NoError(t, l.Err)
	require.Equal(t, []string{"guard"}, names(l))
}

// host_recovers, as a process
func TestSet_hostRecovers_process(t *testing.T) {
	h := stdioHost(t, "dies", Options{})
	s := NewSet([]*Host{h}, SetOptions{})
	closing(t, s)
	l, _ := s.Listings(t.Context())
	require.NoError(t, l[0].Err)
	pid := func() int {
		r, err := h.Invoke(t.Context(), invocation(`{}`))
		require.NoError(t, err)
		pid, err := strconv.Atoi(string(r.Info))
		require.NoError(t, err)
		return pid
	}
	before := pid()
	// It dies in the middle of a call: that one fails, and is not sent again.
	_, err := h.Invoke(t.Context(), invocation(`"die"`))
	require.Equal(t, abi.ReasonUnavailable, failed(t, err).Reason)
	recovered(t, s)
	after := pid()
	require.NotEqual(t, before, after)
	// It is killed while nobody calls.
	process, err := os.FindProcess(after)
	require.NoError(t, err)
	require.NoError(t, process.Kill())
	require.Eventually(t, func() bool { return !h.source.valid() }, soon, time.Millisecond)
	recovered(t, s)
	require.NotEqual(t, after, pid())
}

// host_recovers, over HTTP, with and without sessions
func TestSet_hostRecovers_http(t *testing.T) {
	for name, stateless := range map[string]bool{"sessions": false, "stateless": true} {
		t.Run(name, func(t *testing.T) {
			var down atomic.Bool
			var current atomic.Pointer[httptest.Server]
			current.Store(serveHTTP(t, scripts["plain"], stateless))
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if down.Load() {
					panic(http.ErrAbortHandler)
				}
				current.Load().Config.Handler.ServeHTTP(w, r)
			}))
			defer front.Close()
			h := HTTP("remote", Endpoint{URL: front.URL}, Options{})
			s := NewSet([]*Host{h}, SetOptions{})
			closing(t, s)
			recovered(t, s)
			_, err := h.Invoke(t.Context(), invocation(`{}`))
			require.NoError(t, err)

			down.Store(true)
			_, err = h.Invoke(t.Context(), invocation(`{}`))
			require.Equal(t, abi.ReasonUnavailable, failed(t, err).Reason)
			require.Eventually(t, func() bool { l, _ := s.Listings(t.Context()); return l[0].Err != nil }, soon, time.Millisecond)

			current.Store(serveHTTP(t, scripts["plain"], stateless)) // which knows no old session
			down.Store(false)
			recovered(t, s)
			_, err = h.Invoke(t.Context(), invocation(`{}`))
			require.NoError(t, err)

			// Restarted while nobody called: the session is unknown now.
			current.Store(serveHTTP(t, scripts["plain"], stateless))
			require.Eventually(t, func() bool {
				s.Listings(t.Context())
				_, err := h.Invoke(t.Context(), invocation(`{}`))
				return err == nil
			}, soon, time.Millisecond)
		})
	}
}

func recovered(t *testing.T, s *Set) {
	t.Helper()
	require.Eventually(t, func() bool {
		l, _ := s.Listings(t.Context())
		return l[0].Err == nil && l[0].Host.(*Host).source.valid()
	},
		soon, 5*time.Millisecond)
}

func TestSet_staleListsAreFetchedAgain(t *testing.T) {
	var answer atomic.Pointer[string]
	page := oneValidator
	answer.Store(&page)
	web := serveHTTP(t, script{list: func(context.Context, string) (string, error) { return *answer.Load(), nil }}, true)
	s := NewSet([]*Host{HTTP("remote", Endpoint{URL: web.URL}, Options{})}, SetOptions{Fresh: time.Millisecond})
	closing(t, s)
	l, first := s.Listings(t.Context())
	require.Equal(t, []string{"guard"}, names(l[0]))
	changed := strings.ReplaceAll(page, "guard", "other")
	answer.Store(&changed)
	require.Eventually(t, func() bool {
		l, version := s.Listings(t.Context())
		return l[0].Err == nil && names(l[0])[0] == "other" && version > first
	}, soon, time.Millisecond)
}

func TestSet_skippedIsLoggedOnce(t *testing.T) {
	var log logbook.Book
	web := serveHTTP(t, scripts["bad hint"], true)
	h := HTTP("remote", Endpoint{URL: web.URL}, Options{Logger: log.Text()})
	s := NewSet([]*Host{h}, SetOptions{})
	closing(t, s)
	l, _ := s.Listings(t.Context())
	require.Len(t, l[0].Skipped, 2)
	<-h.discover().done // the same again
	require.Equal(t, 1, strings.Count(log.String(), "interceptor=odd"))
	require.Equal(t, 1, strings.Count(log.String(), "interceptor=a "))
}

func TestStdio_environment(t *testing.T) {
	t.Setenv("GATEWAY_SECRET", "do not pass on")
	t.Setenv("LANG", "C.UTF-8")
	env := Environment(map[string]string{"MODE": "prod", "HOME": "/elsewhere"})
	require.Contains(t, env, "MODE=prod")
	require.Contains(t, env, "HOME=/elsewhere")
	require.Contains(t, env, "LANG=C.UTF-8")
	for _, v := range env {
		name, _, _ := strings.Cut(v, "=")
		require.Contains(t, []string{"PATH", "HOME", "LANG", "TMPDIR", "MODE"}, name)
	}
	var log logbook.Book
	s := NewSet([]*Host{stdioHost(t, "environment", Options{Logger: log.Text()})}, SetOptions{})
	l, _ := s.Listings(t.Context())
	require.NoError(t, l[0].Err)
	require.NoError(t, s.Close(t.Context()))
	require.Contains(t, log.String(), "env: ")
	require.NotContains(t, log.String(), "GATEWAY_SECRET")
}

func TestStdio_noiseIsBoundedAndHarmless(t *testing.T) {
	var log logbook.Book
	s := NewSet([]*Host{stdioHost(t, "noisy", Options{Logger: log.Text()})}, SetOptions{})
	l, _ := s.Listings(t.Context())
	require.NoError(t, l[0].Err)
	require.NoError(t, s.Close(t.Context()))
	require.Contains(t, log.String(), "cut=true")
	require.NotContains(t, log.String(), strings.Repeat("x", maxLogLine+1))
	require.Less(t, strings.Count(log.String(), "the host writes"), 10*maxLinesPerSecond)
	require.Contains(t, log.String(), "that is no message")
}

func TestSet_closeLeavesNothingBehind(t *testing.T) {
	leak.Goroutines(t, "gateway/hosts.(*Host).", "gateway/hosts.(*remote).", "gateway/hosts.HTTP.", "gateway/hosts.Stdio.", "gateway/hosts.logLines(")
	leak.Descriptors(t)
	for range 3 {
		web := httptest.NewServer(serveHTTP(t, scripts["plain"], false).Config.Handler)
		deaf := stdioHost(t, "deaf", Options{})
		s := NewSet([]*Host{stdioHost(t, "plain", Options{}), HTTP("web", Endpoint{URL: web.URL}, Options{}), deaf,
			InProcess("local", &native{}, Options{})}, SetOptions{})
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		l, version := s.Listings(ctx)
		cancel()
		require.Zero(t, version, "the deaf one has not answered")
		require.Error(t, l[2].Err)
		require.NoError(t, s.Close(t.Context()))
		l, _ = s.Listings(t.Context())
		require.Len(t, l, 4)
		web.Close()
	}
}

func TestSet_hammer(t *testing.T) {
	n := &native{}
	n.set("a")
	s := NewSet([]*Host{InProcess("local", n, Options{}), stdioHost(t, "dies", Options{})}, SetOptions{Fresh: time.Millisecond})
	closing(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for ctx.Err() == nil {
				l, _ := s.Listings(ctx)
				if len(l) != 2 {
					t.Error("a listing is missing")
				}
				switch i {
				case 0:
					n.set("a", "b")
				case 1:
					_, _ = l[1].Host.Invoke(ctx, invocation(`"die"`))
				default:
					_, _ = l[1].Host.Invoke(ctx, invocation(`{}`))
				}
			}
		})
	}
	all.Wait()
}
