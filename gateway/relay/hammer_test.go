package relay

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/internal/wire"
)

// Thousands of calls in both directions at once, some cancelled: each of the
// others gets its own answer, once, and nothing stays behind.
func TestHammer(t *testing.T) {
	const calls, workers = 2000, 16
	sc := start(t, map[string]rule{
		"tools/call request": edit("a", "b"), "tools/call response": edit("r", "s"),
		"sampling/createMessage request": pass, "sampling/createMessage response": func(ctx context.Context, op Operation) Decision {
			if strings.Contains(string(op.Payload), `7"`) {
				<-ctx.Done() // until it is cancelled, which these are
			}
			return Decision{}
		},
	}, func(o *Options) { o.Limits.Plans = 64 })

	type party struct {
		far     *far
		mu      sync.Mutex
		waiting map[string]chan string
		write   sync.Mutex
	}
	var left sync.WaitGroup
	var closing atomic.Bool
	send := func(p *party, m string) {
		p.write.Lock()
		defer p.write.Unlock()
		_, err := io.WriteString(p.far.w, m+"\n")
		if err != nil && err != io.ErrClosedPipe {
			t.Error(err)
		}
	}
	listen := func(p *party) {
		defer left.Done()
		for line := range p.far.lines {
			m, err := wire.Read([]byte(line))
			if err != nil {
				t.Error(err, line)
				return
			}
			switch m.Kind {
			case wire.Request:
				left.Go(func() { send(p, result(m.ID.String(), `{"r":`+string(m.Params)+`}`)) })
			case wire.Response, wire.Failure:
				p.mu.Lock()
				answer := p.waiting[m.ID.String()]
				delete(p.waiting, m.ID.String())
				p.mu.Unlock()
				if answer == nil && m.Kind == wire.Failure && closing.Load() {
					continue // what was cancelled last may not have been seen to be
				}
				if answer == nil {
					t.Error("unexpected answer", line)
					return
				}
				answer <- line
			}
		}
	}
	client := &party{far: sc.client, waiting: map[string]chan string{}}
	backend := &party{far: sc.backend, waiting: map[string]chan string{}}
	left.Add(2)
	go listen(client)
	go listen(backend)

	var all sync.WaitGroup
	work := func(p *party, method, want string, cancels bool) {
		for w := range workers {
			all.Go(func() {
				for i := w; i < calls; i += workers {
					id := fmt.Sprint(i)
					answer := make(chan string, 1)
					cancelled := cancels && i%10 == 7
					if !cancelled {
						p.mu.Lock()
						p.waiting[id] = answer
						p.mu.Unlock()
					}
					send(p, `{"jsonrpc":"2.0","id":`+id+`,"method":"`+method+`","params":{"x":"a`+id+`"}}`)
					if cancelled {
						send(p, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`}}`)
						continue
					}
					select {
					case got := <-answer:
						if got != result(id, fmt.Sprintf(want, id)) {
							t.Error(got)
						}
					case <-time.After(patience):
						t.Error("no answer to", id)
						return
					}
				}
			})
		}
	}
	work(client, "tools/call", `{"s":{"x":"b%s"}}`, false)
	work(backend, "sampling/createMessage", `{"r":{"x":"a%s"}}`, true)
	all.Wait()
	require.Empty(t, client.waiting)
	require.Empty(t, backend.waiting)
	closing.Store(true)
	sc.client.close()
	sc.backend.close()
	_ = sc.ends() // either side may be seen to end first
	left.Wait()
}

// A request that is cancelled while its plan runs reaches the backend before its
// cancellation, or neither does.
func TestACancellationNeverPassesItsRequest(t *testing.T) {
	const calls = 1000
	sc := start(t, map[string]rule{"tools/call request": pass}, func(o *Options) { o.Limits.Marks = calls })
	go func() {
		for i := range calls {
			fmt.Fprintln(sc.client.w, call(fmt.Sprint(i), `{}`))
			fmt.Fprintf(sc.client.w, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`+"\n", i)
		}
		fmt.Fprintln(sc.client.w, `{"jsonrpc":"2.0","method":"notifications/last"}`)
	}()
	seen, both := map[string]bool{}, 0
	for {
		m, err := wire.Read([]byte(sc.backend.next()))
		require.NoError(t, err)
		switch {
		case m.Kind == wire.Request:
			seen[m.ID.String()] = true
		case m.Method == methodCancelled:
			id, _ := wire.Get(m.Params, "requestId")
			require.True(t, seen[string(id)], "cancelled before it was asked")
			both++
		default:
			require.Len(t, seen, both, "asked, but not cancelled")
			return
		}
	}
}

func TestGate(t *testing.T) {
	g := newGate(2, 10)
	require.True(t, g.enter(t.Context(), 100), "one message always has room")
	got := make(chan bool)
	go func() { got <- g.enter(t.Context(), 1) }()
	g.leave(100)
	require.True(t, <-got)
	ctx, cancel := context.WithCancel(t.Context())
	go cancel()
	require.False(t, g.wait(ctx))
	go func() { got <- g.enter(t.Context(), 10) }()
	g.close()
	require.False(t, <-got)
	g.leave(1)
	require.True(t, g.wait(t.Context()))
}
