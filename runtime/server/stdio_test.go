package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/wire"
	"github.com/weir-mcp/weir/runtime/library"
	"github.com/weir-mcp/weir/runtime/server"
)

const hello = `{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}`

// gated is an interceptor that answers when it is told to.
type gated struct {
	entered chan string
	open    chan struct{}
	ended   chan error // causes of contexts that ended first
}

func newGated(t testing.TB) (*gated, *library.Library) {
	t.Helper()
	g := &gated{entered: make(chan string, 1000), open: make(chan struct{}), ended: make(chan error, 1000)}
	lib := library.New(library.Options{})
	require.NoError(t, lib.Register(library.Validator("gated", abi.On(abi.Request, "tools/call"),
		func(ctx context.Context, inv *abi.Invocation) (library.Verdict, error) {
			g.entered <- string(inv.Payload)
			select {
			case <-g.open:
				return library.Allow(), nil
			case <-ctx.Done():
				g.ended <- context.Cause(ctx)
				return library.Verdict{}, ctx.Err()
			}
		})))
	return g, lib
}

func TestStdioAnswersWhatRunsWhenTheInputEnds(t *testing.T) {
	noLeaks(t)
	// As of: printf '…' | weir serve DIR
	var in, out bytes.Buffer
	in.WriteString(hello + "\n")
	for i := range 50 {
		in.WriteString(invokeMessage(fmt.Sprint(i), "echo", `{"x":1}`) + "\n")
	}
	require.NoError(t, server.New(desk(t), server.Options{}).ServeStdio(t.Context(), &in, &out))
	require.Equal(t, 51, strings.Count(out.String(), "\n"))
	require.Equal(t, 50, strings.Count(out.String(), `"modified":true`))
}

func TestStdioEndsWithItsContext(t *testing.T) {
	noLeaks(t)
	g, lib := newGated(t)
	l := dialLines(t, server.New(lib, server.Options{}))
	l.handshake(t)
	l.send(t, invokeMessage("1", "gated", `{}`))
	<-g.entered
	l.stop()
	close(g.open)
	require.Contains(t, l.receive(t), `"valid":true`, "what runs is answered")
	require.NoError(t, <-l.done)
}

func TestStdioWithoutAWordEnds(t *testing.T) {
	noLeaks(t)
	l := dialLines(t, server.New(desk(t), server.Options{}))
	require.NoError(t, l.in.Close())
	require.NoError(t, <-l.done)
}

type failingReader struct{ err error }

func (f failingReader) Read([]byte) (int, error) { return 0, f.err }

type failingWriter struct{ err error }

func (f failingWriter) Write([]byte) (int, error) { return 0, f.err }

func TestStdioReportsBrokenPipes(t *testing.T) {
	noLeaks(t)
	broken := errors.New("broken")
	s := server.New(desk(t), server.Options{})
	require.ErrorIs(t, s.ServeStdio(t.Context(), failingReader{broken}, io.Discard), broken)
	require.ErrorIs(t, s.ServeStdio(t.Context(), strings.NewReader(hello+"\n"), failingWriter{broken}), broken)
}

// Neither a call that ignores its context nor a client that does not read keeps
// the server from ending.
func TestStdioEndsInTime(t *testing.T) {
	for name, input := range map[string]string{
		"a call that does not end":      hello + "\n" + invokeMessage("1", "deaf", "{}") + "\n",
		"an answer that is not read":    hello + "\n",
		"a refusal that is not read":    "{\n",
		"several that are not answered": hello + "\n" + invokeMessage("1", "deaf", "{}") + "\n" + invokeMessage("2", "deaf", "{}") + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				set := &fixedList{invoke: func(context.Context, abi.Invocation) (abi.Result, error) {
					<-release
					return abi.Result{}, abi.Failed("deaf", abi.Request, abi.ReasonGuest, nil)
				}}
				out, fromServer := io.Pipe()
				if strings.Contains(input, "deaf") {
					go func() { _, _ = io.Copy(io.Discard, out) }()
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				toServer, in := io.Pipe()
				go func() { _, _ = io.WriteString(in, input) }()
				began := time.Now() // of synctest's clock: no machine is too slow for this
				_ = server.New(set, server.Options{}).ServeStdio(ctx, toServer, fromServer)
				require.Less(t, time.Since(began), 10*time.Second)
				close(release)
				require.NoError(t, out.Close())
				require.NoError(t, in.Close())
			})
		})
	}
}

func TestStdioServesRequestsConcurrently(t *testing.T) {
	noLeaks(t)
	g, lib := newGated(t)
	l := dialLines(t, server.New(lib, server.Options{}))
	l.handshake(t)
	for i := range 3 {
		l.send(t, invokeMessage(fmt.Sprint(i), "gated", `{}`))
	}
	for range 3 {
		<-g.entered
	}
	require.Equal(t, `{"jsonrpc":"2.0","id":"p","result":{}}`, l.call(t, `{"jsonrpc":"2.0","id":"p","method":"ping"}`))
	close(g.open)
	for range 3 {
		require.Contains(t, l.receive(t), `"valid":true`)
	}
}

// A cancelled invocation ends, and is not answered (MCP, Cancellation).
func TestStdioCancellation(t *testing.T) {
	noLeaks(t)
	g, lib := newGated(t)
	l := dialLines(t, server.New(lib, server.Options{}))
	l.handshake(t)
	for _, id := range []string{`9007199254740993`, `"a"`, `1.0`} {
		l.send(t, invokeMessage(id, "gated", `{}`))
		<-g.entered
		l.send(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`,"reason":"changed my mind"}}`)
		require.ErrorIs(t, <-g.ended, context.Canceled)
		require.Equal(t, `{"jsonrpc":"2.0","id":"next","result":{}}`, l.call(t, `{"jsonrpc":"2.0","id":"next","method":"ping"}`))
	}
	for _, odd := range []string{`{"requestId":"nobody"}`, `{}`, `{"requestId":{}}`, `{"requestId":null}`} {
		l.send(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":`+odd+`}`)
	}
	l.send(t, `{"jsonrpc":"2.0","method":"notifications/cancelled"}`)
	require.Equal(t, `{"jsonrpc":"2.0","id":"next","result":{}}`, l.call(t, `{"jsonrpc":"2.0","id":"next","method":"ping"}`))
}

func TestStdioRefusesAnIDInFlight(t *testing.T) {
	g, lib := newGated(t)
	l := dialLines(t, server.New(lib, server.Options{}))
	l.handshake(t)
	l.send(t, invokeMessage("1", "gated", `{}`))
	<-g.entered
	require.Equal(t, `{"jsonrpc":"2.0","id":1.0,"error":{"code":-32600,"message":"a request with this id is in flight"}}`,
		l.call(t, invokeMessage("1.0", "gated", `{}`)), "compared as a value")
	require.Equal(t, `{"jsonrpc":"2.0","id":"1","result":{}}`, l.call(t, `{"jsonrpc":"2.0","id":"1","method":"ping"}`))
	close(g.open)
	require.Contains(t, l.receive(t), `"valid":true`)
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":{}}`, l.call(t, `{"jsonrpc":"2.0","id":1,"method":"ping"}`), "free again")
}

func TestStdioBoundsWhatRuns(t *testing.T) {
	g, lib := newGated(t)
	l := dialLines(t, server.New(lib, server.Options{Concurrency: 2}))
	l.handshake(t)
	l.send(t, invokeMessage("1", "gated", `{}`))
	l.send(t, invokeMessage("2", "gated", `{}`))
	<-g.entered
	<-g.entered
	require.Equal(t, `{"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"the server is busy","data":{"interceptor":"gated","reason":"busy","phase":"request"}}}`,
		l.call(t, invokeMessage("3", "gated", `{}`)))
	close(g.open)
	l.receive(t)
	l.receive(t)
	require.Contains(t, l.call(t, invokeMessage("3", "gated", `{}`)), `"valid":true`)
}

func TestStdioRefusesWhatIsTooLarge(t *testing.T) {
	l := dialLines(t, server.New(desk(t), server.Options{MessageBytes: 1000}))
	l.handshake(t)
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"message too large"}}`,
		l.call(t, invokeMessage("1", "echo", `"`+strings.Repeat("x", 5000)+`"`)))
	l.send(t, `{"jsonrpc":"2.0","method":"notifications/x","params":{"a":"`+strings.Repeat("x", 5000)+`"}}`)
	require.Contains(t, l.call(t, invokeMessage("2", "echo", `"x"`)), `"modified":true`)
}

func TestDefaultBoundTakesTheLargestPayload(t *testing.T) {
	// 4 MiB of payload (abi.md, Limits) and what stands around it.
	payload := `"` + strings.Repeat("x", 4<<20-2) + `"`
	everywhere(t, desk(t), server.Options{}, func(t *testing.T, c wireClient) {
		require.Contains(t, c.call(t, invokeMessage("1", "no-rm", payload)), `"valid":true`)
	})
}

func TestStdioDropsAnswersToNothing(t *testing.T) {
	l := dialLines(t, server.New(desk(t), server.Options{}))
	l.handshake(t)
	l.send(t, `{"jsonrpc":"2.0","id":1,"result":{}}`)
	l.send(t, `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}`)
	l.send(t, ``)
	require.Equal(t, `{"jsonrpc":"2.0","id":5,"result":{}}`, l.call(t, `{"jsonrpc":"2.0","id":5,"method":"ping"}`))
}

// Over stdio the context is believed.
func TestStdioBelievesTheContext(t *testing.T) {
	l := dialLines(t, server.New(desk(t), server.Options{}))
	l.handshake(t)
	require.Contains(t, l.call(t, whoamiMessage), `"Type":"user","ID":"alice"`)
}

const whoamiMessage = `{"jsonrpc":"2.0","id":1,"method":"interceptor/invoke","params":{"name":"whoami","event":"tools/call","phase":"request","payload":{},"context":{"principal":{"type":"user","id":"alice","claims":{"admin":true}},"traceId":"t1","spanId":"s1","sessionId":"x1","timestamp":"2026-11-30T00:00:00Z"}}}`

// Many clients, many requests, in any order.
func TestHammer(t *testing.T) {
	noLeaks(t)
	s := server.New(desk(t), server.Options{})
	var wg sync.WaitGroup
	for range 4 {
		l := dialLines(t, s)
		l.handshake(t)
		p := dialHTTP(t, s)
		wg.Go(func() {
			go func() {
				for i := range 200 {
					_, _ = io.WriteString(l.in, invokeMessage(fmt.Sprint(i), "echo", fmt.Sprintf(`{"i":%d}`, i))+"\n")
				}
			}()
			seen := map[string]bool{}
			for range 200 {
				if !l.out.Scan() {
					t.Error(l.out.Err())
					return
				}
				m, err := wire.Read(bytes.Clone(l.out.Bytes()))
				if err != nil || seen[m.ID.String()] || !bytes.HasSuffix(m.Result, fmt.Appendf(nil, `"payload":{"i":%s}}`, m.ID)) {
					t.Error("not the answer to its request", l.out.Text())
				}
				seen[m.ID.String()] = true
			}
		})
		wg.Go(func() {
			for i := range 50 {
				_, body, err := p.post(context.Background(), invokeMessage(fmt.Sprint(i), "echo", fmt.Sprintf(`{"i":%d}`, i)), nil)
				if err != nil || !strings.HasSuffix(body, fmt.Sprintf(`"payload":{"i":%d}}}`, i)) {
					t.Error(body, err)
				}
			}
		})
	}
	wg.Wait()
}

// A set that breaks its word makes a failure, not a silence.
func TestBadResultOfTheSet(t *testing.T) {
	set := &fixedList{invoke: func(context.Context, abi.Invocation) (abi.Result, error) {
		return abi.Result{Type: abi.Mutation, Interceptor: "x", Phase: abi.Request, Modified: true, Payload: json.RawMessage(`{"a":`)}, nil
	}}
	everywhere(t, set, server.Options{}, func(t *testing.T, c wireClient) {
		require.Equal(t, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the interceptor failed: bad_output","data":{"interceptor":"x","reason":"bad_output","phase":"request"}}}`,
			c.call(t, invokeMessage("1", "x", "{}")))
	})
}

func FuzzStdio(f *testing.F) {
	f.Add([]byte(hello + "\n" + invokeMessage("1", "echo", `{"a":1.0}`) + "\n"))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{` + statelessMeta + "}}\n"))
	f.Add([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}` + "\n"))
	f.Add([]byte(hello + "\n" + listMessage(`{"cursor":"MToxOmE"}`) + "\n[]\n{\n"))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":5}}}` + "\n"))
	s := server.New(desk(f), server.Options{})
	f.Fuzz(func(t *testing.T, input []byte) {
		if bytes.Contains(input, []byte("sleeper")) {
			return // it waits for its caller
		}
		var out bytes.Buffer
		require.NoError(t, s.ServeStdio(t.Context(), bytes.NewReader(input), &out))
		for line := range bytes.Lines(out.Bytes()) {
			m, err := wire.Read(line)
			require.NoError(t, err, string(line))
			require.Contains(t, []wire.Kind{wire.Response, wire.Failure}, m.Kind)
		}
	})
}
