// Command any is a guest that does its job on maps.
package main

import (
	"github.com/weir-mcp/weir/bench/guests/go/anyjson"
	"github.com/weir-mcp/weir/bench/guests/go/border"
)

func init() { border.Serve(anyjson.Answer) }

func main() {}
