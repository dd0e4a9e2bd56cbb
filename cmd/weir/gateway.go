package main

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/weir-mcp/weir/gateway"
	"github.com/weir-mcp/weir/gateway/chain"
	"github.com/weir-mcp/weir/gateway/relay"
	"github.com/weir-mcp/weir/internal/config"
)

func newGateway(std streams) *cobra.Command {
	var flags chainFlags
	var backend, http string
	cmd := &cobra.Command{
		Use:   "gateway [flags] -- COMMAND ARG…",
		Short: "Stand in front of an MCP server and govern what passes",
		Long: "gateway speaks MCP over stdio to one client and stands in for the server that COMMAND starts. Every message passes\n" +
			"untouched unless the chain of interceptors, merged from all hosts, says otherwise.",
		Example: "  weir gateway --hosts ./interceptors -- npx -y @modelcontextprotocol/server-everything\n" +
			"  weir gateway --config weir.yaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			before, command, err := afterDash(cmd, args)
			if err != nil {
				return err
			}
			if len(before) > 0 {
				return usagef("%s does not take %q; the backend's command goes after --, such as -- %[2]s", cmd.CommandPath(), before[0])
			}
			file, err := flags.load(config.Flags{Command: command, Backend: given(cmd, "backend", &backend), HTTP: given(cmd, "http", &http)})
			if err != nil {
				return err
			}
			if file.Backend == nil {
				return usagef(`no backend: give its command after "--" or in a --config`)
			}
			return runGateway(cmd.Context(), std, newMaskedLogger(std.err, slog.LevelInfo, maskOf(file)), file)
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&backend, "backend", "", "the URL of the backend (later)")
	cmd.Flags().StringVar(&http, "http", "", "the address to serve clients at (later)")
	for _, later := range []string{"backend", "http"} {
		cmd.Flags().Lookup(later).Hidden = true
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%w; see %s --help. A backend's command and its own flags go after --", err, cmd.CommandPath())
	})
	return cmd
}

// given is the value of a flag, nil when the command line does not have it.
func given(cmd *cobra.Command, name string, value *string) *string {
	if !cmd.Flags().Changed(name) {
		return nil
	}
	return value
}

// runGateway serves one client on stdio until it or the backend ends.
func runGateway(ctx context.Context, std streams, log *slog.Logger, file *config.File) error {
	if file.Listen.HTTP != "" || !file.Backend.URL.IsZero() || file.Expose || len(file.Passthrough.Notifications) != 1 {
		return usagef("this version's gateway speaks stdio on both sides")
	}
	in, out, err := stdioFiles(std)
	if err != nil {
		return err
	}
	if len(file.Hosts) == 0 {
		log.Warn("there are no hosts of interceptors: everything passes as it is; give --hosts DIR|URL or a --config with hosts")
	}
	a, err := assemble(ctx, std, log, file)
	if err != nil {
		return err
	}
	defer a.close(ctx)
	g, err := gateway.New(gatewayOptions(log, a, file))
	if err != nil {
		return err
	}
	defer func() {
		drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
		defer cancel()
		if err := g.Close(drain); err != nil {
			log.Warn("the gateway did not end cleanly", "error", err)
		}
	}()
	// A host that does not answer must not keep the client from its handshake,
	// which is not governed. What is governed waits for the hosts by itself.
	looking, stop := context.WithCancel(ctx)
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		listings := g.Listings(looking) // which logs the entries that match nothing
		if looking.Err() == nil {       // else it was over before they were known
			a.warn(log, listings, file.Boundary)
		}
	}()
	defer func() {
		stop()
		<-looked
	}()
	backend, err := gateway.Start(gateway.Command{
		Args: revealList(file.Backend.Command), Dir: file.Backend.Dir, Env: revealMap(file.Backend.Env), Hide: file.ConsumedEnv,
	})
	if err != nil {
		return masked(a.mask, err)
	}
	err = g.Serve(ctx, relay.Stdio(in, out, gateway.DefaultClientLimit), backend)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil // told to stop: it has drained
	}
	return masked(a.mask, err)
}

// warn says what is wrong with the policy. Of hosts that are down the log says
// which.
func (a *assembly) warn(log *slog.Logger, listings []chain.Listing, boundary config.Boundary) {
	for _, w := range a.warnings(listings, boundary) {
		log.Warn(w)
	}
}

// stdioFiles are the descriptors of a client on stdio, which the relay takes
// over.
func stdioFiles(std streams) (in, out *os.File, err error) {
	in, okIn := std.in.(*os.File)
	out, okOut := std.out.(*os.File)
	if !okIn || !okOut {
		return nil, nil, errors.New("weir gateway needs a standard input and output of its own")
	}
	return in, out, nil
}

func gatewayOptions(log *slog.Logger, a *assembly, file *config.File) gateway.Options {
	o := gateway.Options{
		ChainOptions: gateway.ChainOptions{
			Hosts: a.hosts, Policy: a.policy, Timeout: file.Timeout, Logger: log, LogMessages: file.LogMessages,
		},
		Relay: relay.Options{Blocked: relay.Blocked{ToolResult: file.Blocked.ToolResult}},
	}
	if file.Boundary == config.Server {
		o.Relay.Boundary = relay.GuardBackend
	}
	switch file.Blocked.Details {
	case config.DetailsAlways:
		o.Relay.Blocked.Details = relay.DetailsAlways
	case config.DetailsNever:
		o.Relay.Blocked.Details = relay.DetailsNever
	}
	return o
}
