//go:build wasmtime

package hostile_test

import (
	"github.com/weir-mcp/weir/runtime"
	"github.com/weir-mcp/weir/runtime/wasmtime"
)

func init() {
	engines["wasmtime"] = func() (runtime.Engine, error) { return wasmtime.New(wasmtime.Options{}) }
}
