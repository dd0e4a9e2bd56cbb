package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/wasmtest"
	"github.com/weir-mcp/weir/runtime"
	"github.com/weir-mcp/weir/runtime/wazero"
)

// denying is a module whose interceptor "no-tools" denies every call.
func denying() []byte {
	r := wasmtest.NewReactor(wasmtest.Validator("no-tools"))
	r.Invoke("", r.Answer(`{"result":{"valid":false,"severity":"error","messages":[{"message":"no tools today","severity":"error"}]}}`))
	return r.Bytes()
}

func Example() {
	ctx := context.Background()
	engine, err := wazero.New(wazero.Options{})
	if err != nil {
		panic(err)
	}
	r := runtime.New(engine)
	defer r.Close(ctx)

	m, err := r.Load(ctx, denying(), runtime.ModuleOptions{Name: "no-tools.wasm"})
	if err != nil {
		panic(err)
	}
	for _, d := range m.Descriptors() {
		fmt.Println(d.Name, d.Type)
	}
	result, err := m.Invoke(ctx, abi.Invocation{
		Name: "no-tools", Event: abi.ToolsCall, Phase: abi.Request,
		Payload: json.RawMessage(`{"name":"rm"}`),
	})
	fmt.Println(result.Valid, result.Messages[0].Message, err)
	// Output:
	// no-tools validation
	// false no tools today <nil>
}

// A module that is refused says what is wrong and what to do.
func ExampleRuntime_Load_refused() {
	ctx := context.Background()
	engine, err := wazero.New(wazero.Options{})
	if err != nil {
		panic(err)
	}
	r := runtime.New(engine)
	defer r.Close(ctx)

	_, err = r.Load(ctx, []byte("fn main() {}"), runtime.ModuleOptions{Name: "main.wasm"})
	fmt.Println(err)
	// Output: main.wasm: not a WebAssembly module: header, offset 0x0: the file does not begin with "\0asm"; if it is source or text format, compile it first
}

// Failures are [abi.Error] values with a reason; a verdict is never one.
func ExampleModule_Invoke_failure() {
	ctx := context.Background()
	engine, err := wazero.New(wazero.Options{})
	if err != nil {
		panic(err)
	}
	r := runtime.New(engine)
	defer r.Close(ctx)
	m, err := r.Load(ctx, denying(), runtime.ModuleOptions{
		Name:   "no-tools.wasm",
		Limits: runtime.Limits{InputBytes: 10},
	})
	if err != nil {
		panic(err)
	}
	_, err = m.Invoke(ctx, abi.Invocation{
		Name: "no-tools", Event: abi.ToolsCall, Phase: abi.Request,
		Payload: json.RawMessage(`{"name":"a long one"}`),
	})
	var failure *abi.Error
	fmt.Println(errors.As(err, &failure), failure.Reason)
	fmt.Println(failure.Message())
	// Output:
	// true payload_too_large
	// the interceptor failed: payload_too_large
}

func ExampleInspect() {
	facts, err := runtime.Inspect(denying())
	if err != nil {
		panic(err)
	}
	fmt.Println(facts.Flavour, facts.Reset != "") // such as "page scan and copy"
	for _, i := range facts.Imports {
		fmt.Println(i.Module, i.Name, i.Type)
	}
	fmt.Println(facts.Refused)
	// Output:
	// reactor true
	// weir input (i32) -> ()
	// weir output (i32, i32) -> ()
	// weir log (i32, i32, i32) -> ()
	// <nil>
}
