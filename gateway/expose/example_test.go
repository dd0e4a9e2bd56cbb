package expose_test

import (
	"context"
	"fmt"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/chain"
	"github.com/weir-mcp/weir/gateway/expose"
)

// guard is a host with one validator.
type guard string

func (g guard) Name() string { return string(g) }

func (g guard) Invoke(_ context.Context, inv abi.Invocation) (abi.Result, error) {
	return abi.Result{Interceptor: inv.Name, Type: abi.Validation, Phase: inv.Phase, Valid: g == "local"}, nil
}

// Two hosts offer an interceptor of the same name. Both can be reached.
func Example() {
	offered := []abi.Descriptor{{
		Name: "pii", Type: abi.Validation, Hooks: abi.Hooks{{Events: []string{"tools/call"}, Phase: abi.Request}},
	}}
	listings := []chain.Listing{{Host: guard("local"), Interceptors: offered}, {Host: guard("team"), Interceptors: offered}}
	set := expose.New(expose.Options{
		Listings:  func(context.Context) []chain.Listing { return listings },
		Principal: func(context.Context) *abi.Principal { return nil },
	})
	for _, d := range set.List() {
		r, err := set.Invoke(context.Background(), abi.Invocation{Name: d.Name, Event: "tools/call", Phase: abi.Request, Payload: []byte(`{}`)})
		fmt.Println(r.Interceptor, r.Valid, err)
	}
	// Output:
	// local/pii true <nil>
	// team/pii false <nil>
}
