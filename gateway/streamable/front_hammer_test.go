//go:build unix

package streamable_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/gateway/relay"
	"github.com/weir-mcp/weir/gateway/streamable"
	"github.com/weir-mcp/weir/internal/sse"
)

// Many clients of both eras that call, hang up in the middle, come back, cancel,
// kill their backend and leave without a word: every call that is waited for gets
// its own answer, once, and nothing is left in the end.
func TestHammerFront(t *testing.T) {
	const clients, rounds = 12, 40
	h := newHouse(t, "raw", func(o *streamable.FrontOptions) { o.Idle = 300 * time.Millisecond })
	h.front.Slow(2 * time.Millisecond)
	var answered, resumed atomic.Int64
	var all sync.WaitGroup
	for n := range clients {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(n), 7))
			p := &hammerer{house: h, rand: r, name: n}
			for i := range rounds {
				p.round(i, &answered, &resumed)
			}
			if n%3 == 0 && p.session != "" {
				p.send(http.MethodDelete, "", nil)
			}
		})
	}
	all.Wait()
	require.Greater(t, answered.Load(), int64(clients*rounds/4))
	eventually(t, "all backends are gone", func() bool { return h.front.Sessions() == 0 })
	require.Zero(t, h.front.Calls())
	require.Zero(t, h.discards(relay.BadMessage))
	t.Log(answered.Load(), "answered,", resumed.Load(), "of them from a resumed stream")
}

type hammerer struct {
	*house
	rand    *rand.Rand
	name    int
	session string
}

// send sends without demanding anything. The response may be nil.
func (p *hammerer) send(method, body string, headers map[string]string) *http.Response {
	r, err := http.NewRequest(method, p.url, strings.NewReader(body))
	if err != nil {
		p.t.Error(err)
		return nil
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if p.session != "" && headers["Mcp-Method"] == "" {
		r.Header.Set("Mcp-Session-Id", p.session)
	}
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil
	}
	return res
}

func (p *hammerer) round(i int, answered, resumed *atomic.Int64) {
	word := fmt.Sprintf("%d-%d", p.name, i)
	if p.rand.IntN(3) == 0 {
		body := request(strconv.Itoa(i), "tools/call", `"name":"echo","arguments":"`+word+`"`)
		res := p.send(http.MethodPost, body, map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "echo"})
		if p.check(res, i, word, nil) {
			answered.Add(1)
		}
		return
	}
	if p.session == "" {
		res := p.send(http.MethodPost, `{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25"}}`, nil)
		if res == nil {
			return
		}
		p.session = res.Header.Get("Mcp-Session-Id")
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
	id := strconv.Itoa(i)
	switch p.rand.IntN(10) {
	case 0:
		res := p.send(http.MethodPost, call(id, "die", "{}"), nil)
		if res != nil {
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
		p.session = ""
	case 1: // leaves without a word
		p.session = ""
	case 2:
		if res := p.send(http.MethodPost, call(id, "hang", "{}"), nil); res != nil {
			res.Body.Close()
		}
		if res := p.send(http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`}}`, nil); res != nil {
			res.Body.Close()
		}
	case 3, 4: // hangs up in the middle and comes back
		res := p.send(http.MethodPost, call(id, "slow", "20"), nil)
		var last string
		if res != nil && res.Header.Get("Content-Type") == "text/event-stream" {
			if e, err := sse.NewReader(res.Body, sse.Limits{}).Next(); err == nil {
				last = e.ID
			}
		}
		if res != nil {
			res.Body.Close()
		}
		if last == "" {
			return
		}
		res = p.send(http.MethodGet, "", map[string]string{"Last-Event-Id": last})
		if p.check(res, i, "slow", resumed) {
			answered.Add(1)
		}
	default:
		res := p.send(http.MethodPost, call(id, "echo", `"`+word+`"`), nil)
		if p.check(res, i, word, nil) {
			answered.Add(1)
		}
	}
}

// check demands that an answer is the right one, if there is one.
func (p *hammerer) check(res *http.Response, i int, word string, count *atomic.Int64) bool {
	if res == nil {
		return false
	}
	body, _ := io.ReadAll(res.Body)
	res.Body.Close()
	text := string(body)
	if n := strings.Count(text, `"id":`+strconv.Itoa(i)+`,"result"`); n > 1 {
		p.t.Errorf("%d answers: %s", n, text)
	} else if n == 0 {
		if res.StatusCode == http.StatusOK && !strings.Contains(text, `"error"`) && len(text) > 0 && !strings.Contains(text, "data:") {
			p.t.Errorf("neither an answer nor an error: %d %s", res.StatusCode, text)
		}
		return false
	}
	if !strings.Contains(text, word) {
		p.t.Errorf("the answer of somebody else: %s", text)
	}
	if count != nil {
		count.Add(1)
	}
	return true
}
