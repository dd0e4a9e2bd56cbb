//go:build wasmtime

package main

import (
	"log/slog"

	rt "github.com/weir-mcp/weir/runtime"
	"github.com/weir-mcp/weir/runtime/wasmtime"
)

func init() {
	builtIn = append(builtIn, func(logger *slog.Logger) (rt.Engine, error) {
		return wasmtime.New(wasmtime.Options{Logger: logger})
	})
}
