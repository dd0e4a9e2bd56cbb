package wazero

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/weir-mcp/weir/runtime"
	"github.com/weir-mcp/weir/runtime/memory"
)

// code is a compiled module.
type code struct {
	engine   *Engine
	linked   *linked
	compiled wazero.CompiledModule
	least    uint64 // bytes of memory that an instance begins with
	scratch  scratches
}

var _ runtime.Code = (*code)(nil)

func newCode(e *Engine, l *linked, compiled wazero.CompiledModule) *code {
	c := &code{engine: e, linked: l, compiled: compiled}
	for _, m := range compiled.ExportedMemories() {
		c.least = uint64(m.Min()) * pageBytes
	}
	c.scratch.size = c.least
	// wazero looks for the name of each function among all exports, once and when
	// it is first asked: that belongs here, and not into a guest's call.
	compiled.ExportedFunctions()
	return c
}

// moduleConfig gives a guest nothing. Names must be empty, since instances of
// one module would clash, and no start function may run on its own. Nothing
// draws from the source of randomness, which belongs to wazero's own WASI; but
// its default is deterministic, and costs 5 µs an instance to seed.
var moduleConfig = wazero.NewModuleConfig().WithName("").WithStartFunctions().WithRandSource(rand.Reader)

// Instantiate implements [runtime.Code].
func (c *code) Instantiate(ctx context.Context, room runtime.Room) (runtime.Instance, error) {
	m, err := memory.New(uint64(room.Pages)*pageBytes, room.Account, c.engine.way)
	if err != nil {
		return nil, err
	}
	a := &allocator{memory: m}
	var scratch *[]byte
	if room.Image != nil {
		scratch = c.scratch.take()
	}
	if scratch != nil {
		a.scratch = *scratch
		defer c.scratch.give(scratch)
	} else if m.Resize(c.least) == nil { // wazero panics without memory to begin with
		m.Free()
		return nil, fmt.Errorf("%w: an instance needs %d bytes to begin with", memory.ErrNoRoom, c.least)
	}
	module, err := c.linked.InstantiateModule(experimental.WithMemoryAllocator(ctx, a), c.compiled, moduleConfig)
	if err != nil {
		m.Free()
		return nil, fault(err)
	}
	i := &instance{module: module, memory: m, functions: map[string]function{}, layout: c.engine.layout}
	if room.Image != nil {
		if err := i.beginAs(room.Image); err != nil {
			return nil, errors.Join(err, i.Close(ctx))
		}
	}
	return i, nil
}

// Close implements [runtime.Code].
func (c *code) Close(ctx context.Context) error { return c.compiled.Close(ctx) }

// instance is an instance with its memory, which no module that has been
// rewritten and accepted is without.
type instance struct {
	module    api.Module
	memory    *memory.Memory
	attached  bool   // there is an image to put the memory back to
	size      uint64 // which has this size
	functions map[string]function
	layout    *stackLayout // nil: functions keep the stacks that they have
	stack     []byte       // what they run on, one at a time; nil before the first
	running   ownStack     // of the function that was called last, where it has its own
	words     [4]uint64
}

var _ runtime.Instance = (*instance)(nil)

// function is an exported function with the stack that it runs on.
type function struct {
	api.Function
	results int
	own     ownStack
}

// find gives an exported function. It is kept, because each comes with a stack
// of its own.
func (i *instance) find(export string) (function, error) {
	f, ok := i.functions[export]
	if ok {
		return f, nil
	}
	f.Function = i.module.ExportedFunction(export)
	if f.Function == nil {
		return f, errors.New("no such export: " + export)
	}
	d := f.Definition()
	f.results = len(d.ResultTypes())
	if n := max(len(d.ParamTypes()), f.results); n > len(i.words) {
		return f, fmt.Errorf("%s takes or gives %d values: more than any function that is called", export, n)
	}
	if i.useStack(f); i.layout == nil {
		f.own = ownStackOf(f.Function)
	}
	i.functions[export] = f
	return f, nil
}

// useStack has a function run on the instance's stack, where that is known how.
func (i *instance) useStack(f function) {
	if i.layout == nil {
		return
	}
	if i.stack == nil {
		i.stack = newStack()
	}
	if i.stack == nil || i.layout.give(f.Function, i.stack) != nil {
		i.layout = nil
	}
}

var errClosed = errors.New("the instance is closed")

// Call implements [runtime.Instance].
func (i *instance) Call(ctx context.Context, export string, args ...uint64) (uint64, error) {
	if !i.memory.Enter() {
		return 0, errClosed
	}
	defer i.memory.Leave()
	f, err := i.find(export)
	if err != nil {
		return 0, err
	}
	i.running = f.own
	clear(i.words[:])
	copy(i.words[:], args)
	err = f.CallWithStack(ctx, i.words[:])
	if f.own.size() > keptStack {
		delete(i.functions, export)
		i.running = ownStack{}
	}
	if err != nil {
		return 0, fault(err)
	}
	if f.results == 0 {
		return 0, nil
	}
	return i.words[0], nil
}

// Global implements [runtime.Instance].
func (i *instance) Global(export string) runtime.Global {
	if g, ok := i.module.ExportedGlobal(export).(api.MutableGlobal); ok {
		return g
	}
	return nil
}

// Capture implements [runtime.Instance].
func (i *instance) Capture() (runtime.Image, error) {
	image, err := i.memory.Capture()
	if err != nil {
		return nil, err
	}
	if err := i.beginAs(image); err != nil {
		image.Free()
		return nil, err
	}
	return image, nil
}

func (i *instance) beginAs(image runtime.Image) error {
	m, ok := image.(*memory.Image)
	if !ok {
		return errors.New("an image of another engine")
	}
	if i.memory.Size() != m.Size() || !isMemory(i.memory, i.module.Memory()) {
		if err := resize(i.memory, i.module.Memory(), m.Size()); err != nil {
			return err
		}
	}
	if !isMemory(i.memory, i.module.Memory()) {
		return errShrink
	}
	i.attached, i.size = true, m.Size()
	return i.memory.Attach(m)
}

// Stack implements [runtime.Instance].
func (i *instance) Stack() (bytes uint64, grows bool) {
	if i.layout != nil {
		return stackBytes, false
	}
	return i.running.size(), true
}

// UsedStack implements [runtime.Instance].
func (i *instance) UsedStack() uint64 {
	if i.layout != nil && i.stack != nil {
		return usedStack(i.stack)
	}
	return i.running.size()
}

// TrimStack implements [runtime.Instance]. Stacks of wazero's own are let go with
// the call that made them large.
func (i *instance) TrimStack() {
	if i.layout != nil && i.stack != nil {
		trimStack(i.stack)
	}
}

// Restore implements [runtime.Instance].
func (i *instance) Restore() error {
	if !i.attached {
		return errors.New("nothing was captured that the instance could be put back to")
	}
	if i.memory.Size() != i.size {
		if err := resize(i.memory, i.module.Memory(), i.size); err != nil {
			return err
		}
	}
	return i.memory.Restore()
}

// Close implements [runtime.Instance].
func (i *instance) Close(ctx context.Context) error {
	// wazero frees the memory with the instance, too, but not when it has been
	// closed before. That waits for code that runs.
	defer func() {
		i.memory.Free()
		if i.stack != nil {
			clear(i.functions)
			freeStack(i.stack)
			i.stack = nil
		}
	}()
	return i.module.Close(ctx)
}

// fault tells what wazero's error of a call is.
func fault(err error) error {
	f := &runtime.Fault{Kind: runtime.FaultTrap, Err: err}
	if host, ok := errors.AsType[*hostError](err); ok {
		f.Kind, f.Err = runtime.FaultHost, host.err
	} else if innermost(err).Error() == "stack overflow" {
		f.Kind = runtime.FaultStack
	}
	return f
}

func innermost(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}
