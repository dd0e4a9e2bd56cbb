package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
)

// roles are what this program is when the first argument says so: each is a
// process of the benchmark.
var roles = map[string]func(args []string) error{
	"role:backend":       func([]string) error { return serveLines(os.Stdin, os.Stdout) },
	"role:http-backend":  func([]string) error { return serveHTTP(http.HandlerFunc(serveBackend)) },
	"role:line-relay":    relayLines,
	"role:reverse-proxy": reverseProxy,
	"role:typed-proxy":   typedProxy,
}

// serveHTTP serves a handler at /mcp until standard input ends, and says where on
// standard error as weir does.
func serveHTTP(handler http.Handler) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", handler)
	server := &http.Server{Handler: mux}
	fmt.Fprintf(os.Stderr, "serving at http://%s/mcp\n", listener.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		server.Close()
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
