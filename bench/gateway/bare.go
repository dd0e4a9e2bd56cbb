package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"

	"github.com/weir-mcp/weir/gateway/relay"
)

// relayLines stands between its standard input and output and a backend, copies
// lines and looks at nothing: what a process in between costs at least.
func relayLines(args []string) error {
	in, out, err := startPiped(exec.Command(args[0], args[1:]...))
	if err != nil {
		return err
	}
	// Blocking descriptors would stall on what is larger than a pipe.
	stdin, _ := relay.Pollable(os.Stdin)
	stdout, _ := relay.Pollable(os.Stdout)
	go func() {
		copyLines(stdin, in)
		in.Close()
	}()
	copyLines(out, stdout)
	return nil
}

func copyLines(from io.Reader, to io.Writer) {
	lines := &lines{r: from}
	for {
		line, err := lines.next()
		if err != nil {
			return
		}
		if _, err := to.Write(line); err != nil {
			return
		}
	}
}

// startPiped starts a process and gives pipes to it and from it, which wait in the
// runtime's poller.
func startPiped(cmd *exec.Cmd) (in, out *os.File, err error) {
	theirs, in, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	out, their, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer theirs.Close()
	defer their.Close()
	cmd.Stdin, cmd.Stdout = theirs, their
	if cmd.Stderr == nil {
		cmd.Stderr = os.Stderr
	}
	return in, out, cmd.Start()
}

// reverseProxy is an httputil.ReverseProxy that reads the body of a request before
// it passes it on: without that, 1 in 100 answers of MCP servers breaks.
func reverseProxy(args []string) error {
	backend, err := url.Parse(args[0])
	if err != nil {
		return err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost, transport.DisableCompression = 256, true
	proxy := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = backend.Scheme, backend.Host, backend.Host
		},
	}
	return serveHTTP(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := readBody(r.Body, r.ContentLength, nil)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		proxy.ServeHTTP(w, r)
	}))
}
