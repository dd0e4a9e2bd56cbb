package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-mcp/weir/internal/config"
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
			file, err := settings(path)
			if err != nil {
				return err
			}
			mask := maskOf(file)
			log := newMaskedLogger(std.err, slog.LevelInfo, mask)
			return masked(mask, serve(cmd.Context(), std, log, file, args[0], addr))
		},
	}
	cmd.Flags().StringVar(&addr, "http", "", "serve streamable HTTP at http://ADDR/mcp instead of stdio")
	cmd.Flags().StringVar(&path, "config", "", "the weir.yaml with limits, grants, pins, trust, config, as and enabled")
	return cmd
}

// settings reads the weir.yaml of a command that does not need one.
func settings(path string) (*config.File, error) {
	if path == "" {
		return config.Default(), nil
	}
	file, err := loadConfig(path)
	if err != nil {
		return nil, err
	}
	return file.With(config.Flags{})
}

func serve(ctx context.Context, std streams, log *slog.Logger, file *config.File, dir, addr string) error {
	if addr == "" {
		return serveFolder(ctx, std, log, file, dir, nil)
	}
	listener, err := listenLoopback(addr)
	if err != nil {
		return err
	}
	defer listener.Close()
	return serveFolder(ctx, std, log, file, dir, listener)
}

// serveFolder serves over HTTP on the listener, or over stdio without one.
func serveFolder(ctx context.Context, std streams, log *slog.Logger, file *config.File, dir string, listener net.Listener) error {
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
	s := server.New(lib, server.Options{Name: "weir", Version: buildVersion(), Logger: log, Ready: lib.Ready})
	go announce(ctx, log, lib, dir, listener)
	if listener == nil {
		return s.ServeStdio(ctx, std.in, std.out)
	}
	return serveHTTP(ctx, log, listener, s.Handler())
}

// announce says once what is served, as soon as that is known.
func announce(ctx context.Context, log *slog.Logger, lib *library.Library, dir string, listener net.Listener) {
	if err := lib.Ready(ctx); err != nil && !errors.Is(err, library.ErrLoading) {
		return
	}
	where := "stdio"
	if listener != nil {
		where = "http://" + listener.Addr().String() + "/mcp"
	}
	log.Info("serving", "folder", dir, "at", where, "interceptors", len(lib.List()))
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

// listenLoopback listens on a loopback address. Others would need
// authentication, which this version does not have (config.md, listen.auth).
func listenLoopback(addr string) (net.Listener, error) {
	name, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, usagef("--http %q: %w; give an address such as 127.0.0.1:8414", addr, err)
	}
	if ip, err := netip.ParseAddr(name); name != "localhost" && (err != nil || !ip.IsLoopback()) {
		return nil, usagef("--http %q: this version serves loopback addresses only, since it does not authenticate callers; "+
			"use 127.0.0.1 and put an authenticating proxy in front", addr)
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("--http %s: %w", addr, err)
	}
	return listener, nil
}

// Bounds on one HTTP connection. An answer may take as long as its calls do.
const (
	headerTime  = 10 * time.Second
	bodyTime    = time.Minute
	idleTime    = 2 * time.Minute
	drainTime   = 10 * time.Second
	headerBytes = 64 << 10
)

// serveHTTP serves handler at /mcp until ctx ends, then lets what runs finish.
func serveHTTP(ctx context.Context, log *slog.Logger, listener net.Listener, handler http.Handler) error {
	mux := http.NewServeMux()
	mux.Handle("/mcp", handler)
	s := &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: headerTime,
		ReadTimeout:       bodyTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    headerBytes,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	failed := make(chan error, 1)
	go func() { failed <- s.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	if err := s.Shutdown(drain); err != nil {
		return errors.Join(fmt.Errorf("some calls did not end in %v: %w", drainTime, err), s.Close())
	}
	return nil
}
