package hostile

import (
	"strings"

	"github.com/weir-mcp/weir/abi"
	wt "github.com/weir-mcp/weir/internal/wasmtest"
)

// outOfMemory grows until it is told that there is no more.
var outOfMemory = wt.Loop(wt.I32(16), wt.MemoryGrow, wt.I32(-1), wt.I32Ne, wt.BrIf(0))

// outOfTable does the same with table 0.
var outOfTable = wt.Loop(wt.RefNullFunc, wt.I32(1000), wt.TableGrow0, wt.I32(-1), wt.I32Ne, wt.BrIf(0))

// withTable is a module with a table that has a single element.
func withTable(name string, end abi.Reason, code func(r *wt.Reactor) []byte) Module {
	return doing(name, ends(end), func(r *wt.Reactor) []byte {
		r.Table(1)
		return code(r)
	})
}

// faults are what ends a call from inside.
func faults() []Module {
	f64 := func(op byte) []byte { return append(make([]byte, 0, 9), 0x44, 0, 0, 0, 0, 0, 0, op, 0x7f) }
	exit := func(code int32) func(*wt.Reactor) []byte {
		return func(*wt.Reactor) []byte { return wt.Seq(wt.I32(code), wt.Call(imported)) }
	}
	procExit := wasi("proc_exit", "i:")
	exited := ends(abi.ReasonExit)
	return []Module{
		doingOnly("unreachable", abi.ReasonTrap, wt.Unreachable),
		doingOnly("a division by zero", abi.ReasonTrap, wt.I32(1), zero, i32DivS, wt.Drop),
		doingOnly("a division that overflows", abi.ReasonTrap, wt.I32(-1<<31), wt.I32(-1), i32DivS, wt.Drop),
		doingOnly("a conversion of infinity", abi.ReasonTrap, f64(0xf0), []byte{0xaa}, wt.Drop), // i32.trunc_f64_s
		doingOnly("a load outside memory", abi.ReasonTrap, wt.I32(-1), wt.Load(0), wt.Drop),
		doingOnly("a load whose address overflows", abi.ReasonTrap, wt.I32(-1), wt.Load(1<<32-1), wt.Drop),
		doingOnly("a load half outside memory", abi.ReasonTrap, wt.I32(4*64<<10-3), wt.Load(0), wt.Drop),
		doingOnly("a store outside memory", abi.ReasonTrap, wt.I32(4*64<<10), zero, wt.Store8(0)),
		doingOnly("a fill outside memory", abi.ReasonTrap, wt.I32(1), zero, wt.I32(-1), memoryFill),
		doingOnly("a copy outside memory", abi.ReasonTrap, zero, wt.I32(4*64<<10-1), wt.I32(2), memoryCopy),
		withTable("a call of nothing", abi.ReasonTrap, func(r *wt.Reactor) []byte {
			return wt.Seq(zero, wt.CallIndirect(r.Type("")))
		}),
		withTable("a call of another type", abi.ReasonTrap, func(r *wt.Reactor) []byte {
			r.Elements(0, r.Func("i:i", "", zero))
			return wt.Seq(zero, wt.CallIndirect(r.Type("")))
		}),
		withTable("a call outside the table", abi.ReasonTrap, func(r *wt.Reactor) []byte {
			return wt.Seq(wt.I32(-1), wt.CallIndirect(r.Type("")))
		}),
		withTable("an element outside the table", abi.ReasonTrap, func(*wt.Reactor) []byte {
			return wt.Seq(wt.I32(1), wt.RefNullFunc, wt.TableSet0)
		}),
		withTable("a fill outside the table", abi.ReasonTrap, func(*wt.Reactor) []byte {
			return wt.Seq(zero, wt.RefNullFunc, wt.I32(-1), tableFill)
		}),

		doing("exit 0", exited, exit(0), procExit),
		doing("exit 1", exited, exit(1), procExit),
		doing("exit with the code that wazero has for deadlines", exited, exit(-0x10000001), procExit),
		doing("exit with the code that wazero has for cancellations", exited, exit(-1), procExit),
		doingOnly("a status that is not 0", abi.ReasonGuest, wt.I32(1), wt.Return),
		doingOnly("a negative status", abi.ReasonGuest, wt.I32(-1<<31), wt.Return),

		doingOnly("growth to the limit, then a trap", abi.ReasonMemory, outOfMemory, wt.Unreachable),
		doing("growth to the limit, then an exit", ends(abi.ReasonMemory), func(*wt.Reactor) []byte {
			return wt.Seq(outOfMemory, zero, wt.Call(imported))
		}, procExit),
		doingOnly("growth to the limit, for ever", abi.ReasonTimeout, forever(outOfMemory)),
		doing("growth to the limit, and an answer", nil, func(*wt.Reactor) []byte { return outOfMemory }),
		doingOnly("growth by 4 GiB, then a trap", abi.ReasonMemory, wt.I32(1<<16), wt.MemoryGrow, wt.Drop, wt.Unreachable),
		withTable("a table to the limit, then a trap", abi.ReasonMemory, func(*wt.Reactor) []byte {
			return wt.Seq(outOfTable, wt.Unreachable)
		}),
		withTable("a table to the limit, for ever", abi.ReasonTimeout, func(*wt.Reactor) []byte { return forever(outOfTable) }),
		withTable("a table of 2^32-1 elements, then a trap", abi.ReasonMemory, func(*wt.Reactor) []byte {
			return wt.Seq(wt.RefNullFunc, wt.I32(-1), wt.TableGrow0, wt.Drop, wt.Unreachable)
		}),
		doing("a recursion with a large frame", ends(abi.ReasonStack, abi.ReasonTimeout), func(r *wt.Reactor) []byte {
			self := r.NextFunc()
			var all []byte // locals that are needed after the call
			for i := range uint32(200) {
				all = append(all, wt.Seq(wt.Get(i), wt.I64(1), wt.I64Add, wt.Set(i))...)
			}
			r.Func("", strings.Repeat("I", 200), all, wt.Call(self), all, wt.Call(self))
			return wt.Call(self)
		}),
		doing("a recursion with a thousand parameters", ends(abi.ReasonStack, abi.ReasonTimeout), func(r *wt.Reactor) []byte {
			self := r.NextFunc()
			pass := times(1000, zero)
			r.Func(strings.Repeat("i", 1000)+":", "", pass, wt.Call(self), pass, wt.Call(self))
			return wt.Seq(pass, wt.Call(self))
		}),
	}
}

// floods are what costs the host more than the guest, or would.
func floods() []Module {
	const large = 200 << 10
	late := ends(abi.ReasonTimeout)
	wasiCall := func(args ...int32) func(*wt.Reactor) []byte {
		return func(*wt.Reactor) []byte {
			var code []byte
			for _, a := range args {
				code = append(code, wt.I32(a)...)
			}
			return forever(code, wt.Call(imported), wt.Drop)
		}
	}
	return []Module{
		doing("a flood of logs", late, func(r *wt.Reactor) []byte {
			return forever(wt.I32(3), zero, wt.I32(large), wt.Call(r.Log))
		}),
		doing("a flood of empty logs", late, func(r *wt.Reactor) []byte { return forever(zero, zero, zero, wt.Call(r.Log)) }),
		doing("a flood of logs, and an answer", nil, func(r *wt.Reactor) []byte {
			return times(2000, wt.I32(1), r.Text("a line\nand\x00 a second"), wt.Call(r.Log))
		}),
		doing("a flood of output", late, func(r *wt.Reactor) []byte { return forever(zero, wt.I32(large), wt.Call(r.Output)) }),
		doing("a flood of empty output", late, func(r *wt.Reactor) []byte { return forever(zero, zero, wt.Call(r.Output)) }),
		doing("a flood of input", late, func(r *wt.Reactor) []byte { return forever(wt.I32(wt.InputAt), wt.Call(r.Input)) }),
		doing("a flood of randomness", late, wasiCall(0, large), wasi("random_get", "ii:i")),
		doing("a flood of randomness outside memory", late, wasiCall(-1, -1), wasi("random_get", "ii:i")),
		doing("a flood of stdout", late, wasiCall(1, 2048, 1, 2056), wasi("fd_write", "iiii:i")),
		doing("a write of 2^32-1 parts", late, wasiCall(2, 0, -1, 8), wasi("fd_write", "iiii:i")),
		doing("a flood of reads", late, wasiCall(0, 2048, 1, 2056), wasi("fd_read", "iiii:i")),
		doing("a wait for 2^32-1 things", late, wasiCall(0, 0, -1, 8), wasi("poll_oneoff", "iiii:i")),
		doing("a flood of yields", late, wasiCall(), wasi("sched_yield", ":i")),
		doing("a flood of environments", late, wasiCall(-4, -4), wasi("environ_sizes_get", "ii:i")),
		doing("a flood of clocks", late, func(*wt.Reactor) []byte {
			return forever(wt.I32(1), wt.I64(0), wt.I32(8), wt.Call(imported), wt.Drop)
		}, wasi("clock_time_get", "iIi:i")),
	}
}

// liars hand over what is no answer.
func liars() []Module {
	bad := ends(abi.ReasonBadOutput)
	hands := func(ptr, size int32) func(r *wt.Reactor) []byte {
		return func(r *wt.Reactor) []byte { return wt.Seq(wt.I32(ptr), wt.I32(size), wt.Call(r.Output)) }
	}
	says := func(name, text string, ends ...abi.Reason) Module {
		return doing(name, ends, func(r *wt.Reactor) []byte { return wt.Seq(r.Answer(text), wt.Return) })
	}
	return []Module{
		doing("output outside memory", bad, hands(4*64<<10-1, 2)),
		doing("output whose address and length overflow", bad, hands(-16, 32)),
		doing("output of 1 GiB", bad, hands(0, 1<<30)),
		doing("output of 4 GiB", bad, hands(0, -1)),
		doing("output over the limit", ends(abi.ReasonOutputTooLarge), func(r *wt.Reactor) []byte {
			return wt.Seq(wt.I32(80), wt.MemoryGrow, wt.Drop, hands(0, 4<<20+64<<10+1)(r))
		}),
		doingOnly("no output", abi.ReasonBadOutput, zero, wt.Return),
		says("empty output", "", abi.ReasonBadOutput),
		says("output that is not JSON", "no", abi.ReasonBadOutput),
		says("output that is two documents", answer+answer, abi.ReasonBadOutput),
		says("output that is not UTF-8", "{\"result\":{\"valid\":true,\"info\":\"\xff\"}}", abi.ReasonBadOutput),
		says("output that says one thing twice", `{"result":{"valid":true,"valid":false}}`, abi.ReasonBadOutput),
		says("output that is nested deep", `{"result":{"valid":true,"info":`+strings.Repeat("[", 20_000)+strings.Repeat("]", 20_000)+`}}`, abi.ReasonBadOutput),
		says("a result of null", `{"result":null}`, abi.ReasonBadOutput),
		says("a result of another type", `{"result":{"type":"mutation","modified":false}}`, abi.ReasonBadOutput),
		says("a result of another interceptor", `{"result":{"interceptor":"other","valid":true}}`, abi.ReasonBadOutput),
		says("an error in the guest's own words", `{"error":{"message":"a\nb\u001b[31m"}}`, abi.ReasonGuest),
		doing("input to an address outside memory", ends(abi.ReasonTrap), func(r *wt.Reactor) []byte {
			return wt.Seq(wt.I32(-1), wt.Call(r.Input))
		}),
		doing("a log from outside memory", ends(abi.ReasonTrap), func(r *wt.Reactor) []byte {
			return wt.Seq(wt.I32(1), wt.I32(-1), wt.I32(1), wt.Call(r.Log))
		}),
	}
}
