package hostile

import (
	"strings"

	"github.com/weir-mcp/weir/abi"
	wt "github.com/weir-mcp/weir/internal/wasmtest"
)

// starts are modules that fail, or try to, before and beside their calls.
func starts() (list []Module) {
	refused := func(name, says string, f func(r *wt.Reactor), imports ...func(m *wt.Module)) {
		list = append(list, Module{Name: name, Refused: says, Wasm: func() []byte {
			r := reactor(imports...)
			f(r)
			return misbehaving(r)
		}})
	}
	procExit := wasi("proc_exit", "i:")
	stages := map[string]func(r *wt.Reactor, code []byte){
		"the start function": func(r *wt.Reactor, code []byte) { r.Start(r.Func("", "", code)) },
		"_initialize":        func(r *wt.Reactor, code []byte) { r.Export(abi.ExportInitialize, r.Func("", "", code)) },
	}
	for _, stage := range []string{"the start function", "_initialize"} {
		in := stages[stage]
		refused(stage+" traps", stage+" failed (trap)", func(r *wt.Reactor) { in(r, wt.Unreachable) })
		refused(stage+" never ends", stage+" did not end within", func(r *wt.Reactor) { in(r, forever()) })
		refused(stage+" recurses", stage, func(r *wt.Reactor) { in(r, wt.Call(r.NextFunc())) })
		refused(stage+" exits", stage+" failed (exit)", func(r *wt.Reactor) { in(r, wt.Seq(zero, wt.Call(imported))) }, procExit)
		refused(stage+" takes all memory and traps", stage+" failed (memory)", func(r *wt.Reactor) { in(r, wt.Seq(outOfMemory, wt.Unreachable)) })
		refused(stage+" fills all memory for ever", stage+" did not end within", func(r *wt.Reactor) {
			in(r, wt.Seq(outOfMemory, forever(zero, zero, allMemory, memoryFill)))
		})
		list = append(list, Module{Name: stage + " tries to answer", Wasm: func() []byte {
			r := reactor()
			in(r, wt.Seq(r.Text(`{"interceptors":[]}`), wt.Call(r.Output), zero, wt.Call(r.Input)))
			return misbehaving(r)
		}})
	}

	describes := func(name, says string, code func(r *wt.Reactor) []byte, imports ...func(m *wt.Module)) {
		list = append(list, Module{Name: name, Refused: says, Wasm: func() []byte {
			r := reactor(imports...)
			// The bare parts: a Reactor describes well.
			r.Memory(4)
			r.Export(abi.ExportMarker, r.Func("", ""))
			r.Export(abi.ExportDescribe, r.Func(":i", "", code(r)))
			r.Export(abi.ExportInvoke, r.Func("i:i", "", zero))
			return r.Bytes()
		}})
	}
	only := func(code ...[]byte) func(*wt.Reactor) []byte {
		return func(*wt.Reactor) []byte { return wt.Seq(code...) }
	}
	text := func(text string) func(*wt.Reactor) []byte {
		return func(r *wt.Reactor) []byte { return r.Answer(text) }
	}
	d := wt.Validator(Interceptor)
	one := string(d.AppendJSON(nil))
	describes("describe traps", "weir_describe failed (trap)", only(wt.Unreachable))
	describes("describe never ends", "weir_describe did not end within", only(forever(), wt.Unreachable))
	describes("describe exits", "weir_describe failed (exit)", only(zero, wt.Call(imported), zero), procExit)
	describes("describe returns 3", "weir_describe failed (guest)", only(wt.I32(3)))
	describes("describe lies about its length", "weir_describe failed (bad_output)", func(r *wt.Reactor) []byte {
		return wt.Seq(wt.I32(-1), wt.I32(-1), wt.Call(r.Output), zero)
	})
	describes("describe floods", "weir_describe did not end within", func(r *wt.Reactor) []byte {
		return wt.Seq(forever(wt.I32(3), zero, wt.I32(100<<10), wt.Call(r.Log), zero, wt.I32(100<<10), wt.Call(r.Output)), wt.Unreachable)
	})
	describes("describe says nothing", "describe handed over nothing", only(zero))
	describes("describe says no JSON", "bad JSON", text("interceptors"))
	describes("describe says a thing twice", "bad JSON", text(`{"interceptors":[],"interceptors":[`+one+`]}`))
	describes("describe says null", "something else than descriptors", text(`{"interceptors":null}`))
	describes("describe has no interceptor", "registers no interceptor", text(`{"interceptors":[]}`))
	describes("describe has two of one name", "two interceptors named", text(`{"interceptors":[`+one+`,`+one+`]}`))
	describes("describe has a bad one", "bad descriptor", text(`{"interceptors":[`+one+`,{"name":"b","type":"mutation","hooks":[],"priorityHint":1.5}]}`))
	describes("describe has another page", "nextCursor", text(`{"interceptors":[`+one+`],"nextCursor":"2"}`))
	describes("describe is nested deep", "bad JSON", text(`{"interceptors":`+strings.Repeat("[", 50_000)+strings.Repeat("]", 50_000)+`}`))

	// What fails beside calls costs the module nothing, or the call only.
	beside := func(name string, ends []abi.Reason, export, signature string, code ...[]byte) {
		list = append(list, Module{Name: name, Ends: ends, Wasm: func() []byte {
			r := reactor()
			r.Export(export, r.Func(signature, "", code...))
			return misbehaving(r, wt.Unreachable)
		}})
	}
	trap := ends(abi.ReasonTrap)
	beside("the warm-up traps", trap, abi.ExportWarmup, ":i", wt.Unreachable)
	beside("the warm-up returns 3", trap, abi.ExportWarmup, ":i", wt.I32(3))
	beside("the warm-up takes all memory", trap, abi.ExportWarmup, ":i", outOfMemory, zero)
	beside("the warm-up recurses", trap, abi.ExportWarmup, ":i", wt.Call(imported)) // itself
	list = append(list,
		Module{Name: "reseeding traps", Ends: trap, Wasm: func() []byte { return reseeding(wt.Unreachable) }},
		Module{Name: "reseeding never ends", Ends: ends(abi.ReasonTimeout), Wasm: func() []byte { return reseeding(forever()) }},
	)
	return list
}

// reseeding is a module that misbehaves before it is called: in weir_reseed, where
// it has a look at the input.
func reseeding(code []byte) []byte {
	r := reactor()
	r.Export(abi.ExportReseed, r.Func("I:", "", wt.I32(wt.InputAt), wt.Call(r.Input),
		zero, wt.Load8(switchAt), wt.I32(int32(Misbehave[1])), wt.I32Eq, wt.If(code)))
	return misbehaving(r)
}

// importers ask for what they do not get, or say that it is something else.
func importers() (list []Module) {
	refused := func(name, says string, imports func(m *wt.Module)) {
		list = append(list, Module{Name: name, Refused: says, Wasm: func() []byte {
			r := reactor(imports)
			return misbehaving(r)
		}})
	}
	function := func(module, name, signature string) func(m *wt.Module) {
		return func(m *wt.Module) { m.Import(module, name, signature) }
	}
	refused("an import that does not exist", "weir.exec does not exist", function("weir", "exec", "ii:i"))
	refused("an import of a module that does not exist", "env.system is of a module that weir does not have", function("env", "system", "i:i"))
	refused("an import of another type", "weir.output has the type (i32, i32, i32)", function("weir", "output", "iii:"))
	refused("an import that returns more", "fd_write has the type", function("wasi_snapshot_preview1", "fd_write", "iiii:ii"))
	refused("a file", "wasi_snapshot_preview1.path_exec does not exist", function("wasi_snapshot_preview1", "path_exec", ""))
	refused("a grant that was not given", "weir.kv_get needs the grant kv", function("weir", "kv_get", "iiii:i"))
	refused("a grant that nobody gives yet", "weir.http needs the grant http", function("weir", "http", "iiii:i"))
	refused("a name that breaks lines", `"a\nb\x1b[31m"`, function("weir", "a\nb\x1b[31m", ""))
	refused("a name of 100,000 bytes", "does not have", function(strings.Repeat("x", 100_000), "f", ""))
	refused("a second memory, imported", "multi-memory", func(m *wt.Module) { m.ImportOther("weir", "memory", 2, 0, 1) })
	refused("an imported table", "is a table", func(m *wt.Module) { m.ImportOther("weir", "table", 1, 0x70, 0, 1) })
	refused("an imported global", "is a global", func(m *wt.Module) { m.ImportOther("weir", "fuel", 3, i64, 1) })
	refused("an import of the meter", "weir:meter", function("weir:meter", "exhausted", "I:I"))
	for _, name := range []string{"fuel", "refused", "start", "global:0", ""} {
		list = append(list, Module{Name: "an export named weir:" + name, Refused: `rename "weir:` + name + `"`, Wasm: func() []byte {
			r := reactor()
			r.ExportAs("weir:"+name, 3, r.Global(0))
			return misbehaving(r)
		}})
	}
	exports := func(name, says string, f func(m *wt.Module)) {
		list = append(list, Module{Name: name, Refused: says, Wasm: func() []byte {
			m := &wt.Module{}
			f(m)
			return m.Bytes()
		}})
	}
	exports("nothing at all", "exports neither", func(*wt.Module) {})
	exports("another version of the ABI", "ABI version 2", func(m *wt.Module) { m.Export("weir_abi_v2", m.Func("", "")) })
	exports("exports of other kinds", "weir_invoke is a global", func(m *wt.Module) {
		m.Memory(1)
		m.Export("weir_abi_v1", m.Func("", ""))
		m.Export("weir_describe", m.Func(":i", "", zero))
		m.ExportAs("weir_invoke", 3, m.Global(0))
	})
	exports("no memory", "memory is missing", func(m *wt.Module) {
		m.Export("weir_abi_v1", m.Func("", ""))
		m.Export("weir_describe", m.Func(":i", "", zero))
		m.Export("weir_invoke", m.Func("i:i", "", zero))
	})
	exports("an export twice", "malformed", func(m *wt.Module) {
		m.Memory(1)
		m.ExportAs("memory", 2, 0)
	})

	invalid := func(name string, f func(r *wt.Reactor)) {
		list = append(list, Module{Name: name, Refused: "the engine refused the module", Wasm: func() []byte {
			r := reactor()
			f(r)
			return misbehaving(r)
		}})
	}
	invalid("code that leaves the wrong type", func(r *wt.Reactor) { r.Func(":i", "", wt.I64(0)) })
	invalid("code that leaves nothing", func(r *wt.Reactor) { r.Func(":i", "") })
	invalid("code that takes from an empty stack", func(r *wt.Reactor) { r.Func("", "", wt.Drop) })
	invalid("a branch with the wrong values", func(r *wt.Reactor) { r.Func(":i", "", wt.Br(0)) })
	index := func(name string, says string, code []byte) {
		list = append(list, Module{Name: name, Refused: says, Wasm: func() []byte {
			r := reactor()
			r.Func("", "", code)
			return misbehaving(r)
		}})
	}
	// Indexes that would be valid once the module is rewritten: of the fuel, and
	// of the function that is asked for more.
	index("the index of the fuel", "unknown global 0", wt.Seq(wt.I64(1<<40), wt.GlobalSet(0)))
	index("the index of the meter's function", "unknown function 7", wt.Seq(wt.I64(0), wt.Call(7), wt.Drop))
	return list
}
