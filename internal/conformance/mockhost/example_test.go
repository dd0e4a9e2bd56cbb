package mockhost_test

import (
	"context"
	"fmt"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/conformance/mockhost"
)

func Example() {
	h := mockhost.New("h",
		mockhost.Mutator("m", mockhost.Tag),
		mockhost.Validator("v", mockhost.Broken, mockhost.FailOpen),
	)
	page, _ := h.Page("")
	fmt.Printf("%s\n", page)
	for _, name := range []string{"m", "v", "m"} {
		r, err := h.Invoke(context.Background(), abi.Invocation{
			Name: name, Event: abi.ToolsCall, Phase: abi.Request, Payload: []byte(`{"name":"t"}`),
		})
		fmt.Printf("%s %v\n", r.Payload, err)
	}
	fmt.Println(len(h.Calls("m")), "of", len(h.All()), "calls were for m")
	// Output:
	// {"interceptors":[{"name":"m","type":"mutation","hooks":[{"events":["*"],"phase":"request"},{"events":["*"],"phase":"response"}]},{"name":"v","type":"validation","hooks":[{"events":["*"],"phase":"request"},{"events":["*"],"phase":"response"}],"failOpen":true}]}
	// {"name":"t+m"} <nil>
	//  interceptor "v": the interceptor failed: trap: scripted
	// {"name":"t+m"} <nil>
	// 2 of 3 calls were for m
}
