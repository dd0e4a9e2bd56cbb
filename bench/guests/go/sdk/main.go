// Command sdk is a guest written with weir's SDK, as its users write them.
package main

import (
	"github.com/weir-mcp/weir/bench/guests/go/redact"
	"github.com/weir-mcp/weir/guest"
)

func init() {
	guest.Mutator(guest.Descriptor{Name: "redact", Hooks: guest.OnRequest(guest.ToolsCall)},
		func(c *guest.Call[struct{}]) (guest.Mutation, error) {
			edited, changed, err := guest.EditStrings(c.Payload, func(_ guest.Path, text string) string {
				now, _ := redact.AppendText(nil, text)
				return string(now)
			})
			if err != nil || !changed {
				return guest.Unchanged(), err
			}
			return guest.Replace(edited), nil
		})
}

func main() {}
