package caller_test

import (
	"context"
	"fmt"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/caller"
)

func Example() {
	ctx := context.Background()
	fmt.Println(caller.From(ctx) == nil)
	ctx = caller.With(ctx, &abi.Principal{Type: abi.PrincipalService, ID: "ci"})
	fmt.Println(caller.Name(caller.From(ctx)))
	// Output:
	// true
	// service:ci
}
