package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// serveHTTP serves the handler at /mcp until ctx ends, and lets calls that run
// then finish. Nothing here knows who calls, so that only this machine may: put a
// proxy in front that authenticates callers, or use weir serve with listen.auth,
// to serve others.
func serveHTTP(ctx context.Context, log *slog.Logger, address string, handler http.Handler) error {
	at, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return err
	}
	if !at.IP.IsLoopback() {
		return fmt.Errorf("%s is not a loopback address such as 127.0.0.1:8420", address)
	}
	listener, err := net.ListenTCP("tcp", at)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", handler)
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute}
	log.Info("serving", "at", "http://"+listener.Addr().String()+"/mcp")

	drained := make(chan error, 1)
	context.AfterFunc(ctx, func() {
		drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		drained <- web.Shutdown(drain)
	})
	if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-drained
}
