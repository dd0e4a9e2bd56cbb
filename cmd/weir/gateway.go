package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"runtime"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/weir-mcp/weir/gateway"
	"github.com/weir-mcp/weir/gateway/chain"
	"github.com/weir-mcp/weir/gateway/relay"
	"github.com/weir-mcp/weir/internal/config"
	"github.com/weir-mcp/weir/internal/telemetry"
	"github.com/weir-mcp/weir/runtime/library"
)

func newGateway(std streams) *cobra.Command {
	var flags chainFlags
	var backend, address string
	cmd := &cobra.Command{
		Use:   "gateway [flags] [-- COMMAND ARG…]",
		Short: "Stand in front of an MCP server and govern what passes",
		Long: "gateway stands in for an MCP server, one that COMMAND starts or one at a URL. It speaks stdio to one client, or with\n" +
			"--http streamable HTTP to any number, at http://ADDR/mcp. Every message passes untouched unless the chain of\n" +
			"interceptors, merged from all hosts, says otherwise.",
		Example: "  weir gateway --hosts ./interceptors -- npx -y @modelcontextprotocol/server-everything\n" +
			"  weir gateway --hosts ./interceptors --backend https://mcp.example.com/mcp --http 127.0.0.1:8414\n" +
			"  weir gateway --config weir.yaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			before, command, err := afterDash(cmd, args)
			if err != nil {
				return err
			}
			if len(before) > 0 {
				return usagef("%s does not take %q; the backend's command goes after --, such as -- %[2]s", cmd.CommandPath(), before[0])
			}
			file, err := flags.load(config.Flags{Command: command, Backend: given(cmd, "backend", &backend), HTTP: given(cmd, "http", &address)})
			if err != nil {
				return err
			}
			if file.Backend == nil {
				return usagef(`no backend: give its command after "--", its URL with --backend, or either in a --config`)
			}
			return runGateway(cmd.Context(), std, newMaskedLogger(std.err, slog.LevelInfo, maskOf(file)), file)
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&backend, "backend", "", "the URL of the backend, in place of a command")
	cmd.Flags().StringVar(&address, "http", "", "serve clients over streamable HTTP at http://ADDR/mcp instead of stdio")
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

// runGateway serves one client on stdio until it or the backend ends, or any
// number over HTTP until ctx does.
func runGateway(ctx context.Context, std streams, log *slog.Logger, file *config.File) error {
	idle := make([]byte, idleHeap)
	defer runtime.KeepAlive(idle)
	if len(file.Hosts) == 0 {
		log.Warn("there are no hosts of interceptors: everything passes as it is; give --hosts DIR|URL or a --config with hosts")
	}
	f, err := openFront(log, file, relay.WithPrincipal)
	if err != nil {
		return masked(maskOf(file), err)
	}
	defer f.close()
	a, err := assemble(ctx, std, log, file)
	if err != nil {
		return err
	}
	defer a.close(ctx)
	var served atomic.Pointer[endpoint]
	metrics := telemetry.New(telemetry.Options{
		Version: buildVersion(), Observer: relay.NewLogObserver(log), State: func() telemetry.State { return a.state(served.Load()) },
	})
	options := gatewayOptions(log, a, file)
	options.Relay.Observer = metrics
	options.Observers = []gateway.Observer{{
		Decided: func(op *gateway.Operation, out *gateway.Outcome) { metrics.Decided(op.Event, op.Phase, &out.Outcome) },
		Sunk:    metrics.Sink,
	}}
	exposed := exposedOf(a, file)
	if exposed != nil {
		options.Relay.Capability = exposed.Capability
	}
	g, err := gateway.New(options)
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
	seen := view{ready: (&readiness{a: a, file: file}).missing, metrics: metrics.Handler()}
	defer f.serveOperators(ctx, seen)()
	if f.listener == nil {
		return masked(a.mask, serveClient(ctx, std, log, g, file))
	}
	stand, err := newEndpoint(log, g, file)
	if err != nil {
		return masked(a.mask, err)
	}
	served.Store(&stand)
	log.Info("serving", "at", f.endpoint(), "backend", file.Backend.String())
	return masked(a.mask, serveClients(ctx, f, stand, routes(log, stand, exposed, file), seen))
}

// serveClients serves handler, behind which stand is, until ctx ends, then lets
// what runs finish.
func serveClients(ctx context.Context, f *front, stand endpoint, handler http.Handler, v view) error {
	serving, end := context.WithCancel(ctx)
	defer end()
	ended := make(chan struct{})
	go func() {
		// Together with the HTTP server, which waits for every POST: only the
		// endpoint knows which of them are there to listen, and ends those.
		<-serving.Done()
		drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
		defer cancel()
		if err := stand.Shutdown(drain); err != nil {
			f.log.Warn("sessions were cut off at the end", "cause", err)
		}
		close(ended)
	}()
	err := f.serveCallers(serving, handler, v)
	end()
	<-ended
	return err
}

// idleHeap is memory that nobody touches, so that the system does not provide it.
// It only makes the collector count on a heap of this size, in bytes: one of 4 MB
// is collected with every few large messages, and a message of 1 MB took about
// twice as long (bench/README.md).
const idleHeap = 32 << 20

// serveClient serves the client on stdio.
func serveClient(ctx context.Context, std streams, log *slog.Logger, g *gateway.Gateway, file *config.File) error {
	in, out, err := stdioFiles(std)
	if err != nil {
		return err
	}
	backend, err := startBackend(log, file)
	if err != nil {
		return err
	}
	err = g.Serve(ctx, relay.Stdio(in, out, int(file.Listen.Limits.Body)), backend)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil // told to stop: it has drained
	}
	return err
}

// state is what operators see of the hosts and the policy.
func (a *assembly) state(served *endpoint) telemetry.State {
	s := a.folders()
	listings, _ := a.hosts.Listings(endedContext)
	for i := range listings {
		l := &listings[i]
		s.Hosts = append(s.Hosts, telemetry.Host{Name: l.Host.Name(), Up: l.Err == nil, Interceptors: len(l.Interceptors), Skipped: len(l.Skipped)})
	}
	for _, u := range a.policy.Unmatched(listings) {
		if !u.Pending {
			s.Unmatched = append(s.Unmatched, u.Source)
		}
	}
	if served != nil {
		s.Sessions = (*served).Sessions()
	}
	return s
}

// folders is what runs of the folders of modules.
func (a *assembly) folders() (s telemetry.State) {
	for _, lib := range a.libraries {
		s.Modules = append(s.Modules, modulesOf(lib.host, lib.Library)...)
	}
	return s
}

func modulesOf(host string, lib *library.Library) (modules []telemetry.Module) {
	for _, f := range lib.Status() {
		modules = append(modules, telemetry.Module{Host: host, File: f.Name, Digest: f.Digest, Refused: f.Err != nil})
	}
	return modules
}

// endedContext is for asking without waiting.
var endedContext = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

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
		Relay: relay.Options{
			Blocked:     relay.Blocked{ToolResult: file.Blocked.ToolResult},
			Passthrough: relay.Passthrough{GenericErrors: file.Passthrough.GenericErrors, Notifications: file.Passthrough.Notifications},
		},
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
