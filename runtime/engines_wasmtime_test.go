//go:build wasmtime

package runtime_test

import (
	"log/slog"

	"github.com/weir-mcp/weir/runtime"
	"github.com/weir-mcp/weir/runtime/wasmtime"
)

func init() {
	engines["wasmtime"] = func(o on) (runtime.Engine, error) {
		return wasmtime.New(wasmtime.Options{Reset: o.reset, Logger: slog.New(slog.DiscardHandler)})
	}
}
