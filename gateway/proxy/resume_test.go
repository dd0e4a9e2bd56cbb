package proxy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/relay"
	"github.com/weir-mcp/weir/internal/mirror"
)

// resumable is a backend that keeps what it has sent on the stream of a call, and
// sends the rest of it to whoever resumes behind an event.
type resumable struct {
	events []string // whole, with their ids 1, 2, …
	// cut is behind how many events the first stream ends; broken says how.
	cut    int
	broken bool
	// resumed counts the streams that were resumed, and from where.
	resumed chan string
	// hold keeps a resumed stream from ending until it is closed.
	hold chan struct{}
}

func (b *resumable) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if strings.Contains(string(body), "initialize") {
		w.Header().Set(mirror.SessionHeader, "s1")
		w.Header().Set("Content-Type", typeJSON)
		io.WriteString(w, result("0", `{"protocolVersion":"2025-11-25"}`))
		return
	}
	if strings.Contains(string(body), "notifications/") {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	from, to := 0, b.cut
	if r.Method == http.MethodGet {
		last := r.Header.Get(mirror.LastEventIDHeader)
		b.resumed <- last
		fmt.Sscan(last, &from)
		to = len(b.events)
	}
	w.Header().Set("Content-Type", typeSSE)
	for _, event := range b.events[from:to] {
		io.WriteString(w, event+"\n\n")
	}
	w.(http.Flusher).Flush()
	switch {
	case r.Method == http.MethodGet && b.hold != nil:
		select {
		case <-b.hold:
		case <-r.Context().Done():
		}
	case r.Method == http.MethodPost && b.broken:
		die(w)
	}
}

func events3() []string {
	return []string{
		"id: 1\ndata: ",
		"id: 2\ndata: " + notification("notifications/progress", `{"progress":1}`),
		"id: 3\ndata: " + result("7", `{"text":"secret"}`),
	}
}

var redact = map[string]rule{"tools/call response": edit("secret", "***")}

const redacted = "id: 3\ndata: " + `{"jsonrpc":"2.0","id":7,"result":{"text":"***"}}`

// A client whose stream ended without the answer gets it behind the last event,
// governed as the answer to its request.
func TestAStreamIsResumed(t *testing.T) {
	t.Run("after the backend ended it", func(t *testing.T) {
		b := &resumable{events: events3(), cut: 2, resumed: make(chan string, 1)}
		s := stage(t, redact, b.ServeHTTP)
		s.events(s.do("POST", call("7", `{"name":"t"}`), inSession)).gets(b.events[0], b.events[1], "")
		s.events(s.do("GET", "", inSession, "Last-Event-ID: 2")).gets(redacted, "")
		require.Equal(t, "2", take(t, b.resumed))
		ops := s.governor.operations()
		require.Len(t, ops, 1)
		require.Equal(t, `{"name":"t"}`, string(ops[0].Request))
		require.Empty(t, s.watcher.causes())
	})
	t.Run("once more, when the answer was lost on the way", func(t *testing.T) {
		b := &resumable{events: events3(), cut: 3, resumed: make(chan string, 1)}
		s := stage(t, redact, b.ServeHTTP)
		s.events(s.do("POST", call("7", "{}"), inSession)).gets(b.events[0], b.events[1], redacted, "")
		for range 3 {
			s.events(s.do("GET", "", inSession, "Last-Event-ID: 1")).gets(b.events[1], redacted, "")
			take(t, b.resumed)
		}
		require.Len(t, s.governor.operations(), 4)
		require.Equal(t, `{}`, string(s.governor.operations()[3].Request), "what is known of the request outlives its answer")
	})
	t.Run("behind an event that brought the answer", func(t *testing.T) {
		b := &resumable{events: events3(), cut: 3, resumed: make(chan string, 1)}
		s := stage(t, redact, b.ServeHTTP)
		s.events(s.do("POST", call("7", "{}"), inSession)).gets(b.events[0], b.events[1], redacted, "")
		s.events(s.do("GET", "", inSession, "Last-Event-ID: 3")).gets("")
	})
	t.Run("by the proxy itself, when it broke", func(t *testing.T) {
		b := &resumable{events: events3(), cut: 2, broken: true, resumed: make(chan string, 1)}
		s := stage(t, redact, b.ServeHTTP)
		s.events(s.do("POST", call("7", "{}"), inSession)).gets(b.events[0], b.events[1], redacted, "")
		require.Equal(t, "2", take(t, b.resumed))
	})
	t.Run("after the client was gone", func(t *testing.T) {
		b := &resumable{events: events3(), cut: 2, resumed: make(chan string, 2), hold: make(chan struct{})}
		s := stage(t, redact, b.ServeHTTP)
		s.events(s.do("POST", call("7", "{}"), inSession)).gets(b.events[0], b.events[1], "")
		ctx, leave := context.WithCancel(t.Context())
		s.events(s.with(ctx, "GET", "", inSession, "Last-Event-ID: 2")).gets(redacted)
		leave()
		close(b.hold)
		s.events(s.do("GET", "", inSession, "Last-Event-ID: 2")).gets(redacted, "")
	})
	t.Run("but nobody else's answer comes on it", func(t *testing.T) {
		b := &resumable{events: append(events3()[:2], "id: 3\ndata: "+result("8", `{"text":"secret"}`)), cut: 2, resumed: make(chan string, 1)}
		s := stage(t, redact, b.ServeHTTP)
		s.events(s.do("POST", call("7", "{}"), inSession)).gets(b.events[0], b.events[1], "")
		s.events(s.do("GET", "", inSession, "Last-Event-ID: 2")).gets("id: 3", "")
		require.Equal(t, []relay.Cause{relay.UnknownResponse}, s.watcher.causes())
	})
	t.Run("nor one that was cancelled", func(t *testing.T) {
		b := &resumable{events: events3(), cut: 2, resumed: make(chan string, 1)}
		s := stage(t, redact, b.ServeHTTP)
		s.events(s.do("POST", call("7", "{}"), inSession)).gets(b.events[0], b.events[1], "")
		s.read(s.do("POST", notification("notifications/cancelled", `{"requestId":7}`), inSession))
		s.events(s.do("GET", "", inSession, "Last-Event-ID: 2")).gets("id: 3", "")
		require.Equal(t, []relay.Cause{relay.CancelledResponse}, s.watcher.causes())
	})
}

// A replica refuses what it cannot know: whose answer a stream brings.
func TestResumingIsRefused(t *testing.T) {
	b := &resumable{events: events3(), cut: 2, resumed: make(chan string, 10)}
	one, other := stage(t, redact, b.ServeHTTP), stage(t, redact, b.ServeHTTP)
	one.events(one.do("POST", call("7", "{}"), inSession)).gets(b.events[0], b.events[1], "")
	for name, c := range map[string]struct {
		at      *scene
		headers []string
	}{
		"at another replica":    {other, []string{inSession, "Last-Event-ID: 2"}},
		"in another session":    {one, []string{"Mcp-Session-Id: s2", "Last-Event-ID: 2"}},
		"in no session":         {one, []string{"Last-Event-ID: 2"}},
		"behind what was never": {one, []string{inSession, "Last-Event-ID: 3"}},
	} {
		t.Run(name, func(t *testing.T) {
			res := c.at.do("GET", "", c.headers...)
			require.Equal(t, 404, res.StatusCode)
			require.Equal(t, "session not found\n", c.at.read(res))
		})
	}
	require.Empty(t, b.resumed, "the backend is not asked")
	t.Run("by somebody else", func(t *testing.T) {
		b := &resumable{events: events3(), cut: 2, resumed: make(chan string, 10)}
		s := stage(t, redact, b.ServeHTTP)
		ann, bob := &abi.Principal{Type: abi.PrincipalUser, ID: "ann"}, &abi.Principal{Type: abi.PrincipalUser, ID: "bob"}
		s.as(ann)
		s.read(s.do("POST", request("0", "initialize", "{}")))
		s.events(s.do("POST", call("7", "{}"), inSession)).gets(b.events[0], b.events[1], "")
		for _, caller := range []*abi.Principal{bob, nil} {
			s.as(caller)
			for _, headers := range [][]string{{inSession, "Last-Event-ID: 2"}, {inSession}} {
				require.Equal(t, 404, s.do("GET", "", headers...).StatusCode)
			}
			require.Equal(t, 404, s.do("POST", call("8", "{}"), inSession).StatusCode)
			require.Equal(t, 404, s.do("DELETE", "", inSession).StatusCode)
		}
		require.Empty(t, b.resumed)
		s.as(ann)
		s.events(s.do("GET", "", inSession, "Last-Event-ID: 2")).gets(redacted, "")
	})
}

func TestTrailsAreBounded(t *testing.T) {
	t.Run("ids of one stream", func(t *testing.T) {
		tr := newTrails()
		one := tr.begin(relay.Ticket{})
		for i := range 10 * idsOfTrail {
			tr.pass(one, fmt.Sprint(i))
		}
		require.Len(t, one.ids, idsOfTrail)
		require.Len(t, tr.byID, idsOfTrail)
		require.Nil(t, tr.resume("0"))
		require.Same(t, one, tr.resume(fmt.Sprint(10*idsOfTrail-1)))
	})
	t.Run("long ids", func(t *testing.T) {
		tr := newTrails()
		one := tr.begin(relay.Ticket{})
		for i := range 1000 {
			tr.pass(one, fmt.Sprintf("%01000d", i))
		}
		require.Len(t, one.ids, idBytes/1000)
		require.Len(t, tr.byID, idBytes/1000)
		require.Equal(t, idBytes/1000*1000, one.bytes)
	})
	t.Run("streams that ended", func(t *testing.T) {
		tr := newTrails()
		for i := range 10 * endedTrails {
			one := tr.begin(relay.Ticket{})
			tr.pass(one, fmt.Sprint(i))
			require.True(t, tr.leave(one))
		}
		require.Len(t, tr.ended, endedTrails)
		require.Len(t, tr.byID, endedTrails)
	})
	t.Run("streams without ids are forgotten at once", func(t *testing.T) {
		tr := newTrails()
		require.False(t, tr.leave(tr.begin(relay.Ticket{})))
		require.Empty(t, tr.ended)
	})
	t.Run("what their requests keep", func(t *testing.T) {
		var n atomic.Int64
		s := stage(t, redact, func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", typeSSE)
			fmt.Fprintf(w, "id: %d\ndata: \n\n", n.Add(1)) // and no answer: poll for it
		})
		large := strings.Repeat("x", 3<<20)
		for i := range 5 {
			s.read(s.do("POST", call(fmt.Sprint(i), `{"x":"`+large+`"}`), inSession))
		}
		s.proxy.scopes.mu.Lock()
		sc := s.proxy.scopes.byID["s1"]
		s.proxy.scopes.mu.Unlock()
		require.Len(t, sc.trails.ended, 2)
		require.Equal(t, 2, sc.session.Open(relay.Client), "those that nobody can bring the answer of are given up")
	})
}
