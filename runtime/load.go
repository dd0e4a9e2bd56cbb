package runtime

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/wire"
)

// ModuleOptions says how one module is loaded and run.
type ModuleOptions struct {
	// Name is the file name: it stands in errors and logs, and is argv[0] of a
	// command.
	Name   string
	Limits Limits
	Grants Grants
	// Logger receives what the guest logs; nil means the runtime's.
	Logger *slog.Logger
}

// LoadError says why a module was refused, for the operator who put the file
// there: what is wrong and what to do about it.
type LoadError struct {
	File string
	Err  error
}

// Error names the file and the reason.
func (e *LoadError) Error() string {
	if e.File == "" {
		return e.Err.Error()
	}
	return e.File + ": " + e.Err.Error()
}

// Unwrap returns the reason.
func (e *LoadError) Unwrap() error { return e.Err }

// Load makes a module ready to be invoked (abi.md "Load"): it parses the bytes
// strictly, checks imports against the grants and exports against the ABI,
// compiles, and has the module describe itself, for which Limits.LoadTime is
// all it gets. Nothing of a module that fails stays behind. The error is a
// [*LoadError], [ErrClosed], or the context's.
//
// wasm must not be changed before Load returns. A compilation that has begun is
// not ended by ctx; its length is bounded by the limits of package meter.
func (r *Runtime) Load(ctx context.Context, wasm []byte, o ModuleOptions) (*Module, error) {
	if err := r.begin(); err != nil {
		return nil, err
	}
	defer r.loading.Done()
	m, err := r.load(ctx, wasm, o)
	if err != nil {
		if ended := ctx.Err(); ended != nil && errors.Is(err, ended) {
			return nil, err
		}
		return nil, &LoadError{File: o.Name, Err: err}
	}
	r.adopt(m)
	return m, nil
}

func (r *Runtime) load(ctx context.Context, wasm []byte, o ModuleOptions) (*Module, error) {
	limits, err := o.Limits.orDefaults()
	if err != nil {
		return nil, err
	}
	if err := o.Grants.validate(); err != nil {
		return nil, err
	}
	if int64(len(wasm)) > limits.ModuleBytes {
		return nil, fmt.Errorf("the file has %d bytes, the limit (module file) is %d", len(wasm), limits.ModuleBytes)
	}
	parsed, err := parse(wasm)
	if err != nil {
		return nil, err
	}
	flavour, err := check(parsed, o.Name, limits, o.Grants)
	if err != nil {
		return nil, err
	}
	code, err := r.compile(ctx, parsed, bounded(parsed, limits))
	if err != nil {
		return nil, fmt.Errorf("the engine refused the module: %w", err)
	}
	digest := sha256.Sum256(wasm)
	m := &Module{
		runtime: r, name: o.Name, flavour: flavour, digest: hex.EncodeToString(digest[:]),
		limits: limits, grants: o.Grants, environ: o.Grants.environ(),
		logger: cmp.Or(o.Logger, r.logger), code: code, maxPages: maxPages(parsed, limits),
		slots: make(chan struct{}, limits.Calls), closing: make(chan struct{}), released: make(chan struct{}),
	}
	for _, e := range parsed.Exports {
		m.initialize = m.initialize || flavour == Reactor && e.Name == abi.ExportInitialize
		m.reseed = m.reseed || flavour == Reactor && e.Name == abi.ExportReseed
	}
	if m.descriptors, err = m.describe(ctx); err != nil {
		return nil, errors.Join(err, closeGuarded(code))
	}
	m.byName = interceptorsByName(m.descriptors)
	return m, nil
}

// describe runs the module's start section, _initialize and weir_describe.
func (m *Module) describe(ctx context.Context) ([]abi.Descriptor, error) {
	late := &timeLimit{m.limits.LoadTime}
	limited, cancel := context.WithTimeoutCause(ctx, late.limit, late)
	defer cancel()
	c := m.newCall(nil, slog.String("during", "describe"))
	defer c.log.end(ctx)
	if err := m.run(limited, c, entryDescribe); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		f := failureOf(limited, err)
		if f.reason == abi.ReasonTimeout {
			return nil, fmt.Errorf("describe did not end within %v, the limit for loading", late.limit)
		}
		return nil, fmt.Errorf("describe failed (%s): %w", f.reason, f.cause)
	}
	if !c.hasOutput {
		return nil, fmt.Errorf("describe handed over nothing: it must call weir.%s with its descriptors", abi.ImportOutput)
	}
	return readDescriptors(c.output)
}

// readDescriptors reads what a module says about itself. A module of our own
// folder is all or nothing: one bad descriptor refuses it (protocol.md §2).
func readDescriptors(answer []byte) ([]abi.Descriptor, error) {
	if err := wire.Strict(answer); err != nil {
		return nil, fmt.Errorf("describe handed over bad JSON: %w", err)
	}
	page, err := abi.ReadPage(answer)
	if err != nil {
		return nil, fmt.Errorf("describe handed over something else than descriptors: %w", err)
	}
	if len(page.Skipped) > 0 {
		bad := make([]string, len(page.Skipped))
		for i, s := range page.Skipped {
			bad[i] = fmt.Sprintf("number %d: %v", s.Index+1, s.Err)
		}
		return nil, fmt.Errorf("bad descriptor: %s", strings.Join(bad[:min(len(bad), 10)], "; "))
	}
	if page.NextCursor != "" {
		return nil, errors.New("describe handed over a nextCursor: a module describes all its interceptors at once")
	}
	if len(page.Interceptors) == 0 {
		return nil, errors.New("the module registers no interceptor; in Go, register them in init, since main never runs")
	}
	names := make([]string, len(page.Interceptors))
	for i, d := range page.Interceptors {
		names[i] = d.Name
	}
	slices.Sort(names)
	for i := 1; i < len(names); i++ {
		if names[i] == names[i-1] {
			return nil, fmt.Errorf("the module describes two interceptors named %q", names[i])
		}
	}
	return page.Interceptors, nil
}
