package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/weir-mcp/weir/runtime"
	"github.com/weir-mcp/weir/runtime/cache"
	"github.com/weir-mcp/weir/runtime/library"
	"github.com/weir-mcp/weir/runtime/wazero"
)

// sandbox is what modules run in: each within the default limits, and with no
// grants, so that it reaches nothing but its payload. A nil function in place of
// options per file means just that.
func sandbox(log *slog.Logger) (loader library.Loader, closeIt func(), err error) {
	engineOptions := wazero.Options{Logger: log}
	options := []runtime.Option{runtime.WithLogger(log)}
	// With a cache a module is compiled once, and not each time the server starts.
	// Without one everything works all the same.
	if user, err := os.UserCacheDir(); err == nil {
		dir := filepath.Join(user, "weir-example")
		code, err := cache.Open(cache.Options{Dir: filepath.Join(dir, "code"), Logger: log})
		if err != nil {
			log.Warn("no compile cache", "error", err)
		} else {
			engineOptions.ScratchDir = filepath.Join(dir, "scratch")
			options = append(options, runtime.WithCache(code))
		}
	}
	engine, err := wazero.New(engineOptions)
	if err != nil {
		return nil, nil, err
	}
	rt := runtime.New(engine, options...)
	return library.Sandbox(rt, nil), func() { _ = rt.Close(context.Background()) }, nil
}
