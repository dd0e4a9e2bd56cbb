package streamable_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

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
