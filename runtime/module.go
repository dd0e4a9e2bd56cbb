package runtime

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/wire"
	"github.com/weir-mcp/weir/runtime/memory"
	"github.com/weir-mcp/weir/runtime/meter"
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
	starts      []string            // the functions that start an instance; a command's do all
	globals     []meter.SavedGlobal // what a snapshot keeps besides memory
	warmup      bool                // exports weir_warmup
	reseed      bool                // exports weir_reseed
	descriptors []abi.Descriptor
	byName      map[string]*abi.Descriptor

	// uninitialized: a reactor that exports _start, which is never called, where
	// others have _initialize.
	uninitialized bool

	slots   chan struct{} // holds one token for each running call
	waiting atomic.Int64  // calls that wait for a slot
	guests  pool
	settled chan struct{} // closed when the warm-up has ended
	way     memory.Way    // how guests are put back, where their state could be captured
	renewal renewal

	life context.Context // ends when the module is closed
	end  context.CancelFunc

	mu       sync.Mutex
	reset    string
	closed   bool
	calls    int           // begun and not ended, the warm-up included
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
		return abi.Result{}, abi.TimedOut(inv.Name, inv.Phase, f.limit, f)
	}
	return abi.Result{}, abi.Failed(inv.Name, inv.Phase, f.reason, f)
}

func (m *Module) invoke(ctx context.Context, inv *abi.Invocation, d *abi.Descriptor) (abi.Result, *failure) {
	if int64(len(inv.Payload)) > m.limits.InputBytes {
		return abi.Result{}, failuref(abi.ReasonPayloadTooLarge,
			"the payload has %d bytes, the limit (input) is %d", len(inv.Payload), m.limits.InputBytes)
	}
	if !m.enter() {
		return abi.Result{}, &failure{reason: abi.ReasonUnavailable, cause: errModuleClosed}
	}
	defer m.leave()

	until := deadlineOf(ctx).or(within(inv.Timeout))
	if f := m.acquire(ctx, until, inv.Patient); f != nil {
		return abi.Result{}, f
	}
	defer func() { <-m.slots }()

	began := time.Now()
	result, err := m.callGuest(ctx, inv, d, until.or(within(m.limits.CallTime)))
	m.renewWhenDue(began)
	if err != nil {
		return abi.Result{}, failureOf(err)
	}
	ms := float64(time.Since(began).Milliseconds())
	result.DurationMs = &ms
	return result, nil
}

var errModuleClosed = errors.New("the module is closed")

// acquire takes a slot, waiting in the queue where there is none free. Who is
// patient waits even where the queue is full.
func (m *Module) acquire(ctx context.Context, until deadline, patient bool) *failure {
	if f := until.passed(ctx); f != nil {
		return f
	}
	select {
	case m.slots <- struct{}{}:
		return nil
	default:
	}
	if m.waiting.Add(1) > int64(m.limits.Queue) && !patient {
		m.waiting.Add(-1)
		return failuref(abi.ReasonBusy, "%d calls run and %d wait, which are the limits", m.limits.Calls, m.limits.Queue)
	}
	defer m.waiting.Add(-1)
	var late <-chan time.Time
	if left, ok := until.left(); ok {
		timer := time.NewTimer(left)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case m.slots <- struct{}{}:
		if f := until.passed(ctx); f != nil {
			<-m.slots
			return f
		}
		return nil
	case <-m.life.Done():
		return &failure{reason: abi.ReasonUnavailable, cause: errModuleClosed}
	case <-late:
		return until.missed()
	case <-ctx.Done():
		if f := until.passed(ctx); f != nil {
			return f
		}
		return until.missed()
	}
}

// callGuest makes one call and reads the answer.
func (m *Module) callGuest(ctx context.Context, inv *abi.Invocation, d *abi.Descriptor, until deadline) (abi.Result, error) {
	if int64(len(inv.Request)) > m.limits.InputBytes {
		smaller := *inv
		smaller.Request = nil
		inv = &smaller
	}
	input := abi.AppendCall(make([]byte, 0, len(inv.Payload)+len(inv.Config)+len(inv.Request)+512), inv)
	c := m.newCall(input, slog.String("interceptor", inv.Name), slog.String("event", inv.Event), slog.String("phase", string(inv.Phase)))
	c.kv = m.grants.KV.access(m.name, inv)
	err := m.run(c.context(ctx), c, until)
	c.log.end(ctx)
	if err != nil {
		return abi.Result{}, err
	}
	if !c.hasOutput {
		return abi.Result{}, c.failed(nil, failuref(abi.ReasonBadOutput, "the guest handed over no answer"))
	}
	if err := wire.Strict(c.output); err != nil {
		return abi.Result{}, c.failed(nil, failuref(abi.ReasonBadOutput, "the answer is bad JSON: %w", err))
	}
	result, err := abi.ReadAnswer(c.output, d, inv.Phase)
	if guest, ok := errors.AsType[*abi.GuestError](err); ok {
		return abi.Result{}, c.failed(nil, &failure{reason: abi.ReasonGuest, cause: guest})
	}
	if err != nil {
		return abi.Result{}, c.failed(nil, &failure{reason: abi.ReasonBadOutput, cause: err})
	}
	return result, nil
}

// run makes one call; the answer is in c.
func (m *Module) run(ctx context.Context, c *call, until deadline) error {
	if m.flavour == Command {
		return m.runCommand(ctx, c, until, argumentInvoke, m.limits.Fuel)
	}
	g, err := m.borrow(ctx, c, until)
	if err != nil {
		return err
	}
	c.clock.slept = g.slept
	// What the guest says is copied out while it runs, so that it may be put
	// back now, and is for the next one by the time of the answer.
	if err = c.begin(g, until, m.limits.Fuel); err != nil {
		err = c.failed(g, err)
	} else {
		err = m.enact(ctx, c, g)
		c.end()
	}
	f, failed := errors.AsType[*failure](err)
	m.giveBack(g, !failed || f.reason == abi.ReasonGuest)
	return err
}

// The argument that tells a command what it is run for.
const (
	argumentDescribe = "describe"
	argumentInvoke   = "invoke"
)

// runCommand runs a command on an instance of its own.
func (m *Module) runCommand(ctx context.Context, c *call, until deadline, argument string, budget int64) error {
	c.args = []string{m.name, argument}
	g, err := m.newGuest(ctx, nil)
	if err != nil {
		return c.failedIn(stageInstance, nil, err)
	}
	defer g.close()
	if err := c.begin(g, until, budget); err != nil {
		return c.failed(g, err)
	}
	defer c.end()
	for _, export := range m.starts {
		if _, err := callGuarded(ctx, g.instance, export); err != nil {
			if code, ok := exitCode(err); !ok || code != 0 {
				return c.failed(g, err)
			}
			break
		}
	}
	if err := c.tank.settle(); err != nil {
		return c.failed(g, err)
	}
	return nil
}

// enact makes a call of a reactor in a guest that has been started.
func (m *Module) enact(ctx context.Context, c *call, g *guest) error {
	if m.reseed {
		if _, err := callGuarded(ctx, g.instance, abi.ExportReseed, rand.Uint64()); err != nil {
			return c.failedIn(stages[abi.ExportReseed], g, err)
		}
	}
	c.output, c.hasOutput = nil, false
	return g.call(ctx, c, abi.ExportInvoke, uint64(len(c.input)))
}

// borrow gives a guest that has been started: one that waits, or one made from
// the snapshot, or where there is none a fresh one.
func (m *Module) borrow(ctx context.Context, c *call, until deadline) (*guest, error) {
	g, from := m.guests.take()
	if g != nil {
		return g, nil
	}
	if from != nil {
		g, err := m.newGuest(ctx, from)
		from.release() // the guest's memory keeps what it needs
		if err != nil {
			return nil, c.failedIn(stageInstance, nil, err)
		}
		return g, nil
	}
	input := c.input
	c.input = nil
	g, err := m.startGuest(ctx, c, until)
	c.input = input
	return g, err
}

// giveBack ends the use of a guest. One that is intact is put back to the
// snapshot it came from and waits for the next call; all others are closed.
func (m *Module) giveBack(g *guest, intact bool) {
	if intact && g.from != nil && g.restore() == nil && m.guests.put(g) {
		return
	}
	g.close()
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
	m.guests.close()
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
	m.end()
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
