package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/chain"
	"github.com/weir-mcp/weir/gateway/hosts"
	"github.com/weir-mcp/weir/internal/config"
	"github.com/weir-mcp/weir/runtime/library"
)

// assembly is what the configuration makes of hosts and policy: the part that
// `weir gateway`, `weir plan` and `weir demo` have in common.
type assembly struct {
	hosts     *hosts.Set
	policy    *chain.Policy
	sandbox   *sandbox
	libraries []folder
	// mask hides the secrets of the configuration in a text, or is nil.
	mask func(string) string
}

// folder is the library of a host that is a folder of modules.
type folder struct {
	host string
	*library.Library
}

// chainFlags are the flags that say which hosts and policy there are.
type chainFlags struct {
	config   string
	hosts    []string
	boundary string
}

func (f *chainFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.config, "config", "", "the weir.yaml with hosts, policy and backend")
	cmd.Flags().StringArrayVar(&f.hosts, "hosts", nil, "a folder of modules or the URL of an interceptor server, as [NAME=]DIR|URL;\nadded after the hosts of the file; may be repeated")
	cmd.Flags().StringVar(&f.boundary, "boundary", "", "which side is guarded: client (default) or server")
}

// load reads the configuration and applies the flags, which win.
func (f *chainFlags) load(flags config.Flags) (*config.File, error) {
	var file *config.File
	if f.config != "" {
		var err error
		if file, err = loadConfig(f.config); err != nil {
			return nil, err
		}
	}
	flags.Hosts, flags.Boundary = f.hosts, f.boundary
	return file.With(flags)
}

// loadConfig reads a weir.yaml. Whatever is wrong with it is wrong usage, a file
// that is not there included.
func loadConfig(path string) (*config.File, error) {
	file, err := config.Load(path, os.LookupEnv)
	if err != nil {
		return nil, usageError{err}
	}
	return file, nil
}

// assemble opens the folders and makes the hosts. Nothing is connected yet, and
// modules may still be loading: the first discovery waits for both.
func assemble(ctx context.Context, std streams, log *slog.Logger, file *config.File) (*assembly, error) {
	policy, err := chain.NewPolicy(policyEntries(file.Interceptors))
	if err != nil {
		return nil, usageError{err}
	}
	a := &assembly{mask: maskOf(file)}
	a.policy = policy.CheckConfigs(a.checkConfig)
	if a.sandbox, err = newSandbox(std, log, file); err != nil {
		return nil, err
	}
	var list []*hosts.Host
	for i := range file.Hosts {
		host, err := a.host(ctx, log, &file.Hosts[i])
		if err != nil {
			a.close(ctx)
			return nil, masked(a.mask, err)
		}
		list = append(list, host)
	}
	a.hosts = hosts.NewSet(list, hosts.SetOptions{})
	return a, nil
}

func (a *assembly) host(ctx context.Context, log *slog.Logger, h *config.Host) (*hosts.Host, error) {
	options := hosts.Options{FailOpen: h.FailOpen, Envelope: h.Payload == config.Envelope, Request: h.Request, Logger: log, Mask: a.mask, Version: buildVersion()}
	switch {
	case !h.Modules.IsZero():
		o := a.sandbox.options(h, nil)
		o.Admit = a.admit(h.Name)
		lib := library.New(o)
		a.libraries = append(a.libraries, folder{h.Name, lib})
		if err := lib.Open(ctx, h.Modules.Reveal()); err != nil {
			return nil, fmt.Errorf("host %q: %w", h.Name, err)
		}
		return hosts.InProcess(h.Name, lib, options), nil
	case !h.URL.IsZero():
		return hosts.HTTP(h.Name, hosts.Endpoint{URL: h.URL.Reveal(), Headers: revealMap(h.Headers)}, options), nil
	default:
		return hosts.Stdio(h.Name, hosts.Process{
			Command: revealList(h.Command), Dir: h.Dir, Env: hosts.Environment(revealMap(h.Env)),
		}, options), nil
	}
}

// admit refuses the modules of a folder whose hooks policy would widen: our own
// are not taken into service (protocol.md §5).
func (a *assembly) admit(host string) func(string, []abi.Descriptor) error {
	return func(_ string, interceptors []abi.Descriptor) error {
		var errs []error
		for i := range interceptors {
			errs = append(errs, a.policy.Admits(host, &interceptors[i]))
		}
		if err := errors.Join(errs...); err != nil {
			return err
		}
		return nil
	}
}

// refusals says which modules of our own folders are not served as they are now,
// why, and what to do.
func (a *assembly) refusals() []string {
	var all []string
	for _, lib := range a.libraries {
		for _, f := range lib.Status() {
			if f.Err != nil {
				all = append(all, fmt.Sprintf("%s on %s is refused: %s", f.Name, lib.host, a.why(f)))
			}
		}
	}
	return all
}

// why is what the refusal of a file says, without the name of the file, which it
// may begin with.
func (a *assembly) why(f library.File) string {
	return strings.TrimPrefix(masked(a.mask, f.Err).Error(), f.Name+": ")
}

// close ends hosts, then libraries, then the sandbox under them.
func (a *assembly) close(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	if a.hosts != nil {
		_ = a.hosts.Close(ctx)
	}
	for _, lib := range a.libraries {
		_ = lib.Close(ctx)
	}
	_ = a.sandbox.Close(ctx)
}

func policyEntries(entries []config.Entry) []chain.Entry {
	policy := make([]chain.Entry, len(entries))
	for i, e := range entries {
		policy[i] = chain.Entry{
			Interceptor: e.Interceptor, Host: e.Host, As: e.As, Enabled: e.Enabled, Mode: e.Mode, FailOpen: e.FailOpen,
			PriorityHint: e.PriorityHint, Timeout: e.Timeout, Config: e.Config.Reveal(), Hooks: e.Hooks,
			Required: e.Required, Type: e.Type, Source: string(e.Source),
		}
		if !e.Config.IsZero() {
			policy[i].ConfigShown = json.RawMessage(e.Config.String())
		}
	}
	return policy
}

func revealList(list []config.Text) []string {
	out := make([]string, len(list))
	for i, t := range list {
		out[i] = t.Reveal()
	}
	return out
}

func revealMap(m map[string]config.Text) map[string]string {
	out := make(map[string]string, len(m))
	for name, t := range m {
		out[name] = t.Reveal()
	}
	return out
}
