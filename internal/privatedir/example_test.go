package privatedir_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/weir-mcp/weir/internal/privatedir"
)

func ExampleMake() {
	parent, err := os.MkdirTemp("", "weir")
	if err != nil {
		return
	}
	defer os.RemoveAll(parent)
	fmt.Println(privatedir.Make(filepath.Join(parent, "compiled")))
	// Output: <nil>
}
