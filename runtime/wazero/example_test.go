package wazero_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/weir-mcp/weir/runtime/wazero"
)

// An engine whose code can be kept, by a runtime that has a cache. Where this
// user has no folder for it, ScratchDir stays empty and all is compiled anew.
func ExampleNew() {
	var o wazero.Options
	if dir, err := os.MkdirTemp("", "weir"); err == nil { // os.UserCacheDir, usually
		defer os.RemoveAll(dir)
		o.ScratchDir = filepath.Join(dir, "weir", "scratch")
	}
	engine, err := wazero.New(o)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer engine.Close(context.Background())
	fmt.Println(engine.Name() != "")
	// Output: true
}
