// Command weir governs what MCP clients and servers send each other: it serves
// folders of WebAssembly modules as interceptor servers, and puts a gateway in
// front of any MCP server that runs one ordered chain of interceptors over
// every message. See the README for a tour and config.md for the contract that
// its commands, exit codes and weir.yaml keep.
//
// The package is thin: one file a command, each of which parses its flags,
// puts rooms together and prints. What the commands share is in files named
// for it: exit codes, logging, configuration, modules, targets.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	go func() {
		<-ctx.Done()
		stop() // a second Ctrl-C ends the process at once
	}()
	os.Exit(run(ctx, os.Args[1:], streams{in: os.Stdin, out: os.Stdout, err: os.Stderr}))
}

// streams is what a command reads and writes. Stdout carries a result or the
// protocol and nothing else (config.md).
type streams struct {
	in  io.ReadCloser
	out io.WriteCloser
	err io.Writer
}

// run executes the command line and returns the exit code.
func run(ctx context.Context, args []string, std streams) int {
	root := newRoot(std)
	root.SetArgs(args)
	return report(std, root.ExecuteContext(ctx))
}
