package main

import (
	"fmt"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/bench/guests"
)

// sizes are the sizes of a payload, in bytes.
var sizes = []int{1 << 10, 100 << 10}

func sizeName(size int) string { return fmt.Sprintf("%d KB", size>>10) }

// call is the request that each guest is called with.
func call(size int) *abi.Invocation {
	return &abi.Invocation{Name: "redact", Event: "tools/call", Phase: abi.Request, Payload: guests.Payload(size)}
}
