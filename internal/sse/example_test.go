package sse_test

import (
	"fmt"
	"os"
	"strings"

	"github.com/weir-mcp/weir/internal/sse"
	"github.com/weir-mcp/weir/internal/wire"
)

// A relay passes on events and comments; what a peer split over lines it writes
// on one.
func Example() {
	in := sse.NewReader(strings.NewReader(": ping\r\n\r\nid: 1\r\ndata: {\"jsonrpc\":\"2.0\",\r\ndata: \"method\":\"notifications/x\"}\r\n\r\n"), sse.Limits{})
	out := sse.NewWriter(os.Stdout, nil)
	for {
		event, err := in.Next()
		if err != nil {
			fmt.Println(err)
			break
		}
		event.Data = wire.Flat(nil, event.Data)
		if err := out.Write(&event); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// : ping
	//
	// id: 1
	// data: {"jsonrpc":"2.0","method":"notifications/x"}
	//
	// EOF
}
