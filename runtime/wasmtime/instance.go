//go:build wasmtime

package wasmtime

import (
	"context"
	"errors"
	"fmt"
	"sync"

	wasm "github.com/bytecodealliance/wasmtime-go/v44"

	"github.com/weir-mcp/weir/runtime"
	"github.com/weir-mcp/weir/runtime/memory"
)

// pageBytes is WebAssembly's page.
const pageBytes = 64 << 10

// code is a compiled module.
type code struct {
	engine *Engine
	module *wasm.Module
	memory string // the name that its memory is exported under
	least  uint64 // bytes of memory that an instance begins with
}

var _ runtime.Code = (*code)(nil)

func newCode(e *Engine, module *wasm.Module) (runtime.Code, error) {
	c := &code{engine: e, module: module}
	for _, export := range module.Exports() {
		if t := export.Type().MemoryType(); t != nil {
			c.memory, c.least = export.Name(), t.Minimum()*pageBytes
			return c, nil
		}
	}
	module.Close()
	return nil, errors.New("the module exports no memory")
}

// unlimited bounds what package meter has bounded before: the number of tables,
// and their elements, of which the limiter knows only those of each.
const unlimited = 1 << 30

// Instantiate implements [runtime.Code].
func (c *code) Instantiate(ctx context.Context, room runtime.Room) (made runtime.Instance, err error) {
	i := &instance{
		ctx: ctx, most: uint64(room.Pages) * pageBytes, functions: map[string]function{},
		room: memory.NewForeign(room.Account, c.engine.way),
	}
	size := c.least
	if room.Image != nil {
		size = max(size, room.Image.Size())
	}
	if err := i.room.Begin(size); err != nil {
		return nil, fmt.Errorf("an instance needs %d bytes to begin with: %w", size, err)
	}
	i.store = wasm.NewStoreWithData(c.engine.engine, i)
	defer func() {
		if err != nil {
			i.free()
		}
	}()
	i.allow(size)
	instance, err := c.engine.linker.Instantiate(i.store, c.module)
	if trap, ok := errors.AsType[*wasm.Trap](err); ok {
		return nil, i.fault(trap) // a segment that does not fit
	} else if err != nil {
		return nil, fmt.Errorf("%w: %w", memory.ErrNoRoom, err)
	}
	i.instance = instance
	e := instance.GetExport(i.store, c.memory)
	if e == nil {
		return nil, errNoExport(c.memory)
	}
	i.memory = e.Memory()
	if room.Image != nil {
		if err := i.beginAs(room.Image); err != nil {
			return nil, err
		}
	}
	return i, nil
}

// Close implements [runtime.Code].
func (c *code) Close(context.Context) error {
	c.module.Close()
	return nil
}

// instance is an instance in a store of its own, with its memory, which no
// module that has been rewritten and accepted is without.
type instance struct {
	store    *wasm.Store
	instance *wasm.Instance
	memory   *wasm.Memory
	room     *memory.Foreign
	most     uint64 // bytes of memory that the guest may have
	allowed  uint64 // what wasmtime has been told of that

	functions map[string]function

	running sync.Mutex // held while guest code runs
	closed  bool

	ctx     context.Context // of the call that runs
	hostErr error           // by which a host function ended it
	words   [maxWords]uint64
}

var _ runtime.Instance = (*instance)(nil)

// maxWords is more than any host function has parameters.
const maxWords = 16

type errNoExport string

func (e errNoExport) Error() string { return "no such export: " + string(e) }

// bytes is the memory as it is now.
func (i *instance) bytes() []byte { return i.memory.UnsafeData(i.store) }

// allow tells wasmtime how large the memory may get.
func (i *instance) allow(bytes uint64) {
	if bytes != i.allowed {
		i.store.Limiter(int64(bytes), unlimited, 1, unlimited, 1)
		i.allowed = bytes
	}
}

// function is an exported function.
type function struct {
	*wasm.Func
	params []wasm.ValKind
}

// find gives an exported function.
func (i *instance) find(export string) (function, error) {
	f, ok := i.functions[export]
	if ok {
		return f, nil
	}
	e := i.instance.GetExport(i.store, export)
	if e == nil || e.Func() == nil {
		return f, errNoExport(export)
	}
	f.Func = e.Func()
	typ := f.Type(i.store)
	for _, p := range typ.Params() {
		f.params = append(f.params, p.Kind())
	}
	if len(typ.Results()) > 1 {
		return f, fmt.Errorf("%s gives %d values: more than any function that is called", export, len(typ.Results()))
	}
	i.functions[export] = f
	return f, nil
}

var errClosed = errors.New("the instance is closed")

// Call implements [runtime.Instance].
func (i *instance) Call(ctx context.Context, export string, args ...uint64) (uint64, error) {
	i.running.Lock()
	defer i.running.Unlock()
	if i.closed {
		return 0, errClosed
	}
	f, err := i.find(export)
	if err != nil {
		return 0, err
	}
	if len(args) != len(f.params) {
		return 0, fmt.Errorf("%s has %d parameters", export, len(f.params))
	}
	values := make([]any, len(args))
	for n, kind := range f.params {
		values[n] = fromWord(kind, args[n])
	}
	i.ctx, i.hostErr = ctx, nil
	i.allow(min(i.room.Reserve(i.most), i.most))
	defer func() {
		i.room.Settle(uint64(i.memory.DataSize(i.store)))
		i.ctx = nil
	}()
	result, err := f.Func.Call(i.store, values...)
	if err != nil {
		return 0, i.fault(err)
	}
	return toWord(result), nil
}

// Stack implements [runtime.Instance]. Guests run on the thread's stack.
func (i *instance) Stack() (bytes uint64, grows bool) { return stackBytes, false }

// UsedStack implements [runtime.Instance].
func (i *instance) UsedStack() uint64 { return stackBytes }

// TrimStack implements [runtime.Instance]: it is the thread's.
func (i *instance) TrimStack() {}

// fault tells what wasmtime's error of a call is.
func (i *instance) fault(err error) error {
	f := &runtime.Fault{Kind: runtime.FaultTrap, Err: err}
	if i.hostErr != nil {
		f.Kind, f.Err = runtime.FaultHost, i.hostErr
	} else if trap, ok := errors.AsType[*wasm.Trap](err); ok {
		if code := trap.Code(); code != nil && *code == wasm.StackOverflow {
			f.Kind = runtime.FaultStack
		}
	}
	return f
}

// Read implements [runtime.Memory].
func (i *instance) Read(offset, count uint32) ([]byte, bool) {
	b := i.bytes()
	end := uint64(offset) + uint64(count)
	if end > uint64(len(b)) {
		return nil, false
	}
	return b[offset:end:end], true
}

// Capture implements [runtime.Instance].
func (i *instance) Capture() (runtime.Image, error) {
	image, err := i.room.Capture(i.bytes())
	if err != nil {
		return nil, err
	}
	if err := i.room.Attach(i.bytes(), image); err != nil {
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
	size := uint64(i.memory.DataSize(i.store))
	if m.Size() > size {
		if _, err := i.memory.Grow(i.store, (m.Size()-size)/pageBytes); err != nil {
			return fmt.Errorf("%w: growing a memory to its image: %w", memory.ErrNoRoom, err)
		}
	}
	return i.room.Attach(i.bytes(), m)
}

// Restore implements [runtime.Instance]. A memory that has grown cannot be put
// back, since wasmtime does not shrink it: the next call gets an instance that
// is made from the image.
func (i *instance) Restore() error { return i.room.Restore(uint64(i.memory.DataSize(i.store))) }

// Close implements [runtime.Instance].
func (i *instance) Close(context.Context) error {
	i.running.Lock()
	defer i.running.Unlock()
	if !i.closed {
		i.free()
	}
	return nil
}

func (i *instance) free() {
	i.closed = true
	i.store.Close()
	i.room.Free()
}
