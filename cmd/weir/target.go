package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/hosts"
	"github.com/weir-mcp/weir/internal/config"
	"github.com/weir-mcp/weir/runtime/library"
)

// target is what `weir list` and `weir invoke` speak to: a folder, a .wasm
// file, an http(s) URL, or an interceptor server that is run as a command
// (config.md, TARGET).
type target struct {
	interceptors []abi.Descriptor
	skipped      []abi.Skipped
	// files is set for a folder or a file only: a digest never travels.
	files  []library.File
	invoke func(ctx context.Context, inv abi.Invocation) (abi.Result, error)
	close  func()
}

// targetArgs finds the TARGET among the arguments: the last one, or what
// follows "--". names says what comes before it.
func targetArgs(cmd *cobra.Command, args []string, names ...string) (before []string, where string, command []string, err error) {
	args, command, err = afterDash(cmd, args)
	if err != nil {
		return nil, "", nil, err
	}
	want := len(names)
	if command == nil {
		want++
	}
	if len(args) != want {
		return nil, "", nil, usagef("%s takes %s; see %[1]s --help", cmd.CommandPath(), joinNames(append(names, "TARGET (a folder, a .wasm file, a URL, or -- COMMAND)")))
	}
	if command != nil {
		return args, "", command, nil
	}
	return args[:len(names)], args[len(names)], nil, nil
}

func joinNames(names []string) string {
	s := names[0]
	for _, name := range names[1:] {
		s += " and " + name
	}
	return s
}

// openTarget opens a TARGET. The weir.yaml at path, if there is one, says under
// what limits, grants, pins and trust the modules of a folder or file run.
func openTarget(ctx context.Context, std streams, where string, command []string, path string) (*target, error) {
	file, err := settings(path, config.Flags{})
	if err != nil {
		return nil, err
	}
	if path != "" && (command != nil || config.IsURL(where)) {
		return nil, usagef("%s is for the modules of a folder or a file, which TARGET is not; leave it out", path)
	}
	// What goes wrong is the command's own error; a host's warnings are for a
	// gateway, where operations depend on it.
	quiet := hosts.Options{Logger: newLogger(std.err, slog.LevelError), Version: buildVersion()}
	switch {
	case command != nil:
		return openRemote(ctx, hosts.Stdio("target", hosts.Process{Command: command, Env: hosts.Environment(nil)}, quiet))
	case config.IsURL(where):
		t, err := openRemote(ctx, hosts.HTTP("target", hosts.Endpoint{URL: where}, quiet))
		if u, e := url.Parse(where); err != nil && e == nil && strings.Trim(u.Path, "/") == "" {
			return nil, fmt.Errorf("%w; interceptor servers mostly answer at a path: try %s", err, u.JoinPath("mcp"))
		}
		return t, err
	default:
		return openLocal(ctx, std, newLogger(std.err, slog.LevelWarn), where, file)
	}
}

// openRemote lists the interceptors of a server elsewhere.
func openRemote(ctx context.Context, host *hosts.Host) (*target, error) {
	set := hosts.NewSet([]*hosts.Host{host}, hosts.SetOptions{})
	shut := func() { _ = set.Close(context.WithoutCancel(ctx)) }
	listings, _ := set.Listings(ctx)
	if err := listings[0].Err; err != nil {
		shut()
		return nil, fmt.Errorf("cannot list the interceptors: %w", err)
	}
	return &target{
		interceptors: listings[0].Interceptors,
		skipped:      listings[0].Skipped,
		invoke:       host.Invoke,
		close:        shut,
	}, nil
}

// openLocal loads a folder or a single file.
func openLocal(ctx context.Context, std streams, log *slog.Logger, path string, file *config.File) (*target, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, usagef("%s: no such file or folder; give a folder of modules, a .wasm file or an http(s) URL", path)
	}
	box, err := newSandbox(std, log, file)
	if err != nil {
		return nil, err
	}
	folder := path
	if !info.IsDir() {
		folder = filepath.Dir(path)
	}
	host := hostOf(file, folder)
	if host == nil && file.Path != "" {
		log.Warn("no host of the configuration has this folder: default limits, no grants, no pins", "folder", folder, "config", file.Path)
	}
	var lib *library.Library
	if info.IsDir() {
		lib = box.library(host, nil)
		if err = lib.Open(ctx, path); err == nil {
			err = lib.Ready(ctx)
		}
	} else {
		lib, err = library.OpenFile(ctx, path, box.options(host, nil))
	}
	shut := func() {
		late := context.WithoutCancel(ctx)
		if lib != nil {
			_ = lib.Close(late)
		}
		_ = box.Close(late)
	}
	if err != nil && !errors.Is(err, library.ErrLoading) {
		shut()
		return nil, err
	}
	if err != nil {
		log.Warn("some modules are still loading and are left out", "folder", filepath.Clean(path))
	}
	self := rand.Text() // this process is one caller, as a stdio connection is
	invoke := func(ctx context.Context, inv abi.Invocation) (abi.Result, error) {
		inv.Connection = self
		return lib.Invoke(ctx, inv)
	}
	return &target{interceptors: lib.List(), files: lib.Status(), invoke: invoke, close: shut}, nil
}
