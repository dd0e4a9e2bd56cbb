// Command client uses interceptor servers from Go: it lists what they offer,
// invokes one interceptor by itself, and executes a chain over all of them.
// README.md is its manual page.
//
//	go run ./examples/client
//	go run ./examples/client http://127.0.0.1:8420/mcp
//	go run ./examples/client weir serve ./interceptors
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway"
	"github.com/weir-mcp/weir/gateway/chain"
	"github.com/weir-mcp/weir/gateway/hosts"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, slog.New(slog.DiscardHandler)); err != nil {
		fmt.Fprintln(os.Stderr, "client:", err)
		os.Exit(1)
	}
}

// patience is how long the first list may take: the server may be compiled first.
const patience = 2 * time.Minute

// otherServer is the interceptor server that is asked where the arguments name
// none.
var otherServer = []string{"go", "run", "github.com/weir-mcp/weir/examples/native-host"}

// host is the interceptor server that the arguments name: a URL, or a command.
func host(args []string, log *slog.Logger) *hosts.Host {
	if len(args) == 1 && (strings.HasPrefix(args[0], "http://") || strings.HasPrefix(args[0], "https://")) {
		return hosts.HTTP("server", hosts.Endpoint{URL: args[0]}, hosts.Options{Logger: log})
	}
	if len(args) == 0 {
		// The compiler wants more of the environment than a server gets.
		return hosts.Stdio("server", hosts.Process{Command: otherServer, Env: os.Environ()}, hosts.Options{Logger: log})
	}
	return hosts.Stdio("server", hosts.Process{Command: args, Env: hosts.Environment(nil)}, hosts.Options{Logger: log})
}

func run(ctx context.Context, args []string, out io.Writer, log *slog.Logger) (err error) {
	server := host(args, log)
	c, err := gateway.NewChain(gateway.ChainOptions{
		Hosts:  hosts.NewSet([]*hosts.Host{server}, hosts.SetOptions{}),
		Logger: log,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close(context.WithoutCancel(ctx))) }()
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := c.Ready(waiting); err != nil {
		return err
	}
	list(ctx, out, c)
	fmt.Fprintln(out)
	call := []byte(`{"name":"query","arguments":{"sql":"SELECT 1.0"}}`)
	if err := invoke(ctx, out, server, c, call); err != nil {
		return err
	}
	fmt.Fprintln(out)
	execute(ctx, out, c, call)
	execute(ctx, out, c, []byte(`{"name":"query","arguments":{"sql":"DROP TABLE users"}}`))
	return nil
}

// list shows what each host offers.
func list(ctx context.Context, out io.Writer, c *gateway.Chain) {
	for _, l := range c.Listings(ctx) {
		for _, d := range l.Interceptors {
			fmt.Fprintf(out, "%s offers %s, a %s of %s\n", l.Host.Name(), d.Name, d.Type, strings.Join(hooks(d.Hooks), ", "))
		}
	}
}

func hooks(all abi.Hooks) (texts []string) {
	for _, h := range all {
		texts = append(texts, string(h.Phase)+"s of "+strings.Join(h.Events, " "))
	}
	return texts
}

// invoke calls each interceptor that hooks tool calls by itself, apart from any
// chain: whoever does that applies what they say, or does not.
func invoke(ctx context.Context, out io.Writer, server chain.Host, c *gateway.Chain, call []byte) error {
	for _, l := range c.Listings(ctx) {
		for _, d := range l.Interceptors {
			if !d.Hooks.Match(abi.ToolsCall, abi.Request) {
				continue
			}
			r, err := server.Invoke(ctx, abi.Invocation{Name: d.Name, Event: abi.ToolsCall, Phase: abi.Request, Payload: call, Timeout: 5 * time.Second})
			if err != nil {
				return err
			}
			r.DurationMs = nil // not the same twice
			fmt.Fprintf(out, "%s says %s\n", d.Name, r.AppendJSON(nil))
		}
	}
	return nil
}

// execute has the chain decide about a call: in order, with everybody's mode,
// failOpen and deadlines.
func execute(ctx context.Context, out io.Writer, c *gateway.Chain, call []byte) {
	outcome := c.Execute(ctx, gateway.Operation{Event: abi.ToolsCall, Payload: call})
	for _, step := range outcome.Results {
		fmt.Fprintf(out, "%s %s: %s\n", step.Type, step.Name, step.Effect)
	}
	if outcome.Released() {
		fmt.Fprintf(out, "released: %s\n", outcome.FinalPayload)
		return
	}
	fmt.Fprintf(out, "blocked: %s by %s", outcome.Status, outcome.Aborted.Interceptor)
	for _, m := range outcome.Aborted.Messages {
		fmt.Fprintf(out, ", %s: %s", m.Path, m.Message)
	}
	fmt.Fprintln(out)
}
