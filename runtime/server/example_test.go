package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/runtime/library"
	"github.com/weir-mcp/weir/runtime/server"
)

// An interceptor server of one native interceptor, over stdio.
func ExampleServer_ServeStdio() {
	lib := library.New(library.Options{})
	err := lib.Register(library.CheckTool("no-shell", func(tool string, _ json.RawMessage) bool { return tool != "shell" }))
	if err != nil {
		fmt.Println(err)
	}
	stdin := strings.NewReader(
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"me","version":"1"}}}` + "\n" +
			`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" +
			`{"jsonrpc":"2.0","id":2,"method":"interceptors/list"}` + "\n")
	var stdout bytes.Buffer
	if err := server.New(lib, server.Options{Name: "example", Version: "1.0"}).ServeStdio(context.Background(), stdin, &stdout); err != nil {
		fmt.Println(err)
	}
	fmt.Print(stdout.String())
	// Output:
	// {"jsonrpc":"2.0","id":1,"result":{"capabilities":{"extensions":{"io.modelcontextprotocol/interceptors":{"supportedEvents":["tools/call"]}}},"protocolVersion":"2025-11-25","serverInfo":{"name":"example","version":"1.0"}}}
	// {"jsonrpc":"2.0","id":2,"result":{"interceptors":[{"name":"no-shell","type":"validation","hooks":[{"events":["tools/call"],"phase":"request"}]}]}}
}

// The same over HTTP, at /mcp.
func ExampleServer_Handler() {
	lib := library.New(library.Options{})
	stamp := library.Sink("ledger", abi.On(abi.Response, "*"), func(context.Context, *abi.Invocation) error { return nil })
	if err := lib.Register(stamp); err != nil {
		fmt.Println(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", server.New(lib, server.Options{}).Handler())
	web := httptest.NewServer(mux)
	defer web.Close()

	r, _ := http.NewRequest(http.MethodPost, web.URL+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"interceptors/list","params":{"event":"tools/call"}}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer answer.Body.Close()
	var out bytes.Buffer
	_, _ = out.ReadFrom(answer.Body)
	fmt.Println(answer.StatusCode, out.String())
	// Output:
	// 200 {"jsonrpc":"2.0","id":1,"result":{"interceptors":[{"name":"ledger","type":"sink","hooks":[{"events":["*"],"phase":"response"}]}]}}
}
