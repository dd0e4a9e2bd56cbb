package wazero

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tetratelabs/wazero"

	"github.com/weir-mcp/weir/runtime"
	"github.com/weir-mcp/weir/runtime/memory"
)

// probeModule has a memory of 1 to 3 pages and exports it with
//
//	grow(pages) -> pages before, or -1
//	swap(address, byte) -> byte before
//	deep(n) -> n, by so many calls of itself
var probeModule = []byte("\x00asm\x01\x00\x00\x00" +
	"\x01\x0c\x02\x60\x01\x7f\x01\x7f\x60\x02\x7f\x7f\x01\x7f" + // types: (i32) -> i32, (i32, i32) -> i32
	"\x03\x04\x03\x00\x01\x00" + // functions
	"\x05\x04\x01\x01\x01\x03" + // memory
	"\x07\x1f\x04\x06memory\x02\x00\x04grow\x00\x00\x04swap\x00\x01\x04deep\x00\x02" + // exports
	"\x0a\x2d\x03" + // code
	"\x06\x00\x20\x00\x40\x00\x0b" +
	"\x0e\x00\x20\x00\x2d\x00\x00\x20\x00\x20\x01\x3a\x00\x00\x0b" +
	"\x15\x00\x20\x00\x45\x04\x7f\x41\x00\x05\x41\x01\x20\x00\x41\x01\x6b\x10\x02\x6a\x0b\x0b")

// probe finds out what wazero does not tell: whether it compiles or interprets
// here, by what its functions are, and whether an instance can be put back, by
// trying. Where it cannot, instances are made fresh.
func (e *Engine) probe(ctx context.Context, way memory.Way) error {
	if way == memory.Auto {
		way = memory.Best()
		if err := memory.WhyNotBetter(); err != nil {
			e.logger.Debug("instances are put back in a slower way", "way", way, "cause", err)
		}
	}
	e.way = way
	r := &linked{wazero.NewRuntimeWithConfig(ctx, e.config)}
	defer r.Close(ctx)
	compiled, err := r.CompileModule(ctx, probeModule)
	if err != nil {
		return err
	}
	made, err := newCode(e, r, compiled).Instantiate(ctx, runtime.Room{Pages: 2})
	if err != nil {
		return err
	}
	defer made.Close(ctx)
	i := made.(*instance)
	e.name = nameOf("compiler")
	if f, err := i.find("grow"); err != nil {
		return err
	} else if strings.Contains(fmt.Sprintf("%T", f.Function), "interpreter") {
		e.name, e.interprets = nameOf("interpreter"), true
	}
	e.tryStack(ctx, i)
	if way == memory.Fresh {
		return nil
	}
	if err := tryRestore(ctx, i); err != nil {
		e.way = memory.Fresh
		e.logger.Warn("instances cannot be put back after a call: each call gets a fresh one", "cause", err)
	}
	return nil
}

// tryStack finds out whether the functions of instances can be given stacks of
// their full size, by going deep on one.
func (e *Engine) tryStack(ctx context.Context, i *instance) {
	if e.interprets {
		return // it has no such stacks
	}
	const calls = 10_000 // more than wazero's first stacks have room for
	i.layout = stackLayoutOf(i.module.ExportedFunction("deep"))
	result, err := i.Call(ctx, "deep", calls)
	if err == nil && result == calls && i.layout != nil && i.layout.has(i.functions["deep"].Function, i.stack) {
		e.layout = i.layout
	} else {
		e.logger.Debug("guests run on stacks that grow by copying", "cause", errors.Join(errStack, err))
	}
}

// tryRestore grows an instance and writes to it, puts it back, and looks for
// what was written, twice.
func tryRestore(ctx context.Context, i *instance) error {
	var failed error
	call := func(export string, args ...uint64) uint32 {
		result, err := i.Call(ctx, export, args...)
		failed = errors.Join(failed, err)
		return uint32(result)
	}
	call("swap", 5, 7)
	image, err := i.Capture()
	if err != nil {
		return err
	}
	defer image.Free()
	for range 2 {
		if call("swap", 5, 8) != 7 || call("grow", 1) != 1 || call("swap", pageBytes+9, 9) != 0 {
			return errors.Join(errors.New("a memory is not what it was"), failed)
		}
		if call("grow", 1) != 1<<32-1 {
			return errors.Join(errors.New("a memory grows past its limit"), failed)
		}
		if err := i.Restore(); err != nil {
			return err
		}
		if pages := call("grow", 0); pages != 1 {
			return errors.Join(fmt.Errorf("a memory of 1 page has %d", pages), failed)
		}
	}
	// What was taken back must be out of reach. This comes last: it traps.
	if failed == nil {
		if _, err := i.Call(ctx, "swap", pageBytes+9, 0); err == nil {
			return errors.New("a page that was taken back can still be reached")
		}
	}
	return failed
}
