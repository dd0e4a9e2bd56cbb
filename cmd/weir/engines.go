package main

import (
	"log/slog"

	rt "github.com/weir-mcp/weir/runtime"
	"github.com/weir-mcp/weir/runtime/wazero"
)

// builtIn are the engines in this build: first the one that modules run on. The
// others are there for programs that use the packages.
var builtIn = []func(logger *slog.Logger) (rt.Engine, error){
	func(logger *slog.Logger) (rt.Engine, error) { return wazero.New(wazero.Options{Logger: logger}) },
}
