package runtime

import (
	"context"
	"fmt"

	"github.com/weir-mcp/weir/runtime/meter"
)

// Engine compiles and runs WebAssembly. The runtime decides what may run and
// for how long; an engine only does it. Every engine links the functions of
// [HostFuncs], so that a module cannot tell engines apart.
//
// An engine is safe for concurrent use. What it does with a hostile module is
// caught by the runtime as far as Go can: a panic of any of these methods
// counts as a trap.
type Engine interface {
	// Name says what the engine is and how it runs code, for people.
	Name() string
	// Compile compiles a module that package meter has accepted, or finds it
	// in a cache. Engines need not honour ctx, and wazero does not.
	Compile(ctx context.Context, wasm []byte) (Code, error)
	// Close frees everything. Nothing that came from the engine may be in use.
	Close(ctx context.Context) error
}

// Code is a compiled module. It is safe for concurrent use.
type Code interface {
	// Instantiate makes an instance and runs the module's start section. The
	// instance's memory never has more than maxPages pages of 64 KiB. What the
	// guest does wrong is a [*Fault].
	Instantiate(ctx context.Context, maxPages uint32) (Instance, error)
	// Close frees the code; none of its instances may be in use.
	Close(ctx context.Context) error
}

// Instance is one instance of a module. It serves one call at a time.
type Instance interface {
	// Call calls the exported function, with parameters and result encoded as
	// the engine-neutral 64-bit words of [HostFunc]. It returns 0 when the
	// function has no result. It returns soon after ctx ends. What the guest
	// does wrong is a [*Fault], after which the instance is good for Close only.
	Call(ctx context.Context, export string, args ...uint64) (uint64, error)
	// Close frees the instance.
	Close(ctx context.Context) error
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
	// FaultInterrupted is the end of the context.
	FaultInterrupted
	// FaultHost is an error of a host function.
	FaultHost
)

// Fault says why an engine ended a guest. Its text may hold a guest's own
// words and is for the operator's log.
type Fault struct {
	Kind FaultKind
	// GrowthRefused is set when the guest was refused more memory since its
	// instance was made: what it then died of is likely a consequence.
	GrowthRefused bool
	Err           error
}

// Error describes the fault.
func (f *Fault) Error() string {
	if f.GrowthRefused {
		return fmt.Sprintf("%v (after a refused growth of memory)", f.Err)
	}
	return f.Err.Error()
}

// Unwrap returns the cause.
func (f *Fault) Unwrap() error { return f.Err }
