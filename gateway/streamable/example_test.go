package streamable_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/relay"
	"github.com/weir-mcp/weir/gateway/streamable"
)

// A client on stdio talks to a server on HTTP.
func ExampleDial() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: {\"jsonrpc\":\"2.0\",\"id\":1.0,\r\ndata: \"result\":{}}\r\n\r\n")
	}))
	defer server.Close()

	backend, err := streamable.Dial(streamable.BackendOptions{URL: server.URL})
	if err != nil {
		fmt.Println(err)
		return
	}
	stdin := io.NopCloser(strings.NewReader(`{"jsonrpc":"2.0","id":1.0,"method":"ping"}` + "\n"))
	var stdout strings.Builder
	err = relay.Run(context.Background(), relay.Lines(stdin, closer{&stdout}, 1<<20), backend, relay.Options{})
	fmt.Print(stdout.String())
	fmt.Println(err)
	// Output:
	// {"jsonrpc":"2.0","id":1.0,"result":{}}
	// <nil>
}

type closer struct{ io.Writer }

func (closer) Close() error { return nil }

// A client on HTTP talks to a server on stdio, which here is no process.
func ExampleFront() {
	front := streamable.NewFront(streamable.FrontOptions{
		JSON: true,
		Start: func(context.Context, *abi.Principal) (relay.End, error) {
			stdin, toServer := io.Pipe()
			fromServer, stdout := io.Pipe()
			go func() {
				for lines := bufio.NewScanner(stdin); lines.Scan(); {
					fmt.Fprintln(stdout, `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25"}}`)
				}
				stdout.Close()
			}()
			return relay.Lines(fromServer, toServer, 1<<20), nil
		},
	})
	server := httptest.NewServer(front)
	defer server.Close()

	r, _ := http.NewRequest("POST", server.URL, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		fmt.Println(err)
		return
	}
	io.Copy(os.Stdout, answer.Body)
	answer.Body.Close()
	fmt.Println()
	fmt.Println(answer.Status, len(answer.Header.Get("Mcp-Session-Id")), front.Sessions())
	fmt.Println(front.Shutdown(context.Background()), front.Sessions())
	// Output:
	// {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25"}}
	// 200 OK 26 1
	// <nil> 0
}
