package proxy_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/proxy"
	"github.com/weir-mcp/weir/gateway/relay"
)

// masking governs the results of tools: a secret in them does not pass.
type masking struct{}

func (masking) Governs(s relay.Scope) bool {
	return (s.Event == abi.ToolsCall || s.Event == relay.AnyEvent) && s.Phase == abi.Response
}

func (masking) Govern(_ context.Context, op relay.Operation) relay.Decision {
	return relay.Decision{Payload: bytes.ReplaceAll(op.Payload, []byte("hunter2"), []byte("***"))}
}

func Example() {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"the password is hunter2"}]}}`)
	}))
	defer backend.Close()
	p, err := proxy.New(proxy.Options{Backend: backend.URL + "/mcp", Relay: relay.Options{Governor: masking{}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	front := httptest.NewServer(p)
	defer front.Close()

	res, err := http.Post(front.URL+"/mcp", "application/json",
		strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"recall"}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	fmt.Println(string(body))
	// Output: {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"the password is ***"}]}}
}
