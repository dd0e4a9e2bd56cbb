package streamable_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/relay"
	"github.com/weir-mcp/weir/gateway/streamable"
	"github.com/weir-mcp/weir/internal/wire"
)

// echo is a backend within the process that answers each request with its params:
// what is measured is the way there and back.
type echo struct {
	out    chan []byte
	closed chan struct{}
	once   sync.Once
}

func (e *echo) Read() ([]byte, error) {
	select {
	case m := <-e.out:
		return m, nil
	case <-e.closed:
		return nil, io.EOF
	}
}

func (e *echo) Write(message []byte) error {
	m, err := wire.Read(message)
	if err != nil || m.Kind != wire.Request {
		return nil
	}
	e.out <- wire.AppendResult(nil, m.ID.Raw(), m.Params)
	return nil
}

func (e *echo) CloseWrite() error { return e.Close() }

func (e *echo) Close() error {
	e.once.Do(func() { close(e.closed) })
	return nil
}

func newEcho(context.Context, *abi.Principal) (relay.End, error) {
	return &echo{out: make(chan []byte, 100), closed: make(chan struct{})}, nil
}

// BenchmarkFront is one client's call over HTTP; direct is a handler that echoes
// the body and does nothing else.
func BenchmarkFront(b *testing.B) {
	for _, size := range []int{1 << 10, 64 << 10, 1 << 20} {
		filler := strings.Repeat("x", size)
		params := func(meta string) string { return `{"name":"echo"` + meta + `,"arguments":{"x":"` + filler + `"}}` }
		body := func(params string) []byte {
			return []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + params + `}`)
		}
		statelessBody := body(params(`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`))
		b.Run(fmt.Sprintf("%dKiB/direct", size>>10), func(b *testing.B) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				raw, _ := io.ReadAll(r.Body)
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write(raw)
			}))
			defer server.Close()
			calls(b, server.URL, body(params("")), nil)
		})
		for name, message := range map[string][]byte{"session": body(params("")), "session, JSON": body(params("")), "stateless": statelessBody} {
			b.Run(fmt.Sprintf("%dKiB/%s", size>>10, name), func(b *testing.B) {
				front := streamable.NewFront(streamable.FrontOptions{Start: newEcho, JSON: strings.HasSuffix(name, "JSON")})
				server := httptest.NewServer(front)
				defer server.Close()
				defer func() { _ = front.Shutdown(context.Background()) }()
				headers := map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "echo"}
				if name != "stateless" {
					res := one(b, server.URL, []byte(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}`), nil)
					headers = map[string]string{"Mcp-Session-Id": res.Header.Get("Mcp-Session-Id")}
				}
				calls(b, server.URL, message, headers)
			})
		}
	}
}

func calls(b *testing.B, url string, body []byte, headers map[string]string) {
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if res := one(b, url, body, headers); res.StatusCode != http.StatusOK {
			b.Fatal(res.Status)
		}
	}
}

func one(b *testing.B, url string, body []byte, headers map[string]string) *http.Response {
	r, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, res.Body)
	res.Body.Close()
	return res
}
