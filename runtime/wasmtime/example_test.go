//go:build wasmtime

package wasmtime_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/weir-mcp/weir/runtime"
	"github.com/weir-mcp/weir/runtime/wasmtime"
)

// An engine that keeps compiled code in a folder of its own, under a runtime.
func ExampleNew() {
	var o wasmtime.Options
	if cache, err := os.MkdirTemp("", "weir"); err == nil { // os.UserCacheDir, usually
		defer os.RemoveAll(cache)
		o.CacheDir = filepath.Join(cache, "weir", "wasmtime")
	}
	engine, err := wasmtime.New(o)
	if err != nil {
		fmt.Println(err)
		return
	}
	r := runtime.New(engine)
	defer r.Close(context.Background())
	fmt.Println(r.Engine())
	// Output: wasmtime 44.0.0
}
