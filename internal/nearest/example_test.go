package nearest_test

import (
	"fmt"

	"github.com/weir-mcp/weir/internal/nearest"
)

func Example() {
	fmt.Println(nearest.Of("tool/call", []string{"tools/list", "tools/call"}))
	// Output: tools/call
}
