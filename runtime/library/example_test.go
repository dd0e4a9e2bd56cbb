package library_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/runtime/library"
)

// Interceptors in plain Go: one out of a func that returns a bool, and one that
// replaces the payload.
func ExampleLibrary_Register() {
	lib := library.New(library.Options{})
	noShell := library.CheckTool("no-shell", func(tool string, _ json.RawMessage) bool { return tool != "shell" })
	shout := library.Mutator("shout", abi.On(abi.Response, "prompts/get"),
		func(_ context.Context, inv *abi.Invocation) (json.RawMessage, error) {
			return json.RawMessage(strings.ReplaceAll(string(inv.Payload), "hello", "HELLO")), nil
		})
	shout.Priority = new(int32(-100))
	for _, n := range []library.Native{noShell, shout} {
		if err := lib.Register(n); err != nil {
			fmt.Println(err)
		}
	}

	r, err := lib.Invoke(context.Background(), abi.Invocation{
		Name: "no-shell", Event: abi.ToolsCall, Phase: abi.Request, Payload: json.RawMessage(`{"name":"shell"}`),
	})
	fmt.Println(r.Valid, r.Blocks(), err)
	r, err = lib.Invoke(context.Background(), abi.Invocation{
		Name: "shout", Event: abi.PromptsGet, Phase: abi.Response, Payload: json.RawMessage(`{"description":"hello"}`),
	})
	fmt.Println(r.Modified, string(r.Payload), err)
	_, err = lib.Invoke(context.Background(), abi.Invocation{
		Name: "shout", Event: abi.ToolsCall, Phase: abi.Request, Payload: json.RawMessage(`{}`),
	})
	fmt.Println(err)
	// Output:
	// false true <nil>
	// true {"description":"HELLO"} <nil>
	// interceptor "shout": the interceptor does not hook this event and phase
}
