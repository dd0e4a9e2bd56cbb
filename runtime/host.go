package runtime

import (
	"context"
	"log/slog"
	"slices"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/runtime/meter"
)

// HostFuncs returns every function that a module can import: those of module
// "weir" (abi.md) and WASI preview 1, confined as abi.md says, and the one that
// package meter has every module import. They are for an [Engine] to link.
func HostFuncs() []HostFunc { return append(guestFuncs(), meterFunc) }

// guestFuncs are those of them that a module may import by itself.
func guestFuncs() []HostFunc { return slices.Concat(weirFuncs, kvFuncs, wasiFuncs) }

var meterFunc = HostFunc{
	Module: meter.ImportModule, Name: meter.ImportName, Type: signature("I", "I"), Call: hostExhausted,
}

var weirFuncs = []HostFunc{
	{Module: abi.ImportModule, Name: abi.ImportInput, Type: signature("i", ""), Call: hostInput},
	{Module: abi.ImportModule, Name: abi.ImportOutput, Type: signature("ii", ""), Call: hostOutput},
	{Module: abi.ImportModule, Name: abi.ImportLog, Type: signature("iii", ""), Call: hostLog},
}

// signature makes a type of letters: i is an i32, I an i64.
func signature(params, results string) meter.FuncType {
	types := func(letters string) (list []meter.ValueType) {
		for _, letter := range letters {
			if letter == 'I' {
				list = append(list, meter.I64)
			} else {
				list = append(list, meter.I32)
			}
		}
		return list
	}
	return meter.FuncType{Params: types(params), Results: types(results)}
}

// hostInput is weir.input(ptr).
func hostInput(ctx context.Context, memory Memory, words []uint64) error {
	c := callOf(ctx)
	if len(c.input) == 0 || c.command {
		return nil
	}
	to, ok := memory.Read(uint32(words[0]), uint32(len(c.input)))
	if !ok {
		return failuref(abi.ReasonTrap, "input(%d): %d bytes do not fit into memory there", uint32(words[0]), len(c.input))
	}
	copy(to, c.input)
	c.tank.charge(len(to))
	return nil
}

// hostOutput is weir.output(ptr, len). The answer is copied at once: the guest
// may reuse its memory as soon as this returns.
func hostOutput(ctx context.Context, memory Memory, words []uint64) error {
	c := callOf(ctx)
	ptr, size := uint32(words[0]), uint32(words[1])
	from, ok := memory.Read(ptr, size)
	if !ok {
		return failuref(abi.ReasonBadOutput, "output(%d, %d) is not all inside memory", ptr, size)
	}
	if int64(size) > c.maxAnswer() {
		return failuref(abi.ReasonOutputTooLarge, "output of %d bytes, the limit is %d", size, c.maxAnswer())
	}
	c.output, c.hasOutput = append(c.output[:0], from...), true
	c.tank.charge(len(from))
	return nil
}

// guestLevels are the levels of weir.log.
var guestLevels = [...]slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}

// hostLog is weir.log(level, ptr, len). A level that does not exist counts as
// the nearest one.
func hostLog(ctx context.Context, memory Memory, words []uint64) error {
	c := callOf(ctx)
	level := guestLevels[max(0, min(int(int32(words[0])), len(guestLevels)-1))]
	text, ok := memory.Read(uint32(words[1]), uint32(words[2]))
	if !ok {
		return failuref(abi.ReasonTrap, "log(%d, %d, %d) is not all inside memory", int32(words[0]), uint32(words[1]), uint32(words[2]))
	}
	c.tank.charge(c.log.message(ctx, level, text))
	return nil
}
