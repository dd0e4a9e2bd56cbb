package hostile

import (
	"slices"

	"github.com/weir-mcp/weir/abi"
	wt "github.com/weir-mcp/weir/internal/wasmtest"
)

// Module is a module of the corpus.
type Module struct {
	Name string
	// Wasm assembles it; some are large.
	Wasm func() []byte
	// Refused is what the refusal to load says, at least; empty where it loads.
	Refused string
	// Ends are the reasons that a call with the payload [Misbehave] may end with;
	// none where it succeeds. Where [abi.ReasonTimeout] is among them it goes on
	// until it is stopped.
	Ends []abi.Reason
}

// How the modules are called, and under what limit some of them are written.
const (
	Interceptor = "guard"
	Event       = abi.ToolsCall
	Misbehave   = `"x"`
	Fine        = `"fine"`
	// Memory is the limit of linear memory, in bytes, that some reach or pass.
	Memory = 16 << 20
)

// Endless says that calls are to be stopped.
func (m Module) Endless() bool { return slices.Contains(m.Ends, abi.ReasonTimeout) }

// Modules is the corpus.
func Modules() []Module {
	return slices.Concat(stubborn(), faults(), floods(), liars(), starts(), importers(), malformed(), bombs(), limits(), many())
}

// The input of a call with a string as its payload begins with a fixed frame;
// this is where the string's first byte is.
var switchAt = uint32(wt.InputAt + len(`{"interceptor":"`+Interceptor+`","event":"`+Event+`","phase":"request","payload":"`))

const answer = `{"result":{"valid":true}}`

// misbehaving finishes a module that lets everything pass and runs the code
// first for [Misbehave]. Its locals are the length of the input and an i32.
func misbehaving(r *wt.Reactor, code ...[]byte) []byte {
	r.Invoke("i", wt.I32(wt.InputAt), wt.Call(r.Input),
		zero, wt.Load8(switchAt), wt.I32(int32(Misbehave[1])), wt.I32Eq, wt.If(code...), r.Answer(answer))
	return r.Bytes()
}

func reactor(imports ...func(m *wt.Module)) *wt.Reactor {
	return wt.NewReactorWith(func(m *wt.Module) {
		for _, f := range imports {
			f(m)
		}
	}, wt.Validator(Interceptor))
}

// imported is the first import that a module has beyond what every reactor has.
const imported = wt.Func(3)

// wasi imports a function of WASI preview 1.
func wasi(name, signature string) func(m *wt.Module) {
	return func(m *wt.Module) { m.Import("wasi_snapshot_preview1", name, signature) }
}

// doing is a module that runs code when it misbehaves.
func doing(name string, ends []abi.Reason, code func(r *wt.Reactor) []byte, imports ...func(m *wt.Module)) Module {
	return Module{Name: name, Ends: ends, Wasm: func() []byte {
		r := reactor(imports...)
		return misbehaving(r, code(r))
	}}
}

// doingOnly is the same of code that needs nothing of the module.
func doingOnly(name string, end abi.Reason, code ...[]byte) Module {
	return doing(name, ends(end), func(*wt.Reactor) []byte { return wt.Seq(code...) })
}

func ends(reasons ...abi.Reason) []abi.Reason { return reasons }

// stubborn are the shapes, called for ever.
func stubborn() (list []Module) {
	for _, shape := range Shapes() {
		m := Module{Name: shape.Name, Ends: ends(abi.ReasonTimeout), Wasm: func() []byte {
			r := reactor()
			r.Memory(4)
			return misbehaving(r, forever(wt.Call(shape.Build(&r.Module, r.GlobalAs(i64, wt.I64(0))))))
		}}
		if shape.Deep {
			m.Ends = append(m.Ends, abi.ReasonStack)
		}
		list = append(list, m)
	}
	return list
}
