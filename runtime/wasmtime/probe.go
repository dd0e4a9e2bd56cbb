//go:build wasmtime

package wasmtime

import (
	"context"
	"errors"
	"fmt"

	wasm "github.com/bytecodealliance/wasmtime-go/v44"

	"github.com/weir-mcp/weir/runtime"
	"github.com/weir-mcp/weir/runtime/memory"
)

// probeModule has a memory of 2 to 3 pages, with a byte of data, and exports it
// with
//
//	grow(pages) -> pages before, or -1
//	swap(address, byte) -> byte before
var probeModule = []byte("\x00asm\x01\x00\x00\x00" +
	"\x01\x0c\x02\x60\x01\x7f\x01\x7f\x60\x02\x7f\x7f\x01\x7f" + // types: (i32) -> i32, (i32, i32) -> i32
	"\x03\x03\x02\x00\x01" + // functions
	"\x05\x04\x01\x01\x02\x04" + // memory
	"\x07\x18\x03\x06memory\x02\x00\x04grow\x00\x00\x04swap\x00\x01" + // exports
	"\x0a\x17\x02" + // code
	"\x06\x00\x20\x00\x40\x00\x0b" +
	"\x0e\x00\x20\x00\x2d\x00\x00\x20\x00\x20\x01\x3a\x00\x00\x0b" +
	"\x0b\x07\x01\x00\x41\x07\x0b\x01\x2a") // data: 42 at 7

// probe finds out whether an instance can be put back, by trying. Its memory is
// wasmtime's own, over which images are mapped: that is promised nowhere. Where
// it does not work, the bytes are compared and copied, and at last each call
// gets a fresh instance.
func (e *Engine) probe(ctx context.Context, way memory.Way) error {
	if way == memory.Auto {
		way = memory.Best()
	}
	module, err := wasm.NewModule(e.engine, probeModule)
	if err != nil {
		return err
	}
	code, err := newCode(e, module)
	if err != nil {
		return err
	}
	defer code.Close(ctx)
	for ; way < memory.Fresh; way++ {
		e.way = way
		err := tryRestore(ctx, code)
		if err == nil {
			return nil
		}
		e.logger.Warn("a way to put instances back does not work here", "way", way, "cause", err)
	}
	e.way = memory.Fresh
	return nil
}

// tryRestore writes to an instance, captures it, writes again, puts it back and
// looks for what was written; then it does the same with an instance made from
// the image, and grows it.
func tryRestore(ctx context.Context, code runtime.Code) (failed error) {
	room := runtime.Room{Pages: 3}
	first, err := code.Instantiate(ctx, room)
	if err != nil {
		return err
	}
	defer first.Close(ctx)
	call := func(i runtime.Instance, want uint32, export string, args ...uint64) {
		got, err := i.Call(ctx, export, args...)
		if failed = errors.Join(failed, err); err == nil && uint32(got) != want {
			failed = errors.Join(failed, fmt.Errorf("%s%v gives %d instead of %d", export, args, uint32(got), want))
		}
	}
	const last = 2*pageBytes - 1
	call(first, 42, "swap", 7, 43)
	call(first, 0, "swap", last, 1)
	image, err := first.Capture()
	if err != nil {
		return err
	}
	defer image.Free()
	room.Image = image
	second, err := code.Instantiate(ctx, room)
	if err != nil {
		return err
	}
	defer second.Close(ctx)
	for _, i := range []runtime.Instance{first, second} {
		for range 3 {
			call(i, 43, "swap", 7, 0)
			call(i, 1, "swap", last, 9)
			call(i, 0, "swap", pageBytes, 9)
			if err := i.Restore(); err != nil {
				return err
			}
		}
		call(i, 2, "grow", 1)
		call(i, 1<<32-1, "grow", 1)
		call(i, 43, "swap", 7, 0)
		call(i, 0, "swap", last+1, 9)
		if i.Restore() == nil {
			return errors.New("a memory that has grown is put back")
		}
	}
	return failed
}
