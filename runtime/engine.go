package runtime

import (
	"context"

	"github.com/weir-mcp/weir/runtime/memory"
	"github.com/weir-mcp/weir/runtime/meter"
)

// Engine compiles and runs WebAssembly. The runtime decides what may run and
// for how long; an engine only does it. Every engine links the functions of
// [HostFuncs], so that a module cannot tell engines apart. What it runs has been
// rewritten by package meter: it stops itself, by an error of the host function
// that its own code calls, so an engine needs no way to stop a guest.
//
// An engine is safe for concurrent use. What it does with a hostile module is
// caught by the runtime as far as Go can: a panic of any of these methods
// counts as a trap.
type Engine interface {
	// Name says what the engine is and how it runs code, for people.
	Name() string
	// Reset is how [Instance.Restore] works here, as the engine has tested;
	// [memory.Fresh] when it does not.
	Reset() memory.Way
	// Compile compiles a module that package meter has accepted and rewritten.
	// Engines need not honour ctx, and wazero does not.
	Compile(ctx context.Context, wasm []byte) (Code, error)
	// Close frees everything. Nothing that came from the engine may be in use.
	Close(ctx context.Context) error
}

// Keeper is an [Engine] whose machine code can be kept and used by another
// process ([WithCache]).
type Keeper interface {
	Engine
	// CodeKey names all that the code of a module depends on besides the
	// module: the engine, its version and settings, the processor and what it
	// can do. It is empty when code cannot be kept here.
	CodeKey() string
	// CompileToKeep is Compile, and gives what CompileKept takes: nil when
	// there is nothing to keep.
	CompileToKeep(ctx context.Context, wasm []byte) (code Code, kept []byte, err error)
	// CompileKept makes code of what CompileToKeep gave for the same bytes
	// under the same CodeKey. The caller vouches for it: it is machine code
	// that runs outside of any sandbox.
	CompileKept(ctx context.Context, wasm, kept []byte) (Code, error)
}

// Code is a compiled module. It is safe for concurrent use.
type Code interface {
	// Instantiate makes an instance. Its time is bounded by the module's size
	// and memory: no code of the guest runs, since the rewriting has made the
	// start function an export. The error is one of [memory.ErrNoRoom] when
	// there is no room for it.
	Instantiate(ctx context.Context, room Room) (Instance, error)
	// Close frees the code; none of its instances may be in use.
	Close(ctx context.Context) error
}

// Room is what an instance gets for its linear memory.
type Room struct {
	// Pages is the most pages of 64 KiB that the guest may have.
	Pages uint32
	// Account is charged with what it has.
	Account *memory.Account
	// Image is what the memory begins as, nil when as the module says. It is
	// one that an instance of the same code has captured.
	Image Image
}

// Image is the frozen memory of an instance. It is safe for concurrent use.
type Image interface {
	// Size is its size in bytes.
	Size() uint64
	// Free gives it up; instances that began as it may still be in use.
	Free()
}

// Instance is one instance of a module. It serves one call at a time.
type Instance interface {
	// Call calls the exported function, with parameters and result encoded as
	// the engine-neutral 64-bit words of [HostFunc]. It returns 0 when the
	// function has no result. What the guest does wrong is a [*Fault], after
	// which the instance is good for Close only.
	Call(ctx context.Context, export string, args ...uint64) (uint64, error)
	// Stack is how many bytes of the host's memory the stack takes of the call
	// that runs, or that ran last: what it has grown to, not what of it is in
	// use. Where it does not grow, it is the most that a call may take: the
	// system gives what is touched. It may be called during a call, by a host
	// function.
	Stack() (bytes uint64, grows bool)
	// UsedStack is how much of a stack that does not grow the call that runs has
	// come to at most, in bytes, up to where its last frame begins, which has
	// less than 1 MiB. It may take longer than Stack.
	UsedStack() uint64
	// TrimStack gives back what calls have left of the stack. It is called
	// after those that may have left much, and not during one.
	TrimStack()
	// Global finds an exported mutable global of a number type; nil when there
	// is none.
	Global(export string) Global
	// Capture freezes the memory as it is; Restore puts it back to this from
	// then on. It is not to be called during a call.
	Capture() (Image, error)
	// Restore puts the memory back, size included, to the image that was
	// captured from the instance, or that it was made from. After an error the
	// instance is good for Close only.
	Restore() error
	// Close frees the instance. When a call runs, it waits for its end.
	Close(ctx context.Context) error
}

// Global is a global variable of an instance, its value encoded as in
// [HostFunc].
type Global interface {
	Get() uint64
	Set(value uint64)
}

// Memory is the linear memory of the instance that calls a host function.
type Memory interface {
	// Read returns a view of the bytes [offset, offset+count), which writes go
	// through to, or false when they are not all inside the memory. The view
	// is good until the host function returns.
	Read(offset, count uint32) ([]byte, bool)
}

// HostFunc is a function that modules can import.
type HostFunc struct {
	Module, Name string
	Type         meter.FuncType
	// Call finds its parameters in words, one each, and leaves its result, if
	// any, in words[0]; an i32 is zero-extended. An error ends the guest's call
	// and comes back as the Err of a [*Fault]. The context is the one given to
	// Instantiate or Call.
	Call func(ctx context.Context, memory Memory, words []uint64) error
}

// FaultKind is what ended a guest.
type FaultKind uint8

// The kinds of faults.
const (
	// FaultTrap is a trap, or a panic inside the engine.
	FaultTrap FaultKind = iota
	// FaultStack is an overflow of the engine's stack.
	FaultStack
	// FaultHost is an error of a host function.
	FaultHost
)

// Fault says why an engine ended a guest. Its text may hold a guest's own
// words and is for the operator's log.
type Fault struct {
	Kind FaultKind
	Err  error
}

// Error describes the fault.
func (f *Fault) Error() string { return f.Err.Error() }

// Unwrap returns the cause.
func (f *Fault) Unwrap() error { return f.Err }
