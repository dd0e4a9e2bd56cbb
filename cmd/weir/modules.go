package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/weir-mcp/weir/internal/config"
	"github.com/weir-mcp/weir/runtime"
	"github.com/weir-mcp/weir/runtime/library"
	"github.com/weir-mcp/weir/runtime/wazero"
)

// newEngine makes the engine, with a compile cache in the user's cache folder
// where that is wanted. Without such a folder it works the same, only slower to
// start, so that is a warning.
func newEngine(std streams, cache bool) (*wazero.Engine, error) {
	log := newLogger(std.err, slog.LevelWarn)
	options := wazero.Options{Logger: log}
	if cache {
		if dir, err := os.UserCacheDir(); err == nil {
			options.CacheDir = filepath.Join(dir, "weir", "compiled")
		} else {
			log.Warn("no compile cache: this user has no cache folder", "error", err)
		}
	}
	engine, err := wazero.New(options)
	if err != nil && options.CacheDir != "" {
		log.Warn("no compile cache: its folder cannot be used safely", "folder", options.CacheDir, "error", err)
		return wazero.New(wazero.Options{Logger: log})
	}
	return engine, err
}

// sandbox is the runtime that all folders of one process share.
type sandbox struct {
	*runtime.Runtime
	log *slog.Logger
}

func newSandbox(std streams, log *slog.Logger, cache bool) (*sandbox, error) {
	engine, err := newEngine(std, cache)
	if err != nil {
		return nil, err
	}
	return &sandbox{Runtime: runtime.New(engine, runtime.WithLogger(log)), log: log}, nil
}

// library makes an empty library whose modules run under what the
// configuration says of the folder and its files. host may be nil.
func (s *sandbox) library(host *config.Host, entries []library.Entry) *library.Library {
	if host == nil {
		host = &config.Host{}
	}
	o := s.options(host)
	o.Entries = entries
	return library.New(o)
}

// options are those of a library of the host's folder.
func (s *sandbox) options(host *config.Host) library.Options {
	return library.Options{
		Loader:    s.loader(host),
		Logger:    s.log,
		FileBytes: cmp.Or(largestFile(host), runtime.DefaultLimits().ModuleBytes),
	}
}

// loader loads the modules of a folder whose bytes are those that are pinned.
func (s *sandbox) loader(host *config.Host) library.Loader {
	load := library.Sandbox(s.Runtime, func(name string) runtime.ModuleOptions {
		file := host.Files[name]
		return runtime.ModuleOptions{
			Limits: limitsOf(file.Limits.Over(host.Limits)),
			Grants: runtime.Grants{Clock: file.Grants.Clock, Env: environment(file.Grants.Env)},
			Logger: s.log,
		}
	})
	return library.LoaderFunc(func(ctx context.Context, name string, wasm []byte) (library.Module, error) {
		if err := checkPin(name, host.Files[name], wasm); err != nil {
			return nil, err
		}
		return load.Load(ctx, name, wasm)
	})
}

// checkPin compares the digest of a file with the one its configuration pins.
func checkPin(name string, file config.FileOptions, wasm []byte) error {
	if file.SHA256 == "" {
		return nil
	}
	sum := sha256.Sum256(wasm)
	if digest := hex.EncodeToString(sum[:]); digest != file.SHA256 {
		return fmt.Errorf("%s: its SHA-256 is %s, but %s pins %s; put the pinned file back or change the pin",
			name, digest, file.Source, file.SHA256)
	}
	return nil
}

// environment is the granted variables that are set.
func environment(names []string) map[string]string {
	env := make(map[string]string, len(names))
	for _, name := range names {
		if value, ok := os.LookupEnv(name); ok {
			env[name] = value
		}
	}
	return env
}

// limitsOf fills in the defaults of abi.md.
func limitsOf(l config.Limits) runtime.Limits {
	limits := runtime.DefaultLimits()
	set(&limits.ModuleBytes, l.Module)
	set(&limits.Memory, l.Memory)
	set(&limits.TableElements, l.Table)
	set(&limits.CallTime, l.Timeout)
	set(&limits.LoadTime, l.Load)
	set(&limits.InputBytes, l.Input)
	set(&limits.OutputBytes, l.Output)
	set(&limits.LogLines, l.LogLines)
	set(&limits.LogLineBytes, int(l.LogLine))
	if l.Calls > 0 && l.Queue == 0 {
		limits.Queue = 4 * l.Calls
	}
	set(&limits.Calls, l.Calls)
	set(&limits.Queue, l.Queue)
	return limits
}

func set[T comparable](to *T, value T) {
	var unset T
	if value != unset {
		*to = value
	}
}

// largestFile is the highest of a host's module size limits, 0 when none is
// set; the runtime then holds each file to its own.
func largestFile(host *config.Host) int64 {
	largest := host.Limits.Module
	for _, file := range host.Files {
		largest = max(largest, file.Limits.Over(host.Limits).Module)
	}
	return largest
}
