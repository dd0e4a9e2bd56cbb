package hosts

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/internal/leak"
)

// inMemory is a host whose connections are made in memory; each server session
// goes to accept.
func inMemory(s script, o Options, accept func(*mcp.ServerSession)) *Host {
	h := newHost("remote", o)
	r := newRemote(h, o, "")
	r.dial = func(ctx context.Context) (*connection, error) {
		near, far := mcp.NewInMemoryTransports()
		session, err := s.server().Connect(context.Background(), far, nil)
		if err != nil {
			return nil, err
		}
		c, err := h.open(ctx, near, func(context.Context, <-chan struct{}) { _ = session.Close() })
		if err == nil {
			c.stream = true
			accept(session)
		}
		return c, err
	}
	h.source = r
	return h
}

// A program that dies of itself right after it started is not started over and
// over at once, and yet it is never without its list for those who wait.
func TestRemote_whatDiesAtOnceIsNotRestartedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dials atomic.Int32
		h := inMemory(scripts["plain"], Options{}, func(s *mcp.ServerSession) {
			dials.Add(1)
			time.AfterFunc(10*time.Millisecond, func() { _ = s.Close() })
		})
		s := NewSet([]*Host{h}, SetOptions{})
		defer s.Close(context.Background())
		s.Listings(t.Context())
		time.Sleep(time.Minute)
		n := dials.Load()
		require.Greater(t, n, int32(50), "it is tried every second")
		require.Less(t, n, int32(150))
		require.Equal(t, BreakerClosed, s.Status()[0].Breaker)
		for range 20 {
			l, version := s.Listings(t.Context())
			require.NoError(t, l[0].Err)
			require.EqualValues(t, 2, version)
			time.Sleep(100 * time.Millisecond)
		}
		require.Zero(t, s.Status()[0].Failures)
	})
}

// One that lives for a while is made anew at once.
func TestRemote_whatDiesSeldomIsRestartedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sessions := make(chan *mcp.ServerSession, 10)
		h := inMemory(scripts["plain"], Options{}, func(s *mcp.ServerSession) { sessions <- s })
		s := NewSet([]*Host{h}, SetOptions{Fresh: time.Hour})
		defer s.Close(context.Background())
		for range 10 {
			began := time.Now()
			l, _ := s.Listings(t.Context())
			require.NoError(t, l[0].Err)
			require.Zero(t, time.Since(began))
			time.Sleep(2 * shortLife)
			require.NoError(t, (<-sessions).Close())
			synctest.Wait()
			require.True(t, s.Status()[0].Up, "without anybody asking")
		}
	})
}

// A change of a list comes into force in one step: at no time fewer interceptors
// are listed than before or after, and the version never goes back.
func TestSet_noGapWhileListsChange(t *testing.T) {
	leak.Goroutines(t, "gateway/hosts.(*Host).", "gateway/hosts.(*remote).", "gateway/hosts.HTTP.", "gateway/hosts.Stdio.", "gateway/hosts.logLines(", "gateway/hosts.drain(")
	leak.Descriptors(t)
	n := &native{}
	n.set("old-a", "old-b")
	var lap atomic.Int64
	var down atomic.Bool
	inner := serveHTTP(t, script{list: func(_ context.Context, cursor string) (string, error) {
		if cursor == "" {
			n := lap.Add(1) / 8
			return fmt.Sprintf(`{"interceptors":[%s],"nextCursor":"%d"}`, descriptors(fmt.Sprint("a", n)), n), nil
		}
		return `{"interceptors":[` + descriptors("b"+cursor) + `]}`, nil
	}, invoke: says(plainPass)}, true)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			panic(http.ErrAbortHandler)
		}
		inner.Config.Handler.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	s := NewSet([]*Host{
		InProcess("local", n, Options{}),
		HTTP("web", Endpoint{URL: web.URL}, Options{}),
		stdioHost(t, "dies", Options{}),
	}, SetOptions{Fresh: time.Millisecond})
	closing(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			var last uint64
			for lap := 0; ctx.Err() == nil; lap++ {
				switch i {
				case 0:
					n.set(fmt.Sprint("a", lap), fmt.Sprint("b", lap))
				case 1:
					down.Store(lap%50 == 0)
				}
				l, version := s.Listings(ctx)
				if version == 0 {
					continue
				}
				if version < last {
					t.Errorf("version %d after %d", version, last)
				}
				last = version
				for j, want := range []int{2, 2, 1} {
					if l[j].Err == nil && len(l[j].Interceptors) != want {
						t.Errorf("%s lists %v", l[j].Host.Name(), names(l[j]))
					}
				}
				if l[0].Err != nil {
					t.Error(l[0].Err)
				}
				if got := names(l[0]); len(got) == 2 && !strings.HasPrefix(got[0], "old") && got[0][1:] != got[1][1:] {
					t.Errorf("halves of two lists: %v", got)
				}
				switch i {
				case 2:
					_, _ = l[2].Host.Invoke(ctx, invocation(`"die"`))
				case 3:
					_, _ = l[1].Host.Invoke(ctx, invocation(`{}`))
				case 4:
					for _, st := range s.Status() {
						if st.Up && st.Listed == 0 {
							t.Errorf("%+v", st)
						}
					}
				}
			}
		})
	}
	all.Wait()
	down.Store(false)
	require.Eventually(t, func() bool {
		l, version := s.Listings(t.Context())
		return version > 0 && l[0].Err == nil && l[1].Err == nil && l[2].Err == nil
	}, soon, 5*time.Millisecond)
}

// An interceptor that moves from one page to another while they are read is not
// lost: such a list is read again before it counts.
func TestRemote_aListThatChangesBetweenItsPagesIsReadAgain(t *testing.T) {
	const a, guard = `{"name":"a","type":"validation","hooks":[]}`, `{"name":"guard","type":"validation","hooks":[]}`
	var pages, flipped atomic.Int64
	web := serveHTTP(t, script{list: func(_ context.Context, cursor string) (string, error) {
		if n := pages.Add(1); cursor != "" && n%5 < 2 {
			flipped.Add(1) // between a first page and its second
		}
		first, second := a, guard
		if flipped.Load()%2 == 1 {
			first, second = guard, a
		}
		if cursor == "" {
			return `{"interceptors":[` + first + `],"nextCursor":"2"}`, nil
		}
		return `{"interceptors":[` + second + `]}`, nil
	}}, true)
	s := NewSet([]*Host{HTTP("remote", Endpoint{URL: web.URL}, Options{})}, SetOptions{Fresh: time.Millisecond})
	closing(t, s)
	for flipped.Load() < 50 {
		l, _ := s.Listings(t.Context())
		if l[0].Err == nil {
			require.Contains(t, names(l[0]), "guard")
		}
	}
}

// While a host lists, changes in its list and in a set of this process are seen:
// what was there before Listings was called is in what it returns.
func TestSet_aChangeDuringAListIsSeen(t *testing.T) {
	n := &native{}
	n.set("first")
	s := NewSet([]*Host{InProcess("local", n, Options{})}, SetOptions{Fresh: time.Millisecond})
	closing(t, s)
	for i := range 2000 {
		name := fmt.Sprint("n", i)
		n.set(name)
		l, _ := s.Listings(t.Context())
		require.Equal(t, []string{name}, names(l[0]))
	}
}
