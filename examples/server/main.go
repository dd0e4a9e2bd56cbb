// Command server is an interceptor server of your own: a folder of WebAssembly
// modules and interceptors in plain Go, served as one set over stdio, or over
// streamable HTTP with -http. README.md is its manual page.
//
//	go run ./examples/server
//	go run ./examples/server -modules examples/interceptors -http 127.0.0.1:8420
package main

import (
	"context"
	"flag"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/weir-mcp/weir/runtime/library"
	"github.com/weir-mcp/weir/runtime/server"
)

func main() {
	modules := flag.String("modules", "", "a `folder` of .wasm modules to serve besides; watched while the server runs")
	address := flag.String("http", "", "serve http://`ADDRESS`/mcp instead of stdio; a loopback address")
	flag.Parse()

	// Stdout is the protocol's: whatever else there is to say goes to stderr.
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, log, *modules, *address); err != nil {
		log.Error("cannot serve", "error", err)
		os.Exit(1)
	}
}

// serve puts the set together and serves it until ctx or the input ends.
func serve(ctx context.Context, log *slog.Logger, modules, address string) error {
	loader, closeSandbox, err := sandbox(log)
	if err != nil {
		return err
	}
	defer closeSandbox()
	set := library.New(library.Options{Loader: loader, Logger: log})
	defer set.Close(context.WithoutCancel(ctx)) // before the sandbox its modules run in

	for _, native := range []library.Native{noDeletes(), limitResults(), callLog(log)} {
		if err := set.Register(native); err != nil {
			return err
		}
	}
	if modules != "" {
		if err := set.Open(ctx, modules); err != nil {
			return err
		}
	}

	// Ready keeps the first answer waiting until the folder has been loaded.
	s := server.New(set, server.Options{Name: "example", Version: "1.0.0", Logger: log, Ready: set.Ready})
	if address == "" {
		return s.ServeStdio(ctx, os.Stdin, os.Stdout)
	}
	return serveHTTP(ctx, log, address, s.Handler())
}
