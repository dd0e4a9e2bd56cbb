package abi_test

import (
	"fmt"

	"github.com/weir-mcp/weir/abi"
)

// A reader takes the spellings of older drafts; a writer has one.
func Example() {
	d, err := abi.ReadDescriptor([]byte(`{
		"name": "pii-redactor", "type": "mutation", "mode": "enforce",
		"events": ["tools/call"], "phase": "both", "priorityHint": {"request": -1000}
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(d.Hooks.Match("tools/call", abi.Response), d.PriorityHint.For(abi.Response))
	fmt.Println(string(d.AppendJSON(nil)))
	// Output:
	// true 0
	// {"name":"pii-redactor","type":"mutation","hooks":[{"events":["tools/call"],"phase":"request"},{"events":["tools/call"],"phase":"response"}],"priorityHint":{"request":-1000}}
}
