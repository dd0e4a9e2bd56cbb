//go:build linux

package parity

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/internal/need"
	"github.com/weir-mcp/weir/internal/sse"
	"github.com/weir-mcp/weir/internal/wire"
)

var soak = flag.Duration("parity.soak", 0, "let 200 sessions at once come and go for this long, instead of 24 for some seconds")

// TestSoak lets many clients at once use a gateway over HTTP. They leave in the
// middle, read slowly, and lose their backends. What holds: an answer comes on
// the id of its request, once and whole, or its stream ends; and when all have
// gone, the gateway holds what it held after the first round.
func TestSoak(t *testing.T) {
	need.Short(t, "it takes its time")
	clients, lasts := 24, 8*time.Second
	if *soak > 0 {
		clients, lasts = 200, *soak/2 // to each kind of backend
	}
	for name, backend := range map[string]func(t *testing.T) string{
		"to stdio": func(t *testing.T) string { return everything(t) },
		"to HTTP":  func(t *testing.T) string { return everythingOverHTTP(t, "-stateless=false") },
	} {
		t.Run(name, func(t *testing.T) {
			url, g := gatewayOverHTTP(t, allowing(t), backend(t))
			// A proxy keeps at most so many idle connections to its backend, for a while.
			most := measure(t, g.cmd.Process.Pid).descriptors + 256
			if name == "to stdio" {
				most = 0
			}
			var all tally
			round := func(lasts time.Duration) {
				ctx, cancel := context.WithTimeout(t.Context(), lasts)
				defer cancel()
				var running sync.WaitGroup
				for i := range clients {
					running.Go(func() { live(ctx, t, url, rand.New(rand.NewPCG(uint64(i), 7)), &all) })
				}
				if name == "to stdio" {
					running.Go(func() { killBackends(ctx, g.cmd.Process.Pid) })
				}
				running.Wait()
			}
			round(lasts / 4)
			first := settle(t, g.cmd.Process.Pid)
			round(lasts)
			t.Logf("%v; held at first %v", &all, first)
			require.Positive(t, all.answered.Load())
			require.Positive(t, all.left.Load())
			if name == "to HTTP" { // where no backend was killed
				require.Zero(t, all.failed.Load()+all.broken.Load())
			}
			// Go keeps the threads that it once needed at the same time, which moves a
			// little; one left by each session would be thousands.
			last := first
			t.Cleanup(func() { t.Logf("held at last %v", last) })
			eventually(t, "it holds what it held", func() bool {
				last = measure(t, g.cmd.Process.Pid)
				return last.children <= first.children && last.descriptors <= max(first.descriptors, most)+4 && last.threads <= first.threads+8+clients/4 &&
					last.memory <= first.memory*3/2+32<<20
			})
		})
	}
}

// tally counts how requests ended.
type tally struct{ sessions, answered, failed, left, broken atomic.Int64 }

func (c *tally) String() string {
	return fmt.Sprintf("%d sessions: %d answers, %d errors, %d streams left, %d streams that ended early",
		c.sessions.Load(), c.answered.Load(), c.failed.Load(), c.left.Load(), c.broken.Load())
}

// live opens one session after the other and uses each for a while.
func live(ctx context.Context, t *testing.T, url string, dice *rand.Rand, all *tally) {
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	for ctx.Err() == nil {
		id, err := open(client, url)
		if err != nil {
			continue // refused, or its backend was killed
		}
		all.sessions.Add(1)
		for n := 1; n < 2+dice.IntN(12) && ctx.Err() == nil; n++ {
			if !once(ctx, t, client, url, id, n, dice, all) {
				break
			}
		}
		// A session ends with DELETE. That of a client that does not say so ends
		// idle, which is TestWholeProcessGroupsEnd's matter.
		if req, err := http.NewRequest(http.MethodDelete, url, nil); err == nil {
			req.Header.Set("Mcp-Session-Id", id)
			if res, err := client.Do(req); err == nil {
				res.Body.Close()
			}
		}
	}
}

func post(ctx context.Context, client *http.Client, url, session, body string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		req.Header.Set("Mcp-Session-Id", session)
		req.Header.Set("Mcp-Protocol-Version", "2025-06-18")
	}
	return client.Do(req)
}

// open shakes hands, to the end even when the time is over: nobody could end a
// session whose id is lost.
func open(client *http.Client, url string) (id string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	res, err := post(ctx, client, url, "", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"soak","version":"0"}}}`)
	if err != nil {
		return "", err
	}
	_, err = io.Copy(io.Discard, res.Body)
	res.Body.Close()
	id = res.Header.Get("Mcp-Session-Id")
	if err != nil || id == "" {
		return "", errors.Join(err, errors.New("no session"))
	}
	if res, err = post(ctx, client, url, id, `{"jsonrpc":"2.0","method":"notifications/initialized"}`); err == nil {
		res.Body.Close()
	}
	return id, nil // a session that is over says so at its first request
}

// once makes one request and takes what comes. It is false when the session is
// over.
func once(ctx context.Context, t *testing.T, client *http.Client, url, session string, n int, dice *rand.Rand, all *tally) bool {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	mark := fmt.Sprintf("%s-%d", session, n)
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"_meta":{"progressToken":%q},"name":"test_tool_with_progress","arguments":{}}}`, n, mark)
	if dice.IntN(3) == 0 {
		body = fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`, n)
	}
	leaves := dice.IntN(4) == 0
	if leaves {
		defer time.AfterFunc(time.Duration(dice.IntN(150))*time.Millisecond, leave).Stop()
	}
	res, err := post(ctx, client, url, session, body)
	if err != nil {
		all.note(ctx, leaves)
		return leaves
	}
	defer res.Body.Close()
	var from io.Reader = res.Body
	if dice.IntN(4) == 0 {
		from = &slow{ctx, res.Body, dice}
	}
	answers := 0
	take := func(frame []byte) {
		m, err := wire.Read(frame)
		if err != nil {
			t.Errorf("%q: %v", frame, err)
			return
		}
		switch m.Kind {
		case wire.Response, wire.Failure:
			answers++
			if m.Kind == wire.Failure {
				all.failed.Add(1)
			} else {
				all.answered.Add(1)
			}
			// A refusal of the session says the id, or null.
			if got := string(m.ID.Raw()); got != strconv.Itoa(n) && res.StatusCode == http.StatusOK {
				t.Errorf("request %d is answered with %.300s", n, frame)
			}
		case wire.Notification:
			if token, ok := wire.Get(m.Params, "progressToken"); ok && string(token) != strconv.Quote(mark) {
				t.Errorf("the stream of %s has the progress of %s", mark, token)
			}
		}
	}
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		if b, err := io.ReadAll(from); err == nil && json.Valid(b) {
			take(bytes.TrimSpace(b))
		}
	} else {
		events := sse.NewReader(from, sse.Limits{})
		for {
			e, err := events.Next()
			if err != nil {
				break
			}
			if len(e.Data) > 0 {
				take(e.Data)
			}
		}
	}
	switch {
	case answers > 1:
		t.Errorf("request %d of %s has %d answers", n, session, answers)
	case answers == 0:
		all.note(ctx, leaves)
	}
	return res.StatusCode == http.StatusOK
}

// note counts a request without an answer.
func (c *tally) note(ctx context.Context, leaves bool) {
	if leaves || ctx.Err() != nil {
		c.left.Add(1)
	} else {
		c.broken.Add(1)
	}
}

// slow is a reader that takes its time.
type slow struct {
	ctx  context.Context
	r    io.Reader
	dice *rand.Rand
}

func (s *slow) Read(p []byte) (int, error) {
	select {
	case <-s.ctx.Done():
	case <-time.After(time.Duration(s.dice.IntN(20)) * time.Millisecond):
	}
	return s.r.Read(p[:min(len(p), 64)])
}

// killBackends kills one process of the gateway now and then.
func killBackends(ctx context.Context, gateway int) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(300 * time.Millisecond):
		}
		if kids := children(gateway); len(kids) > 0 {
			_ = syscall.Kill(kids[len(kids)/2], syscall.SIGKILL)
		}
	}
}

// held is what a process holds.
type held struct{ children, descriptors, threads, memory int }

func (h held) String() string {
	return fmt.Sprintf("%d processes, %d descriptors, %d threads, %d MiB", h.children, h.descriptors, h.threads, h.memory>>20)
}

// settle waits until the gateway has ended the processes of its sessions.
func settle(t *testing.T, pid int) held {
	t.Helper()
	last := measure(t, pid)
	same := 0
	eventually(t, "it comes to rest", func() bool {
		now := measure(t, pid)
		if same++; now.children != last.children || now.descriptors != last.descriptors {
			same = 0
		}
		last = now
		return same > 25
	})
	return last
}

func measure(t *testing.T, pid int) (h held) {
	t.Helper()
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	open, err := os.ReadDir(filepath.Join(proc, "fd"))
	require.NoError(t, err)
	threads, err := os.ReadDir(filepath.Join(proc, "task"))
	require.NoError(t, err)
	b, err := os.ReadFile(filepath.Join(proc, "statm"))
	require.NoError(t, err)
	pages, err := strconv.Atoi(strings.Fields(string(b))[1])
	require.NoError(t, err)
	return held{len(children(pid)), len(open), len(threads), pages * os.Getpagesize()}
}

// children are the processes that a process has started and that have not ended.
func children(pid int) (pids []int) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range tasks {
		b, _ := os.ReadFile(file)
		for _, word := range strings.Fields(string(b)) {
			if child, err := strconv.Atoi(word); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}
