//go:build unix

package streamable_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/relay"
	"github.com/weir-mcp/weir/gateway/streamable"
)

const (
	asked   = `{"jsonrpc":"2.0","id":"q7","method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}`
	ping    = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	pong    = `{"jsonrpc":"2.0","id":1,"result":{}}`
	deleted = http.StatusNoContent
)

func progress(token, n string) string {
	return `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + token + `,"progress":` + n + `}}`
}

// running says whether a process is there. A zombie that its parent has not
// reaped counts as gone.
func running(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !strings.Contains(string(stat), ") Z ")
}

func pidOf(t *testing.T, message string) int {
	t.Helper()
	pid, err := strconv.Atoi(words(t, message))
	require.NoError(t, err)
	return pid
}

// What does not fit the transport is refused before any backend sees it.
func TestRefusedByTheTransport(t *testing.T) {
	h := newHouse(t, "raw")
	c := h.open("2025-06-18")
	for _, q := range []struct {
		name, method, body string
		headers            []string
		status             int
		words              string
	}{
		{"no JSON by its type", "POST", ping, []string{"Content-Type", "text/plain"}, 415, "Content-Type"},
		{"no type", "POST", ping, []string{"Content-Type", ""}, 415, "Content-Type"},
		{"a charset", "POST", ping, []string{"Content-Type", "application/json; charset=utf-8"}, 200, pong},
		{"compressed", "POST", ping, []string{"Content-Encoding", "gzip"}, 415, "Content-Encoding"},
		{"accepts JSON only", "POST", ping, []string{"Accept", "application/json"}, 406, "Accept"},
		{"accepts streams only", "POST", ping, []string{"Accept", "text/event-stream"}, 406, "Accept"},
		{"accepts nothing of it", "POST", ping, []string{"Accept", "application/json;q=0, text/event-stream"}, 406, "Accept"},
		{"accepts all", "POST", ping, []string{"Accept", "*/*"}, 200, pong},
		{"accepts by weight", "POST", ping, []string{"Accept", "application/*;q=0.1, text/event-stream;q=1"}, 200, pong},
		{"not JSON", "POST", `{"jsonrpc"`, nil, 400, `"id":null,"error":{"code":-32700`},
		{"a batch", "POST", "[" + ping + "]", nil, 400, `"code":-32600`},
		{"a request with equal names", "POST", `{"jsonrpc":"2.0","id":7,"method":"ping","method":"x"}`, nil, 400, `"id":7,"error":{"code":-32600`},
		{"Method beside method", "POST", `{"jsonrpc":"2.0","id":7,"method":"ping","Method":"x"}`, nil, 400, `"id":7,"error":{"code":-32600`},
		{"equal names in params", "POST", `{"jsonrpc":"2.0","id":7,"method":"ping","params":{"name":"safe","Name":"evil"}}`, nil, 400, `"id":7,"error":{"code":-32600`},
		{"a version that is none", "POST", ping, []string{"Mcp-Protocol-Version", "1.0"}, 400, "Mcp-Protocol-Version"},
		{"a version that is unknown", "POST", ping, []string{"Mcp-Protocol-Version", "2025-01-01"}, 400, "does not speak"},
		{"no version", "POST", ping, []string{"Mcp-Protocol-Version", ""}, 200, pong},
		{"another version of the session era", "POST", ping, []string{"Mcp-Protocol-Version", "2025-11-25"}, 200, pong},
		{"no session", "POST", ping, []string{"Mcp-Session-Id", ""}, 400, "Mcp-Session-Id"},
		{"an unknown session", "POST", ping, []string{"Mcp-Session-Id", "x"}, 404, "no such session"},
		{"an unknown session, GET", "GET", "", []string{"Mcp-Session-Id", "x"}, 404, "no such session"},
		{"an unknown session, DELETE", "DELETE", "", []string{"Mcp-Session-Id", "x"}, 404, "no such session"},
		{"GET without a session", "GET", "", []string{"Mcp-Session-Id", ""}, 400, "Mcp-Session-Id"},
		{"GET of JSON", "GET", "", []string{"Accept", "application/json"}, 406, "text/event-stream"},
		{"GET of what is no event id", "GET", "", []string{"Last-Event-Id", "nonsense"}, 400, "Last-Event-Id"},
		{"GET of an unknown stream", "GET", "", []string{"Last-Event-Id", "99-1"}, 400, "Last-Event-Id"},
		{"GET of an event that is to come", "GET", "", []string{"Last-Event-Id", "0-5"}, 400, "Last-Event-Id"},
		{"PUT", "PUT", "", nil, 405, "not allowed"},
		{"OPTIONS", "OPTIONS", "", nil, 405, "not allowed"},
		{"HEAD", "HEAD", "", nil, 405, ""},
		{"GET in the stateless era", "GET", "", []string{"Mcp-Protocol-Version", "2026-07-28"}, 405, "not allowed"},
		{"DELETE in the stateless era", "DELETE", "", []string{"Mcp-Protocol-Version", "2026-07-28"}, 405, "not allowed"},
	} {
		t.Run(q.name, func(t *testing.T) {
			res := c.do(q.method, q.body, q.headers...)
			if q.status == 405 {
				want := "GET, POST, DELETE"
				if strings.Contains(q.name, "stateless") {
					want = "POST"
				}
				require.Equal(t, want, res.Header.Get("Allow"))
			}
			res.is(q.status, q.words)
		})
	}
	c.post(ping).is(200, pong)
}

// In the stateless era headers and body say the same, or the request is refused
// with the specification's own error.
func TestHeadersThatDoNotMatchTheBody(t *testing.T) {
	h := newHouse(t, "raw")
	c := h.stateless()
	body := request("7", "tools/call", `"name":"echo","arguments":1`)
	for _, q := range []struct {
		name    string
		headers []string
		status  int
		words   string
	}{
		{"right", []string{"Mcp-Method", "tools/call", "Mcp-Name", "echo"}, 200, `"id":7,"result"`},
		{"in base64", []string{"Mcp-Method", "tools/call", "Mcp-Name", "=?base64?ZWNobw==?="}, 200, `"id":7,"result"`},
		{"no method", []string{"Mcp-Name", "echo"}, 400, `"id":7,"error":{"code":-32020`},
		{"another method", []string{"Mcp-Method", "ping", "Mcp-Name", "echo"}, 400, `"id":7,"error":{"code":-32020`},
		{"no name", []string{"Mcp-Method", "tools/call"}, 400, `"id":7,"error":{"code":-32020`},
		{"another name", []string{"Mcp-Method", "tools/call", "Mcp-Name", "die"}, 400, `"id":7,"error":{"code":-32020`},
		{"another version", []string{"Mcp-Method", "tools/call", "Mcp-Name", "echo", "Mcp-Protocol-Version", "2026-08-01"}, 400, `"id":7,"error":{"code":-32020`},
		{"no version", []string{"Mcp-Method", "tools/call", "Mcp-Name", "echo", "Mcp-Protocol-Version", ""}, 400, `"id":7,"error":{"code":-32020`},
	} {
		t.Run(q.name, func(t *testing.T) { c.post(body, q.headers...).is(q.status, q.words) })
	}
	c.post(`{"jsonrpc":"2.0","method":"notifications/x"}`, "Mcp-Method", "notifications/x").is(202)
}

func Test_cancelled_call(t *testing.T) {
	t.Run("session era", func(t *testing.T) {
		h := newHouse(t, "raw")
		c := h.open("2025-06-18")
		hang := c.post(call("7", "hang", "{}"))
		hang.gets(progress("7", "1"))
		c.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`).is(202)
		hang.ends()
		require.Equal(t, "7", words(t, c.post(call("8", "cancelled", "{}")).is(200)))
	})
	t.Run("stateless era, by disconnecting", func(t *testing.T) {
		h := newHouse(t, "raw")
		c := h.stateless()
		hang := c.post(strings.Replace(request(`"a"`, "tools/call", `"name":"hang","arguments":{}`), `"_meta":{`, `"_meta":{"progressToken":"tok",`, 1), "Mcp-Method", "tools/call", "Mcp-Name", "hang")
		hang.gets(progress(`"tok"`, "1"))
		hang.drop()
		eventually(t, "the backend is told", func() bool {
			return words(t, c.call("1", "cancelled", "{}").is(200)) == "1"
		})
	})
}

func Test_progress_and_sampling(t *testing.T) {
	for _, version := range []string{"2025-03-26", "2025-06-18", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			h := newHouse(t, "raw")
			c := h.open(version)
			listen := c.do("GET", "")
			other := c.post(call("9", "hang", "{}"))
			other.gets(progress("9", "1"))
			work := c.post(call("7", "work", "{}"))
			work.gets(progress("7", "1"))
			// Two calls are open and nothing says to which a question belongs.
			listen.gets(asked)
			c.post(`{"jsonrpc":"2.0","id":"q7","result":{"role":"assistant","n":1.0}}`).is(202)
			work.gets(progress("7", "2"), `{"jsonrpc":"2.0","id":7,"result":{"content":[],"answer":{"role":"assistant","n":1.0}}}`)
			work.ends()
		})
	}
	t.Run("the only call has it all, in order", func(t *testing.T) {
		h := newHouse(t, "raw")
		c := h.open("2025-06-18")
		c.do("GET", "")
		work := c.post(call("7", "work", "{}"))
		work.gets(progress("7", "1"), asked)
		c.post(`{"jsonrpc":"2.0","id":"q7","result":{}}`).is(202)
		work.gets(progress("7", "2"), `{"jsonrpc":"2.0","id":7,"result":{"content":[],"answer":{}}}`)
	})
	t.Run("there is nobody to ask in the stateless era", func(t *testing.T) {
		h := newHouse(t, "raw")
		text := h.stateless().call("7", "work", "{}").is(200)
		require.Contains(t, text, `"id":7,"result":{"content":[],"answer":{"code":-32601`)
		require.Equal(t, 1, h.discards(streamable.BackendAsked))
	})
}

func Test_dead_backend(t *testing.T) {
	t.Run("session era", func(t *testing.T) {
		h := newHouse(t, "raw")
		c := h.open("2025-06-18")
		hang := c.post(call("7", "hang", "{}"))
		hang.gets(progress("7", "1"))
		c.post(call("8", "die", "{}")).is(200, `"id":8,"error":{"code":-32603`)
		data, _ := hang.next()
		require.Contains(t, data, `"id":7,"error":{"code":-32603`)
		hang.ends()
		eventually(t, "the session is gone", func() bool { return c.post(ping).StatusCode == 404 })
		h.open("2025-06-18").post(ping).is(200, pong)
	})
	t.Run("stateless era", func(t *testing.T) {
		h := newHouse(t, "raw")
		c := h.stateless()
		c.call("8", "die", "{}").is(200, `"id":8,"error":{"code":-32603`)
		c.call("9", "pid", "{}").is(200, `"id":9,"result"`)
		// Then it is started more slowly.
		c.call("8", "die", "{}").is(200, `"id":8,"error":{"code":-32603`)
		eventually(t, "a backend that dies again and again has to wait", func() bool {
			res := c.call("9", "die", "{}")
			return res.StatusCode == 503 && res.Header.Get("Retry-After") != ""
		})
		eventually(t, "but not for ever", func() bool { return c.call("9", "pid", "{}").StatusCode == 200 })
	})
	t.Run("does not start", func(t *testing.T) {
		h := newHouse(t, "raw", func(o *streamable.FrontOptions) {
			o.Start = func(context.Context, *abi.Principal) (relay.End, error) { return nil, errStart }
		})
		res := h.client().post(`{"jsonrpc":"2.0","id":"a","method":"initialize","params":{}}`)
		require.NotEmpty(t, res.Header.Get("Retry-After"))
		res.is(503, `"id":"a","error":{"code":-32603`)
		h.stateless().call("1", "pid", "{}").is(503, `"id":1,"error":{"code":-32603`)
		require.Equal(t, 2, h.book.Count(errStart.Error()))
		require.Zero(t, h.front.Sessions())
	})
}

func Test_two_sessions_notified(t *testing.T) {
	changed := `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
	t.Run("session era", func(t *testing.T) {
		h := newHouse(t, "raw")
		a, b := h.open("2025-06-18"), h.open("2025-06-18")
		for _, c := range []*client{a, b} {
			listen := c.do("GET", "")
			// From the session's own backend, once, and to no other session.
			require.Contains(t, c.post(call("1", "say", `["`+strings.ReplaceAll(changed, `"`, `\"`)+`"]`)).is(200), changed)
			c.do("DELETE", "").is(deleted)
			listen.ends()
		}
	})
	t.Run("stateless era", func(t *testing.T) {
		h := newHouse(t, "raw")
		c := h.stateless()
		listen := func(id string) *answer {
			res := c.post(request(id, "subscriptions/listen", `"notifications":{"toolsListChanged":true}`), "Mcp-Method", "subscriptions/listen")
			spelled := id
			if id[0] != '"' {
				spelled = `"` + id + `"`
			}
			res.gets(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":` + spelled + `}}}`)
			return res
		}
		first, second := listen("1"), listen(`"x\u0041"`)
		say := func(line string) { c.call("1", "say", `["`+strings.ReplaceAll(line, `"`, `\"`)+`"]`).is(200, "said") }
		say(changed)
		first.gets(changed)
		second.gets(changed)
		first.drop()
		eventually(t, "the first has left", func() bool { return words(t, c.call("1", "cancelled", "{}").is(200)) == "1" })
		say(changed)
		second.gets(changed)
		// What belongs to no request is dropped and counted.
		say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"secret of another"}}`)
		require.Equal(t, 1, h.discards(streamable.Unattributed))
	})
}

func Test_big_body(t *testing.T) {
	h := newHouse(t, "raw", func(o *streamable.FrontOptions) { o.Body = 4 << 20 })
	big := strings.Repeat("x", 5<<20)
	c := h.open("2025-06-18")
	c.post(call("7", "echo", `"`+big+`"`)).is(413, `"id":7,"error":{"code":-32600`)
	c.post(call("8", "echo", `"`+big[:3<<20]+`"`)).is(200, `"id":8,"result"`, big[:3<<20])
	c.post(ping).is(200, pong)
	s := h.stateless()
	s.call("7", "echo", `"`+big+`"`).is(413, `"id":7,"error":{"code":-32600`)
	s.call("8", "echo", `"`+big[:3<<20]+`"`).is(200, `"id":8,"result"`, big[:3<<20])
	require.Equal(t, 2, h.discards(relay.TooLarge))
}

func Test_smuggled_lines(t *testing.T) {
	inner := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"die"}}`
	h := newHouse(t, "raw")
	for name, c := range map[string]*client{"session era": h.open("2025-06-18"), "stateless era": h.stateless("Mcp-Method", "tools/call", "Mcp-Name", "echo")} {
		t.Run(name, func(t *testing.T) {
			body := "{\n\"jsonrpc\":\"2.0\",\"id\":7,\r\n\"method\":\"tools/call\",\"params\":{\"name\":\"echo\",\"_meta\":{" + meta + "},\"arguments\":{\"x\":\n" + inner + "\n}}}"
			text := c.post(body).is(200, `"id":7,"result"`, inner)
			require.NotContains(t, strings.TrimSpace(text), "\n")
			// The backend is the same process as before, and has had one message.
			c.post(strings.Replace(body, `"id":7`, `"id":8`, 1)).is(200, `"id":8,"result"`)
		})
	}
}

func Test_reused_id(t *testing.T) {
	h := newHouse(t, "raw")
	t.Run("session era", func(t *testing.T) {
		c := h.open("2025-06-18")
		hang := c.post(call("7", "hang", "{}"))
		hang.gets(progress("7", "1"))
		for _, id := range []string{"7", "7.0", "70e-1"} {
			c.post(`{"jsonrpc":"2.0","id":`+id+`,"method":"ping"}`).is(400, `"id":`+id+`,"error":{"code":-32600`)
		}
		require.Equal(t, 3, h.discards(relay.ReusedID))
		for _, id := range []string{`"7"`, "9007199254740993", "1.0", `"\u0041"`} {
			c.post(`{"jsonrpc":"2.0","id":`+id+`,"method":"ping"}`).is(200, `{"jsonrpc":"2.0","id":`+id+`,"result":{}}`)
		}
		// After a cancellation the backend may still answer: the id stays taken.
		c.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`).is(202)
		hang.ends()
		c.post(`{"jsonrpc":"2.0","id":7,"method":"ping"}`).is(400, `"id":7,"error":{"code":-32600`)
	})
	t.Run("each request of the stateless era is a scope", func(t *testing.T) {
		c := h.stateless()
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				id := []string{"7", "7.0", `"7"`, "9007199254740993", "1e0"}[i%5]
				c.call(id, "echo", strconv.Itoa(i)).is(200, `"id":`+id+`,"result":{"content":[],"echo":`+strconv.Itoa(i)+`}`)
			})
		}
		all.Wait()
	})
}

func Test_unknown_response(t *testing.T) {
	h := newHouse(t, "raw")
	c := h.open("2025-06-18")
	c.post(`{"jsonrpc":"2.0","id":99,"result":{"role":"assistant"}}`).is(202)
	c.post(ping).is(200, pong)
	require.Equal(t, 1, h.discards(relay.UnknownResponse))
	stray := `["{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}"]`
	c.post(call("1", "say", stray)).is(200, "said")
	require.Equal(t, 2, h.discards(relay.UnknownResponse))
	s := h.stateless()
	s.call("1", "say", stray).is(200, "said")
	require.Equal(t, 3, h.discards(relay.UnknownResponse))
}

func Test_orphans(t *testing.T) {
	const sessions = 100
	h := newHouse(t, "raw", func(o *streamable.FrontOptions) { o.Idle = 2 * time.Second })
	heap := func() int {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	before := heap()
	var mu sync.Mutex
	var pids []int
	var all sync.WaitGroup
	gate := make(chan struct{}, 8)
	for range sessions {
		all.Go(func() {
			gate <- struct{}{}
			defer func() { <-gate }()
			c := h.open("2025-06-18")
			listen := c.do("GET", "")
			pid := pidOf(t, c.post(call("1", "pid", "{}")).is(200))
			mu.Lock()
			pids = append(pids, pid)
			mu.Unlock()
			listen.drop()
		})
	}
	all.Wait()
	eventually(t, "all backends are gone", func() bool { return h.front.Sessions() == 0 })
	require.Len(t, pids, sessions)
	for _, pid := range pids {
		require.False(t, running(pid))
	}
	http.DefaultClient.CloseIdleConnections()
	eventually(t, "the memory is free again", func() bool { return heap()-before < sessions*50<<10 })
	// leak.Descriptors and leak.Goroutines look at the rest.
}

// What a backend has started goes with its session.
func TestWholeProcessGroupsEnd(t *testing.T) {
	for name, end := range map[string]func(*house, *client){
		"DELETE": func(h *house, c *client) {
			c.do("DELETE", "").is(deleted)
			c.post(ping).is(404) // from the moment of the answer
		},
		"shutdown": func(h *house, c *client) { require.NoError(h.t, h.front.Shutdown(h.t.Context())) },
		"idle":     func(*house, *client) {},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, "raw", func(o *streamable.FrontOptions) {
				if name == "idle" {
					o.Idle = 2 * time.Second
				}
			})
			c := h.open("2025-11-25")
			child := pidOf(t, c.post(call("1", "child", "{}")).is(200))
			parent := pidOf(t, c.post(call("2", "pid", "{}")).is(200))
			require.True(t, running(child))
			end(h, c)
			eventually(t, "both are gone", func() bool { return !running(child) && !running(parent) })
			eventually(t, "the session is unknown", func() bool { return c.post(ping).StatusCode == 404 })
		})
	}
}

func TestSessionsAreLimited(t *testing.T) {
	h := newHouse(t, "raw", func(o *streamable.FrontOptions) { o.Sessions = 2 })
	a := h.open("2025-06-18")
	h.stateless().call("1", "pid", "{}").is(200)
	res := h.client().post(`{"jsonrpc":"2.0","id":5,"method":"initialize","params":{}}`)
	require.NotEmpty(t, res.Header.Get("Retry-After"))
	res.is(503, `"id":5,"error":{"code":-32603`)
	a.do("DELETE", "").is(deleted)
	eventually(t, "there is room again", func() bool {
		return h.client().post(`{"jsonrpc":"2.0","id":5,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}`).StatusCode == 200
	})
}

// A session is known to the principal that opened it, and a process of the
// stateless era serves one principal only.
func TestPrincipals(t *testing.T) {
	h := newHouse(t, "raw")
	h.principal = func(r *http.Request) *abi.Principal {
		if name := r.Header.Get("X-Name"); name != "" {
			return &abi.Principal{Type: "service", ID: name}
		}
		return nil
	}
	c := h.open("2025-06-18", "X-Name", "ann")
	c.post(ping).is(200, pong)
	for _, other := range []string{"bob", ""} {
		c.post(ping, "X-Name", other).is(404, "no such session")
		c.do("GET", "", "X-Name", other).is(404, "no such session")
		c.do("DELETE", "", "X-Name", other).is(404, "no such session")
	}
	c.post(ping).is(200, pong)
	pid := func(name string) int { return pidOf(t, h.stateless("X-Name", name).call("1", "pid", "{}").is(200)) }
	ann, bob, nobody := pid("ann"), pid("bob"), pid("")
	require.Equal(t, []int{ann, bob, nobody}, []int{pid("ann"), pid("bob"), pid("")})
	require.NotEqual(t, ann, bob)
	require.NotEqual(t, ann, nobody)
	require.NotEqual(t, bob, nobody)
}

// A server of the session era answers server/discover with an error of its own,
// which is what makes clients initialize instead.
func TestDiscoverAgainstAnOldBackend(t *testing.T) {
	h := newHouse(t, "raw")
	h.stateless("Mcp-Method", "server/discover").post(request("1", "server/discover", "")).
		is(404, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no such method: server/discover"}}`)
	h.stateless("Mcp-Method", "tools/call", "Mcp-Name", "x").post(request("1", "tools/call", `"name":"x"`)).is(400, `"code":-32602`)
	h.open("2025-06-18").post(ping).is(200, pong)
}

// A stream that breaks is resumed where it broke, and no other one is.
func TestResume(t *testing.T) {
	h := newHouse(t, "raw")
	c := h.open("2025-11-25")
	listen := c.do("GET", "")
	work := c.post(call("7", "work", "{}"))
	data, id := work.next()
	require.Equal(t, progress("7", "1"), data)
	work.drop()
	again := c.do("GET", "", "Last-Event-Id", id)
	again.gets(asked)
	c.post(`{"jsonrpc":"2.0","id":"q7","result":{}}`).is(202)
	answer := `{"jsonrpc":"2.0","id":7,"result":{"content":[],"answer":{}}}`
	again.gets(progress("7", "2"), answer)
	again.ends()
	// As often as the client likes, and from before the first event, too.
	more := c.do("GET", "", "Last-Event-Id", id)
	more.gets(asked, progress("7", "2"), answer)
	more.ends()
	all := c.do("GET", "", "Last-Event-Id", strings.Split(id, "-")[0]+"-0")
	all.gets(progress("7", "1"), asked, progress("7", "2"), answer)
	all.ends()
	// A second stream of the session's own is refused, taking it up again is not.
	c.do("GET", "").is(409)
	own := c.do("GET", "", "Last-Event-Id", "0-0")
	listen.ends()
	own.drop()
}

// The answer to a slow call is not lost with its connection, where the protocol
// lets a stream begin without a message.
func TestSlowCallsCanBeResumed(t *testing.T) {
	h := newHouse(t, "raw")
	h.front.Slow(time.Millisecond)
	c := h.open("2025-11-25")
	slow := c.post(call("7", "slow", "300"))
	first, err := slow.events.Next()
	require.NoError(t, err)
	require.True(t, first.HasID && first.HasData && len(first.Data) == 0)
	slow.drop()
	again := c.do("GET", "", "Last-Event-Id", first.ID)
	data, _ := again.next()
	require.Equal(t, "slow", words(t, data))
	again.ends()
}

// What belongs to no request waits for a stream, within bounds.
func TestMessagesWaitForAStream(t *testing.T) {
	h := newHouse(t, "raw", func(o *streamable.FrontOptions) { o.Events = 5 })
	c := h.open("2025-06-18")
	var lines, want []string
	for i := range 8 {
		line := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/message","params":{"n":%d}}`, i)
		lines = append(lines, `"`+strings.ReplaceAll(line, `"`, `\"`)+`"`)
		want = append(want, line)
	}
	// They are said after the answer of the call.
	early := `"{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{}}"`
	c.post(call("1", "say", "["+early+","+strings.Join(lines, ",")+"]")).is(200, `"id":1,"result":{}`)
	eventually(t, "the tool has said it all", func() bool { return h.discards(relay.UnknownResponse) == 1 })
	dropped := h.discards(streamable.Undelivered)
	require.GreaterOrEqual(t, dropped, 3, "the oldest")
	require.LessOrEqual(t, dropped, 4, "the answer of the call takes room until it is written")
	listen := c.do("GET", "")
	listen.gets(want[dropped:]...)
	listen.drop()
}

// A question that nobody will ever see is answered in the client's place.
func TestAQuestionThatIsDroppedGetsAnError(t *testing.T) {
	h := newHouse(t, "raw", func(o *streamable.FrontOptions) { o.Events = 1 })
	c := h.open("2025-06-18")
	work := c.post(call("7", "work", "{}"))
	work.gets(progress("7", "1"), asked)
	work.drop()
	c.post(`{"jsonrpc":"2.0","id":"q7","result":{}}`).is(202)
	eventually(t, "the call goes on", func() bool { return c.post(ping).StatusCode == 200 })
}

func TestShutdownWaitsForCalls(t *testing.T) {
	h := newHouse(t, "raw")
	c, s := h.open("2025-06-18"), h.stateless()
	listen := s.post(request("1", "subscriptions/listen", ""), "Mcp-Method", "subscriptions/listen")
	var all sync.WaitGroup
	all.Go(func() { require.Equal(t, "slow", words(t, c.post(call("7", "slow", "500")).is(200))) })
	all.Go(func() { require.Equal(t, "slow", words(t, s.call("7", "slow", "500").is(200))) })
	eventually(t, "both calls are open", func() bool { return h.front.Calls() == 2 })
	done := make(chan error, 1)
	go func() { done <- h.front.Shutdown(context.Background()) }()
	eventually(t, "nothing new is taken", func() bool { return c.post(`{"jsonrpc":"2.0","id":8,"method":"ping"}`).StatusCode == 503 })
	s.call("8", "pid", "{}").is(503, `"id":8`)
	h.client().post(`{"jsonrpc":"2.0","id":5,"method":"initialize","params":{}}`).is(503)
	all.Wait()
	require.NoError(t, <-done)
	listen.next() // the acknowledgement
	data, _ := listen.next()
	require.Contains(t, data, `"id":1,"error"`)
}

func TestShutdownDoesNotWaitForEver(t *testing.T) {
	h := newHouse(t, "raw")
	c := h.open("2025-06-18")
	hang := c.post(call("7", "hang", "{}"))
	hang.gets(progress("7", "1"))
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, h.front.Shutdown(ctx), context.DeadlineExceeded)
	data, _ := hang.next()
	require.Contains(t, data, `"id":7,"error"`)
	hang.ends()
	require.Zero(t, h.front.Sessions())
}

// An answer of the client that does not pass is refused, and the backend that waits
// for it gets an error in its place.
func TestBadAnswersOfTheClient(t *testing.T) {
	h := newHouse(t, "raw", func(o *streamable.FrontOptions) { o.Body = 1000 })
	c := h.open("2025-06-18")
	for bad, want := range map[string]struct {
		status int
		cause  relay.Cause
	}{
		`{"jsonrpc":"2.0","id":"q7","result":{},"result":{}}`:                      {400, relay.BadMessage},
		`{"jsonrpc":"2.0","id":"q7","result":"` + strings.Repeat("x", 2000) + `"}`: {413, relay.TooLarge},
	} {
		work := c.post(call("7", "work", "{}"))
		work.gets(progress("7", "1"), asked)
		c.post(bad).is(want.status, `"id":null,"error":{"code":-32600`)
		work.gets(progress("7", "2"))
		data, _ := work.next()
		require.Contains(t, data, `"id":7,"result":{"content":[],"answer":{"code":-32603`)
		require.Equal(t, 1, h.discards(want.cause))
	}
}

// A session that the backend refuses is none.
func TestARefusedInitialize(t *testing.T) {
	h := newHouse(t, "raw")
	res := h.client().post(`{"jsonrpc":"2.0","id":5,"method":"initialize","params":{"protocolVersion":"refuse me"}}`)
	res.is(200, `"id":5,"error":{"code":-32602,"message":"unsupported"`)
	require.Empty(t, res.Header.Get("Mcp-Session-Id"))
	eventually(t, "its backend is gone", func() bool { return h.front.Sessions() == 0 })
}

// Streams that are silent are kept alive, and nothing on them waits.
func Test_long_stream(t *testing.T) {
	h := newHouse(t, "raw", func(o *streamable.FrontOptions) { o.KeepAlive = 10 * time.Millisecond })
	h.front.Slow(time.Millisecond)
	for name, hang := range map[string]*answer{
		"session era":   h.open("2025-06-18").post(call("7", "hang", "{}")),
		"stateless era": h.stateless("Mcp-Method", "subscriptions/listen").post(request("7", "subscriptions/listen", "")),
		"GET":           h.open("2025-06-18").do("GET", ""),
	} {
		t.Run(name, func(t *testing.T) {
			for comments := 0; comments < 3; {
				e, err := hang.events.Next()
				require.NoError(t, err)
				if e.IsComment {
					comments++
				}
			}
			hang.drop()
		})
	}
}

// In the stateless era a client that does not read is let go; the others share its
// backend and do not wait for it.
func TestASlowReaderHoldsNobodyUp(t *testing.T) {
	h := newHouse(t, "raw")
	c := h.stateless()
	flood := c.post(strings.Replace(request("7", "tools/call", `"name":"flood"`), `"_meta":{`, `"_meta":{"progressToken":"t",`, 1), "Mcp-Method", "tools/call", "Mcp-Name", "flood")
	eventually(t, "it has been let go", func() bool { return words(t, c.call("1", "cancelled", "{}").is(200)) == "1" })
	require.Equal(t, 1, h.book.Count("reads too slowly"))
	flood.drop()
}

// In a session it is the client itself who waits, and not for ever: its stream is
// cut, and can be resumed.
func TestAStreamThatIsNotReadIsCut(t *testing.T) {
	h := newHouse(t, "raw")
	h.front.Stall(100 * time.Millisecond)
	c := h.open("2025-06-18")
	flood := c.post(call("7", "flood", "{}"))
	_, id := flood.next()
	eventually(t, "more has come since than is kept", func() bool { return h.discards(streamable.Undelivered) > 0 })
	c.post(ping).is(200, pong)
	c.do("GET", "", "Last-Event-Id", id).is(400, "Last-Event-Id")
	flood.drop()
}

// guard governs tools/call by the name of the tool.
type guard struct{ seen chan relay.Operation }

func (guard) Governs(s relay.Scope) bool { return s.Event == abi.ToolsCall && s.Phase == abi.Request }

func (g guard) Govern(_ context.Context, op relay.Operation) relay.Decision {
	g.seen <- op
	switch {
	case strings.Contains(string(op.Payload), `"die"`):
		return relay.Decision{Block: &relay.Block{Reason: abi.StatusValidationFailed, Interceptor: "no-die"}}
	case strings.Contains(string(op.Payload), `"rename"`):
		return relay.Decision{Payload: []byte("{\n\"name\":\"echo\",\"arguments\":\"renamed\"}")}
	default:
		return relay.Decision{}
	}
}

// What the chain decides reaches the client on its own id with HTTP 200, whatever
// the era; operations carry the session and the principal.
func TestGoverned(t *testing.T) {
	g := guard{make(chan relay.Operation, 100)}
	h := newHouse(t, "raw", func(o *streamable.FrontOptions) { o.Relay.Governor = g })
	ann := &abi.Principal{Type: "service", ID: "ann"}
	h.principal = func(*http.Request) *abi.Principal { return ann }
	session, scopes := h.open("2025-06-18"), h.stateless()
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	session.header.Set("Traceparent", trace)
	scopes.header.Set("Traceparent", trace)
	for name, do := range map[string]func(id, tool string) *answer{
		"session era":   func(id, tool string) *answer { return session.post(call(id, tool, `"x"`)) },
		"stateless era": func(id, tool string) *answer { return scopes.call(id, tool, `"x"`) },
	} {
		t.Run(name, func(t *testing.T) {
			do("7.0", "die").is(200, `"id":7.0,"error":{"code":-32602,"message":"blocked by an interceptor"`, `"reference":"`, `"interceptor":"no-die"`)
			do("7.0", "rename").is(200, `"id":7.0,"result"`, `"echo":"renamed"`)
			do("7.0", "echo").is(200, `"id":7.0,"result"`, `"echo":"x"`)
			for range 3 {
				op := <-g.seen
				require.Equal(t, ann, op.Principal)
				require.Equal(t, trace, op.Traceparent)
				secret := map[bool]string{true: session.header.Get("Mcp-Session-Id")}[name == "session era"]
				require.Equal(t, relay.SessionName(secret), op.Session, "no key to the session")
			}
		})
	}
	// A governed message must not have equal names at any depth: refused, HTTP 400.
	session.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{"a":1,"a":2}}}`).is(400, `"id":1,"error":{"code":-32600`)
	scopes.post(request("1", "tools/call", `"name":"echo","arguments":{"a":1,"a":2}`), "Mcp-Method", "tools/call", "Mcp-Name", "echo").is(400, `"id":1,"error":{"code":-32600`)
}
