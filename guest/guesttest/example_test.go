package guesttest_test

import (
	"encoding/json"
	"fmt"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/guest"
	"github.com/weir-mcp/weir/guest/guesttest"
)

func init() {
	guest.Validator(guest.Descriptor{Name: "no-shell", Hooks: guest.OnRequest(guest.ToolsCall)},
		func(c *guest.Call[guest.NoConfig]) (guest.Verdict, error) {
			call, err := c.ToolCall()
			if err != nil {
				return guest.Verdict{}, err
			}
			if call.Name == "shell" {
				return guest.Deny("no shell here").At("$.name"), nil
			}
			return guest.Allow(), nil
		})
}

// A test calls an interceptor as a host would, through the same frames.
func ExampleCall() {
	r, err := guesttest.Call(abi.Invocation{
		Name: "no-shell", Event: abi.ToolsCall, Phase: abi.Request, Payload: json.RawMessage(`{"name":"shell"}`),
	})
	fmt.Println(string(r.AppendJSON(nil)), err)
	// Output:
	// {"type":"validation","interceptor":"no-shell","phase":"request","valid":false,"severity":"error","messages":[{"path":"$.name","message":"no shell here","severity":"error"}]} <nil>
}

// Golden cases are data: whoever can make the call can judge the answer.
func ExampleCase_Check() {
	c := guesttest.Case{
		Interceptor: "no-shell", Event: abi.ToolsCall, Phase: abi.Request,
		Payload: json.RawMessage(`{"name":"shell"}`),
		Want:    guesttest.Want{Valid: new(true)},
	}
	inv, err := c.Invocation()
	if err != nil {
		panic(err)
	}
	fmt.Println(c.Check(guesttest.Call(inv)))
	// Output:
	// valid is false, want true
}
