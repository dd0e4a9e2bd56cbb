package streamable_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway"
	"github.com/weir-mcp/weir/gateway/relay"
	"github.com/weir-mcp/weir/gateway/streamable"
	"github.com/weir-mcp/weir/internal/leak"
	"github.com/weir-mcp/weir/internal/logbook"
	"github.com/weir-mcp/weir/internal/sse"
	"github.com/weir-mcp/weir/internal/wire"
)

const patience = 30 * time.Second

// house is a front with real backends, behind a real HTTP server.
type house struct {
	t     *testing.T
	front *streamable.Front
	url   string
	book  *logbook.Book
	mu    sync.Mutex
	count map[relay.Cause]int
	// principal is who is calling.
	principal func(*http.Request) *abi.Principal
}

func (h *house) Governed(relay.Record) {}

func (h *house) Arrived(relay.Side, wire.Kind) {}

func (h *house) Discarded(d relay.Discard) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count[d.Cause]++
}

func (h *house) discards(c relay.Cause) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.count[c]
}

// newHouse starts a front for backends of the given kind. After the test nothing
// of it may be left.
func newHouse(t *testing.T, kind string, adapt ...func(*streamable.FrontOptions)) *house {
	t.Helper()
	leak.Goroutines(t, "gateway/streamable.", "gateway/relay.")
	leak.Descriptors(t)
	h := &house{t: t, book: &logbook.Book{}, count: map[relay.Cause]int{}}
	o := streamable.FrontOptions{
		Start: func(context.Context, *abi.Principal) (relay.End, error) {
			return gateway.Start(gateway.Command{Args: []string{os.Args[0]}, Env: map[string]string{"STREAMABLE_TEST_SERVER": kind}, Stderr: io.Discard})
		},
		Relay:  relay.Options{Observer: h, Leave: 100 * time.Millisecond},
		Logger: h.book.Text(),
	}
	for _, f := range adapt {
		f(&o)
	}
	h.front = streamable.NewFront(o)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h.principal != nil {
			r = r.WithContext(relay.WithPrincipal(r.Context(), h.principal(r)))
		}
		h.front.ServeHTTP(w, r)
	}))
	h.url = server.URL
	t.Cleanup(func() {
		defer server.Close()
		server.CloseClientConnections()
		// Calls of tests that are over are not waited for.
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = h.front.Shutdown(ctx)
		require.Zero(t, h.front.Sessions())
		http.DefaultClient.CloseIdleConnections()
	})
	return h
}

// client speaks HTTP by hand.
type client struct {
	*house
	header http.Header
}

func (h *house) client(headers ...string) *client {
	c := &client{h, http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}}
	for i := 0; i < len(headers); i += 2 {
		c.header.Set(headers[i], headers[i+1])
	}
	return c
}

// answer is an HTTP response that is being read.
type answer struct {
	*http.Response
	t      *testing.T
	events *sse.Reader
	cancel context.CancelFunc
}

func (c *client) do(method, body string, headers ...string) *answer {
	c.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c.t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, method, c.url, strings.NewReader(body))
	require.NoError(c.t, err)
	for name, values := range c.header {
		r.Header[name] = values
	}
	for i := 0; i < len(headers); i += 2 {
		if r.Header.Del(headers[i]); headers[i+1] != "" {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	res, err := http.DefaultClient.Do(r)
	require.NoError(c.t, err)
	c.t.Cleanup(func() { res.Body.Close() })
	return &answer{res, c.t, sse.NewReader(res.Body, sse.Limits{}), cancel}
}

func (c *client) post(body string, headers ...string) *answer {
	c.t.Helper()
	return c.do(http.MethodPost, body, headers...)
}

// text is the whole body, of a stream the data.
func (a *answer) text() string {
	a.t.Helper()
	if a.Header.Get("Content-Type") == "text/event-stream" {
		var all []string
		for {
			e, err := a.events.Next()
			if err != nil {
				require.Equal(a.t, io.EOF, err)
				return strings.Join(all, "\n")
			}
			if len(e.Data) > 0 {
				all = append(all, string(e.Data))
			}
		}
	}
	b, err := io.ReadAll(a.Body)
	require.NoError(a.t, err)
	return string(b)
}

// is demands a status and a body that contains the words.
func (a *answer) is(status int, words ...string) string {
	a.t.Helper()
	text := a.text()
	require.Equal(a.t, status, a.StatusCode, text)
	for _, w := range words {
		require.Contains(a.t, text, w)
	}
	return text
}

// next is the data of the next event with data.
func (a *answer) next() (data, id string) {
	a.t.Helper()
	require.Equal(a.t, "text/event-stream", a.Header.Get("Content-Type"))
	for {
		e, err := a.events.Next()
		require.NoError(a.t, err)
		if len(e.Data) > 0 {
			return string(e.Data), e.ID
		}
	}
}

// gets demands these messages next, byte for byte.
func (a *answer) gets(messages ...string) {
	a.t.Helper()
	for _, want := range messages {
		got, _ := a.next()
		require.Equal(a.t, want, got)
	}
}

// ends demands that nothing more comes.
func (a *answer) ends() {
	a.t.Helper()
	for {
		e, err := a.events.Next()
		if err != nil {
			require.Equal(a.t, io.EOF, err)
			return
		}
		require.Empty(a.t, e.Data)
	}
}

// drop breaks the connection.
func (a *answer) drop() {
	a.cancel()
	a.Body.Close()
}

// open starts a session of a protocol version.
func (h *house) open(version string, headers ...string) *client {
	h.t.Helper()
	c := h.client(headers...)
	res := c.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"` + version + `","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	res.is(http.StatusOK, `"protocolVersion"`)
	c.header.Set("Mcp-Session-Id", res.Header.Get("Mcp-Session-Id"))
	c.header.Set("Mcp-Protocol-Version", version)
	require.NotEmpty(h.t, c.header.Get("Mcp-Session-Id"))
	c.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`).is(http.StatusAccepted)
	return c
}

// stateless is a client of the stateless era.
func (h *house) stateless(headers ...string) *client {
	return h.client(append([]string{"Mcp-Protocol-Version", "2026-07-28"}, headers...)...)
}

const meta = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}`

// request is a request of the stateless era.
func request(id, method, params string) string {
	if params != "" {
		params += ","
	}
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":{` + params + `"_meta":{` + meta + `}}}`
}

// call posts a tools/call of the stateless era.
func (c *client) call(id, tool, args string) *answer {
	c.t.Helper()
	return c.post(request(id, "tools/call", `"name":"`+tool+`","arguments":`+args), "Mcp-Method", "tools/call", "Mcp-Name", tool)
}

func call(id, tool, args string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + args + `,"_meta":{"progressToken":` + id + `}}}`
}

// words is the text in the result of a tool.
func words(t *testing.T, message string) string {
	t.Helper()
	var m struct {
		Result struct{ Content []struct{ Text string } }
	}
	require.NoError(t, json.NewDecoder(bytes.NewReader([]byte(message))).Decode(&m), message)
	require.Len(t, m.Result.Content, 1, message)
	return m.Result.Content[0].Text
}

// eventually waits for something that is on its way.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	require.Eventually(t, is, patience, 5*time.Millisecond, what)
}

var errStart = errors.New("no such program")
