package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/guest"
	"github.com/weir-mcp/weir/runtime/library"
)

// metaKey is the member of _meta that stamp-meta writes. MCP asks for a prefix
// that its author owns.
const metaKey = "example.com/governed-by"

// stampMeta is a mutator that writes who governed an operation into the _meta
// of its params and of its result. All other bytes stay. It runs after nearly
// everybody else, so that the stamp is what arrives.
func stampMeta(value string) library.Native {
	stamp := guest.AppendText(nil, value)
	n := library.Mutator("stamp-meta", abi.OnBoth(abi.ToolsCall, abi.PromptsGet, abi.ResourcesRead),
		func(_ context.Context, inv *abi.Invocation) (json.RawMessage, error) {
			path := []string{"_meta", metaKey}
			if _, enveloped := abi.Unwrap(inv.Event, inv.Payload); enveloped {
				path = append([]string{"params"}, path...)
			}
			stamped, err := guest.Set(inv.Payload, stamp, path...)
			if err != nil {
				return nil, fmt.Errorf("cannot stamp: %w", err)
			}
			if bytes.Equal(stamped, inv.Payload) {
				return nil, nil
			}
			return stamped, nil
		})
	n.Version, n.Description = "1.0.0", "Writes into _meta who governed the operation."
	n.Priority = new(int32(1000))
	return n
}
