package module_test

import (
	"fmt"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/guest/internal/module"
)

func Example() {
	var m module.Module
	m.Register(module.Interceptor{
		Descriptor: abi.Descriptor{Name: "allow", Type: abi.Validation, Hooks: abi.On(abi.Request, abi.ToolsCall)},
		Run:        func(*abi.Invocation) (abi.Result, error) { return abi.Result{Valid: true}, nil },
	})
	list, err := m.Describe()
	fmt.Println(string(list), err)
	fmt.Println(string(m.Invoke([]byte(`{"interceptor":"allow","event":"tools/call","phase":"request","payload":{"name":"t"}}`))))
	fmt.Println(string(m.Invoke([]byte(`{"interceptor":"deny","event":"tools/call","phase":"request","payload":{}}`))))
	// Output:
	// {"interceptors":[{"name":"allow","type":"validation","hooks":[{"events":["tools/call"],"phase":"request"}]}]} <nil>
	// {"result":{"type":"validation","interceptor":"allow","phase":"request","valid":true}}
	// {"error":{"message":"the module has no interceptor \"deny\""}}
}
