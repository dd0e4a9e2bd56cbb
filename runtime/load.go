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
	"github.com/weir-mcp/weir/runtime/memory"
	"github.com/weir-mcp/weir/runtime/meter"
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
// rewrites and compiles, or takes both from the cache ([WithCache]), and has the module describe itself, for which
// Limits.LoadTime is all it gets. The module serves from then on; beside its
// first calls it is warmed up ([Module.Settled]). Nothing of a module that fails
// stays behind. The error is a
// [*LoadError], [ErrClosed], or the context's.
//
// wasm must not be changed before Load returns. A compilation that has begun
// cannot be stopped; its length is bounded by the limits of package meter. Load
// does not wait for it beyond Limits.CompileTime or the end of ctx. It goes on
// then, within the budget of all compilations, and fills the cache.
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
	digest := sha256.Sum256(wasm)
	rewritten, code, err := r.prepare(ctx, parsed, digest, limits)
	if err != nil {
		return nil, err
	}
	m := &Module{
		runtime: r, name: o.Name, flavour: flavour, digest: hex.EncodeToString(digest[:]),
		limits: limits, grants: o.Grants, environ: o.Grants.environ(), logger: cmp.Or(o.Logger, r.logger),
		code: code, maxPages: rewritten.Memory.Max,
		slots: make(chan struct{}, limits.Calls), settled: make(chan struct{}), released: make(chan struct{}),
		guests: pool{most: limits.Calls},
	}
	m.life, m.end = context.WithCancel(context.Background())
	if rewritten.DeferredStart {
		m.starts = append(m.starts, meter.ExportStart)
	}
	if flavour == Command {
		m.starts = append(m.starts, abi.ExportStart)
	} else {
		exports := exportNames(parsed)
		m.warmup, m.reseed = exports[abi.ExportWarmup], exports[abi.ExportReseed]
		if exports[abi.ExportInitialize] {
			m.starts = append(m.starts, abi.ExportInitialize)
		}
		m.uninitialized = exports[abi.ExportStart] && !exports[abi.ExportInitialize]
	}
	way, why := reset(flavour, rewritten, guarded(memory.Fresh, r.engine.Reset))
	if way != memory.Fresh {
		m.globals = rewritten.Globals
	}
	m.way, m.reset = way, resetText(way, why)
	g, err := m.describe(ctx)
	if err != nil {
		m.end()
		return nil, errors.Join(err, closeGuarded(code))
	}
	m.byName = interceptorsByName(m.descriptors)
	r.adopt(m)
	switch {
	case g == nil:
		close(m.settled)
	case way == memory.Fresh:
		g.close()
		close(m.settled)
	default:
		m.calls++ // nobody else has the module yet
		go m.settle(g)
	}
	return m, nil
}

func exportNames(m *meter.Module) map[string]bool {
	names := make(map[string]bool, len(m.Exports))
	for _, e := range m.Exports {
		names[e.Name] = true
	}
	return names
}

// reset decides how a module is made pristine for every call, and says why where
// it is not the engine's way.
func reset(f Flavour, r *meter.Rewritten, engine memory.Way) (way memory.Way, why string) {
	switch {
	case f == Command:
		return memory.Fresh, "a command"
	case !r.Restorable():
		return memory.Fresh, "the module " + strings.Join(r.Unrestorable, ", ")
	case engine == memory.Fresh:
		return memory.Fresh, "the engine does not put instances back"
	}
	return engine, ""
}

func resetText(way memory.Way, why string) string {
	if why == "" {
		return way.String()
	}
	return way.String() + ": " + why
}

// describe starts an instance of the module and has it describe itself. It
// returns the instance, unless it is a command's.
func (m *Module) describe(ctx context.Context) (*guest, error) {
	late := within(m.limits.LoadTime)
	until := deadlineOf(ctx).or(late)
	c := m.newCall(nil, slog.String("during", "describe"))
	defer c.log.end(ctx)
	g, err := m.askDescribe(c.context(ctx), c, until)
	if err == nil {
		m.descriptors, err = c.describedInterceptors()
	} else if ctx.Err() != nil {
		err = ctx.Err()
	} else if f := failureOf(err); f.reason == abi.ReasonTimeout && until != late {
		err = context.DeadlineExceeded
	} else {
		err = m.unstarted(f)
	}
	if err != nil && g != nil {
		g.close()
		g = nil
	}
	return g, err
}

// unstarted says what a module failed in that does not come to serve.
func (m *Module) unstarted(f *failure) error {
	stage := cmp.Or(f.stage, argumentDescribe) // which is what a command is run for
	if f.reason == abi.ReasonTimeout {
		return fmt.Errorf("%s did not end within %v, the limit for loading", stage, f.limit)
	}
	hint := ""
	if f.stage == abi.ExportDescribe && m.uninitialized {
		hint = fmt.Sprintf("; it exports %s and no %s, so nothing has initialized it: in Go, build with -buildmode=c-shared",
			abi.ExportStart, abi.ExportInitialize)
	}
	return fmt.Errorf("%s failed (%s): %w%s", stage, f.reason, f.cause, hint)
}

func (m *Module) askDescribe(ctx context.Context, c *call, until deadline) (*guest, error) {
	if m.flavour == Command {
		return nil, m.runCommand(ctx, c, until, argumentDescribe, 0)
	}
	defer c.end()
	g, err := m.startGuest(ctx, c, until)
	if err != nil {
		return nil, err
	}
	err = g.call(ctx, c, abi.ExportDescribe)
	g.slept = c.clock.slept
	return g, err
}

func (c *call) describedInterceptors() ([]abi.Descriptor, error) {
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
