package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

var errNotLoopback = errors.New("only a loopback address such as 127.0.0.1:8420, since nothing here knows who calls; put a proxy that does in front")

// grace is how long calls that run may take at the end.
const grace = 5 * time.Second

// serveHTTP serves the handler at /mcp until ctx ends. It says on errs where.
func serveHTTP(ctx context.Context, address string, handler http.Handler, errs io.Writer) error {
	at, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return err
	}
	if !at.IP.IsLoopback() {
		return fmt.Errorf("%s: %w", address, errNotLoopback)
	}
	listener, err := net.ListenTCP("tcp", at)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", handler)
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute}
	fmt.Fprintf(errs, "native-host: serving http://%s/mcp\n", listener.Addr())

	ended := make(chan error, 1)
	go func() { ended <- web.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	err = web.Shutdown(drain)
	<-ended
	return err
}
