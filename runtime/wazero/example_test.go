package wazero_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/weir-mcp/weir/runtime/wazero"
)

// An engine that keeps compiled code in the user's cache folder. Where there is
// none, CacheDir stays empty and nothing is kept.
func ExampleNew() {
	var o wazero.Options
	if cache, err := os.MkdirTemp("", "weir"); err == nil { // os.UserCacheDir, usually
		defer os.RemoveAll(cache)
		o.CacheDir = filepath.Join(cache, "weir", "wazero")
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
