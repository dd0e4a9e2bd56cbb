package guestbuild_test

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/weir-mcp/weir/internal/guestbuild"
)

func ExampleGo() {
	file, err := guestbuild.Go(context.Background(), guestbuild.Module+"/guest/internal/denytools")
	fmt.Println(filepath.Base(file), err)
	// Output: denytools.wasm <nil>
}
