// Command denytools is a whole interceptor module: it refuses calls of the
// tools on a list. Build it with
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -o deny-tools.wasm .
package main

import (
	"slices"

	"github.com/weir-mcp/weir/guest"
)

type config struct {
	Deny []string `json:"deny" doc:"names of tools that may not be called"`
}

func init() {
	guest.Validator(guest.Descriptor{
		Name:    "deny-tools",
		Version: "1.0.0",
		Hooks:   guest.OnRequest(guest.ToolsCall),
	}, func(c *guest.Call[config]) (guest.Verdict, error) {
		call, err := c.ToolCall()
		if err != nil {
			return guest.Verdict{}, err
		}
		if slices.Contains(c.Config.Deny, call.Name) {
			return guest.Deny("tool %q may not be called here", call.Name).At("$.name"), nil
		}
		return guest.Allow(), nil
	})
}

func main() {}
