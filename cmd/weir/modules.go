package main

import (
	"log/slog"
	"os"
	"path/filepath"

	"github.com/weir-mcp/weir/internal/config"
	"github.com/weir-mcp/weir/runtime"
	"github.com/weir-mcp/weir/runtime/cache"
	"github.com/weir-mcp/weir/runtime/library"
	"github.com/weir-mcp/weir/runtime/store"
	"github.com/weir-mcp/weir/runtime/trust"
	"github.com/weir-mcp/weir/runtime/wazero"
)

// openCache opens the compile cache in the user's cache folder. Without one all
// works the same, only slower to start, so that is a warning and nil.
func openCache(log *slog.Logger, dir string) *cache.Cache {
	c, err := cache.Open(cache.Options{Dir: filepath.Join(dir, "code"), Logger: log})
	if err != nil {
		log.Warn("no compile cache: its folder cannot be used safely; choose another (XDG_CACHE_HOME), or switch it off (cache: off)", "error", err)
		return nil
	}
	return c
}

// sandbox is what all folders of one process share: the runtime, the store of
// the modules, and whose signatures count.
type sandbox struct {
	*runtime.Runtime
	log   *slog.Logger
	store *store.Memory
	trust *trust.Policy
}

// newSandbox makes the runtime, with a compile cache where that is wanted. What
// is wrong with the cache is told at any verbosity.
func newSandbox(std streams, log *slog.Logger, file *config.File) (*sandbox, error) {
	policy, err := trustOf(file.Trust)
	if err != nil {
		return nil, err
	}
	warnings := newLogger(std.err, slog.LevelWarn)
	engineOptions := wazero.Options{Logger: warnings}
	options := []runtime.Option{runtime.WithLogger(log)}
	if file.Cache {
		user, err := os.UserCacheDir()
		dir := filepath.Join(user, "weir")
		if err != nil {
			warnings.Warn("no compile cache: this user has no cache folder", "error", err)
		} else if c := openCache(warnings, dir); c != nil {
			engineOptions.ScratchDir = filepath.Join(dir, "scratch")
			options = append(options, runtime.WithCache(c))
		}
	}
	engine, err := wazero.New(engineOptions)
	if err != nil {
		return nil, err
	}
	return &sandbox{
		Runtime: runtime.New(engine, options...), log: log,
		store: store.NewMemory(store.Limits{}), trust: policy,
	}, nil
}

// library makes an empty library whose modules run under what the
// configuration says of the folder and its files. host may be nil.
func (s *sandbox) library(host *config.Host, entries []library.Entry) *library.Library {
	return library.New(s.options(host, entries))
}

func (s *sandbox) options(host *config.Host, entries []library.Entry) library.Options {
	if host == nil {
		host = &config.Host{}
	}
	return library.Options{
		Loader:    library.Sandbox(s.Runtime, func(name string) runtime.ModuleOptions { return s.module(host, name) }),
		Entries:   entries,
		Pins:      pinsOf(host),
		Trust:     s.trust,
		Logger:    s.log,
		FileBytes: largestFile(host),
	}
}

// module is what a file of a host may use and reach.
func (s *sandbox) module(host *config.Host, name string) runtime.ModuleOptions {
	file := host.Files[name]
	grants := runtime.Grants{Clock: file.Grants.Clock, Env: environment(file.Grants.Env)}
	if scope := file.Grants.KV; scope != "" {
		grants.KV = &runtime.KV{Store: s.store, Host: host.Name, Scope: store.Scope(scope)}
	}
	return runtime.ModuleOptions{Limits: limitsOf(file.Limits.Over(host.Limits)), Grants: grants, Logger: s.log}
}

// pinsOf is the digests that a host's files must have.
func pinsOf(host *config.Host) map[string]library.Pin {
	pins := map[string]library.Pin{}
	for name, file := range host.Files {
		if file.SHA256 != "" {
			pins[name] = library.Pin{SHA256: file.SHA256, Source: string(file.Source)}
		}
	}
	return pins
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
	set(&limits.Fuel, l.Fuel)
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

// largestFile is the highest of the limits that a host's module files have; the
// runtime then holds each file to its own.
func largestFile(host *config.Host) int64 {
	largest := limitsOf(host.Limits).ModuleBytes // of files that are not named
	for _, file := range host.Files {
		largest = max(largest, limitsOf(file.Limits.Over(host.Limits)).ModuleBytes)
	}
	return largest
}
