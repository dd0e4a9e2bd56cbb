package main

import (
	"context"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/bench/guests"
	"github.com/weir-mcp/weir/bench/guests/go/anyjson"
	"github.com/weir-mcp/weir/bench/guests/go/redact"
	"github.com/weir-mcp/weir/internal/wire"
)

// native does the job in the host: no frames, no sandbox. What comes out passes
// the strict reader, as in every other row.
func native(_ context.Context, _ *bench, g guests.Guest) (invoke, error) {
	var job func(doc []byte) ([]byte, error)
	switch g.Name {
	case guests.GoBytes:
		job = func(doc []byte) ([]byte, error) {
			out, _ := redact.Append(make([]byte, 0, len(doc)+len(doc)/6), doc)
			return out, nil
		}
	case guests.GoAny:
		job = anyjson.Redact
	default:
		return nil, errNotFor
	}
	return func(inv *abi.Invocation) (abi.Result, error) {
		out, err := job(inv.Payload)
		if err == nil {
			err = wire.Strict(out)
		}
		return abi.Result{Type: abi.Mutation, Interceptor: inv.Name, Phase: inv.Phase, Modified: true, Payload: out}, err
	}, nil
}
