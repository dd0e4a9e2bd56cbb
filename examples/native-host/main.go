// Command native-host is a small interceptor server in plain Go, of the kind
// that another team might run beside a folder of modules: a validator, deny-list,
// and a mutator, stamp-meta. It speaks MCP over stdio, or over streamable HTTP
// with -http. README.md is its manual page.
//
//	go run ./examples/native-host
//	go run ./examples/native-host -http 127.0.0.1:8420
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/weir-mcp/weir/runtime/library"
	"github.com/weir-mcp/weir/runtime/server"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is main with its surroundings as parameters. It returns the exit code: 0
// done, 1 failed, 2 wrong usage.
func run(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) int {
	flags := flag.NewFlagSet("native-host", flag.ContinueOnError)
	flags.SetOutput(errs)
	defaults := denyConfig{
		Tools: list{"shell", "exec", "eval", "get-env"},
		Text:  list{"rm -rf", "drop table", "/etc/shadow"},
	}
	address := flags.String("http", "", "serve streamable HTTP at http://`ADDRESS`/mcp instead of stdio; a loopback address, port 0 for any")
	flags.Var(&defaults.Tools, "deny-tools", "`names` of tools, with commas between, that deny-list refuses without a config")
	flags.Var(&defaults.Text, "deny-text", "`texts`, with commas between, that deny-list refuses in arguments without a config")
	governedBy := flags.String("governed-by", "native-host", "the `value` that stamp-meta writes")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	case flags.NArg() > 0:
		fmt.Fprintf(errs, "native-host: %q: there are no arguments, only flags (see -help)\n", flags.Arg(0))
		return 2
	}

	logger := slog.New(slog.NewTextHandler(errs, nil))
	lib := library.New(library.Options{Logger: logger})
	defer lib.Close(context.WithoutCancel(ctx))
	for _, n := range []library.Native{denyList(defaults), stampMeta(*governedBy)} {
		if err := lib.Register(n); err != nil {
			fmt.Fprintln(errs, "native-host:", err)
			return 1
		}
	}
	s := server.New(lib, server.Options{Name: "native-host", Version: "1.0.0", Logger: logger})
	var err error
	if *address == "" {
		err = s.ServeStdio(ctx, in, out)
	} else {
		err = serveHTTP(ctx, *address, s.Handler(), errs)
	}
	switch {
	case errors.Is(err, errNotLoopback):
		fmt.Fprintln(errs, "native-host: -http:", err)
		return 2
	case err != nil:
		fmt.Fprintln(errs, "native-host:", err)
		return 1
	}
	return 0
}
