package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/guest"
	"github.com/weir-mcp/weir/runtime/library"
)

// noDeletes is a validation out of a plain func: no tool may be called whose name
// says that it deletes. A call that it does not let pass is blocked.
func noDeletes() library.Native {
	n := library.CheckTool("no-deletes", func(tool string, _ json.RawMessage) bool {
		return !strings.HasPrefix(strings.ToLower(tool), "delete")
	})
	n.Version, n.Description = "1.0.0", "Refuses tools whose names begin with delete."
	return n
}

// limitResults is a mutation with a configuration: a search that sets no limit
// gets one. It changes that one place and leaves every other byte alone; decoding
// the payload and encoding it again would not.
func limitResults() library.Native {
	n := library.Mutator("limit-results", abi.On(abi.Request, abi.ToolsCall),
		func(_ context.Context, inv *abi.Invocation) (json.RawMessage, error) {
			config := struct{ Limit int }{Limit: 20}
			if inv.Config != nil { // has been validated against the schema below
				if err := json.Unmarshal(inv.Config, &config); err != nil {
					return nil, err // blocks, unless policy says failOpen
				}
			}
			// Some invokers wrap the params in an envelope with the method; the answer
			// has the shape of the question.
			params, enveloped := abi.Unwrap(inv.Event, inv.Payload)
			if tool, _ := guest.GetText(params, "name"); tool != "search" {
				return nil, nil // no change
			}
			if _, set := guest.Get(params, "arguments", "limit"); set {
				return nil, nil
			}
			at := []string{"arguments", "limit"}
			if enveloped {
				at = append([]string{"params"}, at...)
			}
			return guest.Set(inv.Payload, strconv.AppendInt(nil, int64(config.Limit), 10), at...)
		})
	n.Version, n.Description = "1.0.0", "Gives a search without a limit one."
	n.Priority = new(int32(100)) // after most others
	n.ConfigSchema = json.RawMessage(`{"type":"object","additionalProperties":false,` +
		`"properties":{"limit":{"type":"integer","minimum":1,"maximum":1000}}}`)
	return n
}

// callLog is a sink: it hears of calls that have passed, and can neither hold nor
// change them.
func callLog(log *slog.Logger) library.Native {
	n := library.Sink("call-log", abi.On(abi.Request, abi.ToolsCall),
		func(_ context.Context, inv *abi.Invocation) error {
			params, _ := abi.Unwrap(inv.Event, inv.Payload)
			tool, _ := guest.GetText(params, "name")
			// The name is a stranger's word, and a sink runs even if no such tool is there.
			log.Info("a tool is called", "tool", fmt.Sprintf("%.100s", tool), "bytes", len(params))
			return nil
		})
	n.Version, n.Description = "1.0.0", "Logs which tools are called."
	return n
}
