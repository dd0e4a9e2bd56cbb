// Command bytes is a guest that does its job on the bytes.
package main

import (
	"github.com/weir-mcp/weir/bench/guests/go/border"
	"github.com/weir-mcp/weir/bench/guests/go/redact"
)

func init() { border.Serve(redact.Answer) }

func main() {}
