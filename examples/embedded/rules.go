package main

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/guest"
	"github.com/weir-mcp/weir/runtime/library"
)

// houseRules hold for everybody: they are this program's own. A folder of
// modules serves as well, see library.Open.
func houseRules() (*library.Library, error) {
	return rules(library.Validator("no-passwords", abi.On(abi.Request, abi.ToolsCall),
		func(_ context.Context, inv *abi.Invocation) (library.Verdict, error) {
			if name, _ := guest.GetText(inv.Payload, "arguments", "name"); strings.Contains(strings.ToLower(name), "password") {
				return library.Deny("nobody looks passwords up"), nil
			}
			return library.Allow(), nil
		}))
}

var address = regexp.MustCompile(`[\w.]+@[\w.]+`)

// northRules are those of one organisation.
func northRules() (*library.Library, error) {
	return rules(
		library.Mutator("hide-addresses", abi.On(abi.Response, abi.ToolsCall),
			func(_ context.Context, inv *abi.Invocation) (json.RawMessage, error) {
				edited, _, err := guest.EditStrings(inv.Payload, func(_ guest.Path, s string) string {
					return address.ReplaceAllString(s, "(address)")
				})
				return edited, err
			}),
		library.Validator("one-at-a-time", abi.On(abi.Request, abi.ToolsCall),
			func(_ context.Context, inv *abi.Invocation) (library.Verdict, error) {
				if name, _ := guest.GetText(inv.Payload, "arguments", "name"); name == "everybody" {
					return library.Deny("look one person up at a time"), nil
				}
				return library.Allow(), nil
			}),
	)
}

func rules(natives ...library.Native) (*library.Library, error) {
	lib := library.New(library.Options{})
	for _, n := range natives {
		if err := lib.Register(n); err != nil {
			return nil, err
		}
	}
	return lib, nil
}
