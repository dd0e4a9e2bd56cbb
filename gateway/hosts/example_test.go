package hosts_test

import (
	"context"
	"fmt"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/hosts"
)

// set is a set of interceptors in this process; a *library.Library is one.
type set struct{}

func (set) List() []abi.Descriptor {
	return []abi.Descriptor{{Name: "guard", Type: abi.Validation, Hooks: abi.On(abi.Request, abi.ToolsCall)}}
}

func (set) Invoke(_ context.Context, inv abi.Invocation) (abi.Result, error) {
	return abi.Result{Type: abi.Validation, Interceptor: inv.Name, Phase: inv.Phase, Valid: true}, nil
}

func (set) Ready(context.Context) error { return nil }

func (set) Subscribe(func()) func() { return func() {} }

func Example() {
	ctx := context.Background()
	all := hosts.NewSet([]*hosts.Host{
		hosts.InProcess("local", set{}, hosts.Options{}),
		hosts.HTTP("security", hosts.Endpoint{URL: "http://127.0.0.1:1/mcp"}, hosts.Options{}),
	}, hosts.SetOptions{})
	defer all.Close(ctx)

	listings, _ := all.Listings(ctx)
	for _, l := range listings {
		fmt.Println(l.Host.Name(), len(l.Interceptors), l.Err != nil)
	}
	for _, st := range all.Status() {
		fmt.Println(st.Name, st.Up, st.Breaker, st.Listed)
	}
	result, err := listings[0].Host.Invoke(ctx, abi.Invocation{Name: "guard", Event: abi.ToolsCall, Phase: abi.Request})
	fmt.Println(result.Valid, err)
	// Output:
	// local 1 false
	// security 0 true
	// local true closed 1
	// security false closed 0
	// true <nil>
}
