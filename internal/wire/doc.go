// Package wire is the one strict JSON and JSON-RPC reader of weir
// (protocol.md §6). The relay, the interceptor server and the module host all
// read through it, so that what one of them accepts no other understands
// differently: a message that two readers can read in two ways is a message
// that an interceptor did not see.
//
// # What it does
//
// [Read] finds the envelope of one JSON-RPC message and checks the whole text
// in a single pass over the bytes. It never builds a tree and never writes
// JSON again: a [Message] is a set of slices of the input, and
// [Message.WithParams], [Message.WithResult] and [Message.WithID] replace
// exactly the bytes of one member, so unknown members, number spelling, key
// order and escapes cross unchanged.
//
// [Strict] adds what a governed message must also satisfy: no duplicate name at
// any depth. [Equal] compares two payloads as JSON values, [Flat] makes a
// message safe for a line-framed or SSE reader, [Clip] a peer's words fit for a
// log, [LineReader] reads newline-delimited messages with a bound, and the Append
// functions write the few messages that weir itself originates.
//
// # What it may not know
//
// Methods, events, interceptors, sessions and transports: nothing of MCP beyond
// "params is an object and batches do not exist". It imports nothing of ours.
//
// # Use
//
//	m, err := wire.Read(body)
//	if err != nil {
//		bad := wire.AsError(err)
//		reply = wire.AppendFailure(nil, bad.ID.Raw(), bad.Code, bad.Reason, nil)
//		...
//	}
//	if governed(m.Method) {
//		if err := wire.Strict(m.Raw); err != nil { ... }
//		...
//		out = m.WithParams(payload)
//	}
//	write(append(wire.Flat(nil, out), '\n'))
//
// All functions are pure and safe for concurrent use; [LineReader] and [Skimmer]
// belong to one goroutine. No input can make any of them panic, recurse without bound, or
// spend more than linear (n log n in the number of members of one object) time.
package wire
