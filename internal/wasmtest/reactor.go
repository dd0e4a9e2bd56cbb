package wasmtest

import "github.com/weir-mcp/weir/abi"

// InputAt is where a [Reactor] takes its input: the beginning of its second
// page, so that there is room for it after what the test puts into memory.
const InputAt = 64 << 10

// Reactor is an interceptor module being assembled. Input, Output and Log are
// its imports; further ones go in before the first function, by
// [NewReactorWith].
type Reactor struct {
	Module
	Input, Output, Log Func

	describe string
	next     int32 // free memory for texts
}

// NewReactor begins a reactor module that describes the given interceptors.
func NewReactor(interceptors ...abi.Descriptor) *Reactor {
	return NewReactorWith(nil, interceptors...)
}

// NewReactorWith does the same with more imports, which the function adds.
func NewReactorWith(imports func(m *Module), interceptors ...abi.Descriptor) *Reactor {
	r := &Reactor{next: 1024}
	r.Input = r.Import(abi.ImportModule, abi.ImportInput, "i")
	r.Output = r.Import(abi.ImportModule, abi.ImportOutput, "ii")
	r.Log = r.Import(abi.ImportModule, abi.ImportLog, "iii")
	if imports != nil {
		imports(&r.Module)
	}
	r.describe = string(abi.AppendPage(nil, interceptors, ""))
	return r
}

// Text puts a text into memory and returns the instructions that push its
// address and its length.
func (r *Reactor) Text(s string) []byte {
	at := r.next
	r.next += int32(len(s)+15) &^ 15
	r.Data(at, []byte(s))
	return Seq(I32(at), I32(int32(len(s))))
}

// Answer returns instructions that hand over an answer and push 0, "ok".
func (r *Reactor) Answer(json string) []byte {
	return Seq(r.Text(json), Call(r.Output), I32(0))
}

// Describe replaces what the module describes, which need not be descriptors.
func (r *Reactor) Describe(json string) { r.describe = json }

// Invoke adds weir_invoke, of the given instructions. Its local 0 is the length
// of the input, the other locals are as in [Module.Func]. It also adds the rest
// that a reactor needs, unless the test has added it: a memory of 4 pages, the
// marker and weir_describe.
func (r *Reactor) Invoke(locals string, body ...[]byte) {
	r.Export(abi.ExportInvoke, r.Func("i:i", locals, body...))
	if r.memory == nil {
		r.Memory(4)
	}
	r.Export(abi.ExportMarker, r.Func("", ""))
	r.Export(abi.ExportDescribe, r.Func(":i", "", r.Answer(r.describe)))
}

// Validator is a validation interceptor that hooks requests of tools/call.
func Validator(name string) abi.Descriptor { return interceptor(name, abi.Validation) }

// Mutator is a mutation likewise.
func Mutator(name string) abi.Descriptor { return interceptor(name, abi.Mutation) }

func interceptor(name string, typ abi.Type) abi.Descriptor {
	return abi.Descriptor{Name: name, Type: typ, Hooks: abi.Hooks{{Events: []string{abi.ToolsCall}, Phase: abi.Request}}}
}

// Allowing is a whole module: validators of the given names that pass
// everything.
func Allowing(names ...string) []byte {
	interceptors := make([]abi.Descriptor, len(names))
	for i, name := range names {
		interceptors[i] = Validator(name)
	}
	r := NewReactor(interceptors...)
	r.Invoke("", r.Answer(`{"result":{"valid":true}}`))
	return r.Bytes()
}
