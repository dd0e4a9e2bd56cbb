package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/wire"
)

// Module is a loaded module. It is safe for concurrent use.
type Module struct {
	runtime     *Runtime
	name        string
	flavour     Flavour
	digest      string
	limits      Limits
	grants      Grants
	environ     []string
	logger      *slog.Logger
	code        Code
	maxPages    uint32
	initialize  bool // exports _initialize
	reseed      bool // exports weir_reseed
	descriptors []abi.Descriptor
	byName      map[string]*abi.Descriptor

	slots   chan struct{} // holds one token for each running call
	waiting atomic.Int64  // calls that wait for a slot

	mu       sync.Mutex
	closed   bool
	calls    int           // begun and not ended
	closing  chan struct{} // closed with the module
	released chan struct{} // closed once its code is freed
	freeErr  error         // of freeing, set before released is closed
}

// interceptorsByName indexes what a module describes.
func interceptorsByName(descriptors []abi.Descriptor) map[string]*abi.Descriptor {
	byName := make(map[string]*abi.Descriptor, len(descriptors))
	for i := range descriptors {
		byName[descriptors[i].Name] = &descriptors[i]
	}
	return byName
}

// Name returns the file name that the module was loaded under.
func (m *Module) Name() string { return m.name }

// Digest returns the SHA-256 of the file, in hex.
func (m *Module) Digest() string { return m.digest }

// Flavour says which kind of module it is.
func (m *Module) Flavour() Flavour { return m.flavour }

// Descriptors returns the module's interceptors in the order in which it
// describes them. They are not to be changed beyond the returned slice.
func (m *Module) Descriptors() []abi.Descriptor { return slices.Clone(m.descriptors) }

// Invoke calls an interceptor of the module. inv.Name is the module's own name
// for it; inv.Payload, Config and Request must be valid JSON that the strict
// reader (internal/wire) has accepted, for they go into the guest's input as
// they are. Whether the interceptor hooks the event, and whether the config is
// of its schema, is for the caller to check.
//
// inv.Timeout includes the wait for a slot; the module's own limit does not.
// The error is always an [*abi.Error]. DurationMs of the result is filled in:
// whole milliseconds of running time. The payload of an unmodified mutation is
// left as the guest gave it.
func (m *Module) Invoke(ctx context.Context, inv abi.Invocation) (abi.Result, error) {
	d := m.byName[inv.Name]
	if d == nil {
		return abi.Result{}, abi.UnknownName(inv.Name)
	}
	result, f := m.invoke(ctx, &inv, d)
	if f == nil {
		return result, nil
	}
	if f.reason == abi.ReasonTimeout {
		return abi.Result{}, abi.TimedOut(inv.Name, inv.Phase, f.limit, f.cause)
	}
	return abi.Result{}, abi.Failed(inv.Name, inv.Phase, f.reason, f.cause)
}

func (m *Module) invoke(ctx context.Context, inv *abi.Invocation, d *abi.Descriptor) (abi.Result, *failure) {
	if int64(len(inv.Payload)) > m.limits.InputBytes {
		return abi.Result{}, &failure{reason: abi.ReasonPayloadTooLarge,
			cause: fmt.Errorf("the payload has %d bytes, the limit (input) is %d", len(inv.Payload), m.limits.InputBytes)}
	}
	if !m.enter() {
		return abi.Result{}, &failure{reason: abi.ReasonUnavailable, cause: errModuleClosed}
	}
	defer m.leave()

	var callerLimit time.Duration // what the caller's own deadline leaves
	if deadline, ok := ctx.Deadline(); ok {
		callerLimit = time.Until(deadline)
	}
	if inv.Timeout > 0 {
		late := &timeLimit{inv.Timeout}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, inv.Timeout, late)
		defer cancel()
	}
	result, f := m.queued(ctx, inv, d)
	if f != nil && f.reason == abi.ReasonTimeout && f.limit == 0 {
		f.limit = max(callerLimit, time.Millisecond)
	}
	return result, f
}

// queued waits for a slot and makes the call.
func (m *Module) queued(ctx context.Context, inv *abi.Invocation, d *abi.Descriptor) (abi.Result, *failure) {
	if f := m.acquire(ctx); f != nil {
		return abi.Result{}, f
	}
	defer func() { <-m.slots }()

	began := time.Now()
	late := &timeLimit{m.limits.CallTime}
	ctx, cancel := context.WithTimeoutCause(ctx, m.limits.CallTime, late)
	defer cancel()
	result, err := m.callGuest(ctx, inv, d)
	if err != nil {
		f := failureOf(ctx, err)
		return abi.Result{}, &f
	}
	ms := float64(time.Since(began).Milliseconds())
	result.DurationMs = &ms
	return result, nil
}

var errModuleClosed = errors.New("the module is closed")

// acquire takes a slot, waiting in the queue where there is none free.
func (m *Module) acquire(ctx context.Context) *failure {
	if ctx.Err() != nil {
		f := interruption(ctx)
		return &f
	}
	select {
	case m.slots <- struct{}{}:
		return nil
	default:
	}
	if m.waiting.Add(1) > int64(m.limits.Queue) {
		m.waiting.Add(-1)
		return &failure{reason: abi.ReasonBusy,
			cause: fmt.Errorf("%d calls run and %d wait, which are the limits", m.limits.Calls, m.limits.Queue)}
	}
	defer m.waiting.Add(-1)
	select {
	case m.slots <- struct{}{}:
		return nil
	case <-m.closing:
		return &failure{reason: abi.ReasonUnavailable, cause: errModuleClosed}
	case <-ctx.Done():
		f := interruption(ctx)
		return &f
	}
}

// callGuest makes one call on a fresh instance and reads the answer.
func (m *Module) callGuest(ctx context.Context, inv *abi.Invocation, d *abi.Descriptor) (abi.Result, error) {
	if int64(len(inv.Request)) > m.limits.InputBytes {
		smaller := *inv
		smaller.Request = nil
		inv = &smaller
	}
	input := abi.AppendCall(make([]byte, 0, len(inv.Payload)+len(inv.Config)+len(inv.Request)+512), inv)
	c := m.newCall(input, slog.String("interceptor", inv.Name), slog.String("event", inv.Event), slog.String("phase", string(inv.Phase)))
	c.kv = m.grants.KV.access(m.name, inv)
	err := m.run(ctx, c, entryInvoke)
	c.log.end(ctx)
	if err != nil {
		return abi.Result{}, err
	}
	if !c.hasOutput {
		return abi.Result{}, stopf(abi.ReasonBadOutput, "the guest handed over no answer")
	}
	if err := wire.Strict(c.output); err != nil {
		return abi.Result{}, stopf(abi.ReasonBadOutput, "the answer is bad JSON: %w", err)
	}
	result, err := abi.ReadAnswer(c.output, d, inv.Phase)
	if guest, ok := errors.AsType[*abi.GuestError](err); ok {
		return abi.Result{}, &stop{abi.ReasonGuest, &abi.GuestError{Message: boundedText(guest.Message)}}
	}
	if err != nil {
		return abi.Result{}, &stop{abi.ReasonBadOutput, bounding(err)}
	}
	return result, nil
}

// entry is what a run of a guest is for.
type entry struct {
	argument string // of a command
	export   string // of a reactor
}

var (
	entryDescribe = entry{"describe", abi.ExportDescribe}
	entryInvoke   = entry{"invoke", abi.ExportInvoke}
)

// run makes a fresh instance, calls the entry in it and throws it away. The
// answer is in c.
func (m *Module) run(ctx context.Context, c *call, e entry) error {
	ctx = c.context(ctx)
	// The start of an instance has no input, and what it says is no answer.
	input := c.input
	if m.flavour == Command {
		c.args = []string{m.name, e.argument}
	} else {
		c.input = nil
	}
	instance, err := instantiateGuarded(ctx, m.code, m.maxPages)
	if err != nil {
		return err
	}
	defer func() { _ = closeGuarded(instance) }()
	if m.flavour == Command {
		_, err := callGuarded(ctx, instance, abi.ExportStart)
		if code, ok := exitCode(err); ok && code == 0 {
			return nil
		}
		return err
	}
	if m.initialize {
		if _, err := callGuarded(ctx, instance, abi.ExportInitialize); err != nil {
			return err
		}
	}
	var args []uint64
	if e == entryInvoke {
		args = []uint64{uint64(len(input))}
		if m.reseed {
			if _, err := callGuarded(ctx, instance, abi.ExportReseed, rand.Uint64()); err != nil {
				return err
			}
		}
	}
	c.input, c.output, c.hasOutput = input, nil, false
	status, err := callGuarded(ctx, instance, e.export, args...)
	if err != nil {
		return err
	}
	if code := int32(status); code != 0 {
		return stopf(abi.ReasonGuest, "%s returned %d", e.export, code)
	}
	return nil
}

// enter registers a call, unless the module is closed.
func (m *Module) enter() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return false
	}
	m.calls++
	return true
}

func (m *Module) leave() {
	m.mu.Lock()
	m.calls--
	last := m.closed && m.calls == 0
	m.mu.Unlock()
	if last {
		m.release()
	}
}

// release frees the code. It runs once: when the module is closed and its last
// call has ended.
func (m *Module) release() {
	m.freeErr = closeGuarded(m.code)
	m.runtime.forget(m)
	close(m.released)
}

// Close lets no new calls in (they fail as unavailable, waiting ones too) and
// waits for the running ones. When ctx ends first it returns the context's
// error; the module is then freed with the end of its last call.
func (m *Module) Close(ctx context.Context) error {
	m.mu.Lock()
	first := !m.closed
	m.closed = true
	idle := first && m.calls == 0
	m.mu.Unlock()
	if first {
		close(m.closing)
	}
	if idle {
		m.release()
	}
	select {
	case <-m.released:
		return m.freeErr
	default:
	}
	select {
	case <-m.released:
		return m.freeErr
	case <-ctx.Done():
		return ctx.Err()
	}
}
