package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-mcp/weir/internal/config"
	"github.com/weir-mcp/weir/internal/telemetry"
	"github.com/weir-mcp/weir/runtime/library"
	"github.com/weir-mcp/weir/runtime/server"
)

func newServe(std streams) *cobra.Command {
	var addr, path string
	cmd := &cobra.Command{
		Use:   "serve DIR",
		Short: "Serve a folder of modules as an interceptor server",
		Long: "serve answers interceptors/list and interceptor/invoke for the modules in DIR, over stdio or, with --http, at\n" +
			"http://ADDR/mcp. Modules that are dropped in, replaced or removed are picked up while it runs; one that does not load\n" +
			"is reported and left out, and its last good version serves on.",
		Example: "  weir serve ./interceptors\n  weir serve ./interceptors --http 127.0.0.1:8414",
		Args:    exactly(1, "one folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := settings(path, config.Flags{HTTP: given(cmd, "http", &addr)})
			if err != nil {
				return err
			}
			mask := maskOf(file)
			log := newMaskedLogger(std.err, slog.LevelInfo, mask)
			f, err := openFront(log, file, nil)
			if err != nil {
				return masked(mask, err)
			}
			defer f.close()
			return masked(mask, serveFolder(cmd.Context(), std, log, file, args[0], f))
		},
	}
	cmd.Flags().StringVar(&addr, "http", "", "serve streamable HTTP at http://ADDR/mcp instead of stdio")
	cmd.Flags().StringVar(&path, "config", "", "the weir.yaml with listen, limits, grants, pins, trust, config, as and enabled")
	return cmd
}

// settings reads the weir.yaml of a command that does not need one.
func settings(path string, flags config.Flags) (*config.File, error) {
	file := config.Default()
	if path != "" {
		var err error
		if file, err = loadConfig(path); err != nil {
			return nil, err
		}
	}
	file, err := file.With(flags)
	if err != nil {
		return nil, usageError{err}
	}
	return file, nil
}

// serveFolder serves over HTTP where the front has an address for it, over stdio
// else.
func serveFolder(ctx context.Context, std streams, log *slog.Logger, file *config.File, dir string, f *front) error {
	box, err := newSandbox(std, log, file)
	if err != nil {
		return err
	}
	late := context.WithoutCancel(ctx)
	defer box.Close(late)
	host := hostOf(file, dir)
	if host == nil && file.Path != "" {
		log.Warn("no host of the configuration has this folder: default limits, no grants, no pins", "folder", dir, "config", file.Path)
	}
	lib := box.library(host, servedEntries(log, file, host))
	defer lib.Close(late)
	if err := lib.Open(ctx, dir); err != nil {
		return err
	}
	s := server.New(lib, server.Options{
		Name: "weir", Version: buildVersion(), Logger: log, Ready: lib.Ready,
		MessageBytes: file.Listen.Limits.Body + aroundPayload, Concurrency: file.Listen.Limits.Concurrency, TrustContext: f.known,
	})
	name := "folder"
	if host != nil {
		name = host.Name
	}
	metrics := telemetry.New(telemetry.Options{
		Version: buildVersion(), State: func() telemetry.State { return telemetry.State{Modules: modulesOf(name, lib)} },
	})
	seen := view{ready: lib.Ready, metrics: metrics.Handler()}
	defer f.serveOperators(ctx, seen)()
	go announce(ctx, log, lib, dir, f.endpoint())
	if f.listener == nil {
		return s.ServeStdio(ctx, std.in, std.out)
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", s.Handler())
	return f.serveCallers(ctx, mux, seen)
}

// aroundPayload is what a message may have around its payload, in bytes.
const aroundPayload = 64 << 10

// announce says once what is served, as soon as that is known.
func announce(ctx context.Context, log *slog.Logger, lib *library.Library, dir, endpoint string) {
	if err := lib.Ready(ctx); err != nil && !errors.Is(err, library.ErrLoading) {
		return
	}
	log.Info("serving", "folder", dir, "at", cmp.Or(endpoint, "stdio"), "interceptors", len(lib.List()))
}

// hostOf finds the host entry whose folder is dir, by whatever path each calls
// it, or nil.
func hostOf(file *config.File, dir string) *config.Host {
	here, err := os.Stat(dir)
	for i := range file.Hosts {
		modules := file.Hosts[i].Modules
		if modules.IsZero() {
			continue
		}
		if there, e := os.Stat(modules.Reveal()); e == nil && err == nil && os.SameFile(here, there) {
			return &file.Hosts[i]
		}
		if filepath.Clean(modules.Reveal()) == filepath.Clean(dir) {
			return &file.Hosts[i]
		}
	}
	return nil
}

// servedEntries is what of the interceptors list concerns a server: as, config
// and enabled. The rest is an invoker's, which is said once (config.md).
func servedEntries(log *slog.Logger, file *config.File, host *config.Host) []library.Entry {
	var entries []library.Entry
	for _, e := range file.Interceptors {
		if e.Host != "" && (host == nil || e.Host != host.Name) {
			continue
		}
		if keys := invokersKeys(e); len(keys) > 0 {
			log.Warn("ignored by weir serve, since it is for whoever invokes the interceptor",
				"interceptor", e.Interceptor, "keys", strings.Join(keys, ", "), "at", string(e.Source))
		}
		entries = append(entries, library.Entry{
			Interceptor: e.Interceptor, As: e.As, Config: e.Config.Reveal(), Enabled: e.Enabled, Source: string(e.Source),
		})
	}
	return entries
}

func invokersKeys(e config.Entry) (keys []string) {
	for _, k := range []struct {
		name string
		set  bool
	}{
		{"mode", e.Mode != nil}, {"failOpen", e.FailOpen != nil}, {"priorityHint", e.PriorityHint != nil},
		{"timeout", e.Timeout != nil}, {"hooks", e.Hooks != nil}, {"required", e.Required}, {"type", e.Type != ""},
	} {
		if k.set {
			keys = append(keys, k.name)
		}
	}
	return keys
}

// drainTime is how long what runs may take to end when a command is told to.
const drainTime = 10 * time.Second
