package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/guest"
	"github.com/weir-mcp/weir/runtime/library"
)

// denyConfig is what deny-list refuses.
type denyConfig struct {
	Tools list `json:"tools"`
	Text  list `json:"text"`
}

const denySchema = `{"type":"object","properties":{` +
	`"tools":{"type":"array","items":{"type":"string","minLength":1},"description":"names of tools that may not be called"},` +
	`"text":{"type":"array","items":{"type":"string","minLength":1},"description":"what no string of the arguments may contain, in capitals or not"}` +
	`},"additionalProperties":false}`

// denyList is a validator that refuses calls of the tools, and with the
// arguments, that its config names: all of it, or, without a config, the
// defaults.
func denyList(defaults denyConfig) library.Native {
	n := library.Validator("deny-list", abi.On(abi.Request, abi.ToolsCall),
		func(_ context.Context, inv *abi.Invocation) (library.Verdict, error) {
			c := defaults
			if inv.Config != nil {
				c = denyConfig{}
				if err := json.Unmarshal(inv.Config, &c); err != nil {
					return library.Verdict{}, err
				}
			}
			return c.decide(inv)
		})
	n.Version, n.Description = "1.0.0", "Refuses calls of tools, and with arguments, that are on a list."
	n.ConfigSchema = json.RawMessage(denySchema)
	return n
}

func (c *denyConfig) decide(inv *abi.Invocation) (library.Verdict, error) {
	params, _ := abi.Unwrap(inv.Event, inv.Payload)
	tool, ok := guest.GetText(params, "name")
	if !ok {
		return denied("$.name", "the call names no tool"), nil
	}
	if slices.Contains(c.Tools, tool) {
		return denied("$.name", fmt.Sprintf("tool %q is on the deny list", tool)), nil
	}
	verdict := library.Allow()
	arguments, ok := guest.Get(params, "arguments")
	if !ok {
		return verdict, nil
	}
	err := guest.WalkStrings(arguments, func(at guest.Path, text string) bool {
		text = strings.ToLower(text)
		for _, never := range c.Text {
			if strings.Contains(text, strings.ToLower(never)) {
				path := "$.arguments" + strings.TrimPrefix(at.String(), "$")
				verdict = denied(path, fmt.Sprintf("text %q is on the deny list", never))
				return false
			}
		}
		return true
	}, guest.AndNames())
	return verdict, err
}

func denied(path, message string) library.Verdict {
	return library.Verdict{
		Severity: abi.SeverityError,
		Messages: []abi.Message{{Path: path, Message: message, Severity: abi.SeverityError}},
	}
}
