package wasmtest_test

import (
	"fmt"

	"github.com/weir-mcp/weir/internal/wasmtest"
	"github.com/weir-mcp/weir/runtime/meter"
)

// A module that traps on every invocation.
func Example() {
	r := wasmtest.NewReactor(wasmtest.Validator("guard"))
	r.Invoke("", wasmtest.Unreachable)
	m, err := meter.Parse(r.Bytes())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range m.Exports {
		fmt.Println(e.Name)
	}
	// Output:
	// weir_invoke
	// memory
	// weir_abi_v1
	// weir_describe
}
