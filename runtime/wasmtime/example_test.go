//go:build wasmtime

package wasmtime_test

import (
	"context"
	"fmt"

	"github.com/weir-mcp/weir/runtime"
	"github.com/weir-mcp/weir/runtime/wasmtime"
)

// An engine under a runtime, which runtime.WithCache gives a place to keep code.
func ExampleNew() {
	engine, err := wasmtime.New(wasmtime.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	r := runtime.New(engine)
	defer r.Close(context.Background())
	fmt.Println(r.Engine())
	// Output: wasmtime 44.0.0
}
