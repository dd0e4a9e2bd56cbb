// Package streamable is the streamable HTTP transport of MCP for the relay:
// [Backend] leads a client on stdio to a server on HTTP.
//
// # What it does
//
// A [Backend] is a [relay.End]. It posts what is written to it, gives what any
// stream of the server brings, keeps the server's session, and resumes streams
// that break. It reads through internal/wire and internal/sse: strictly, within
// bounds, one message for one message (protocol.md §6).
//
// # What it may not know
//
// Interceptors and configuration: what is governed is the matter of the
// [relay.Governor] in [relay.Options].
//
// # Use
//
//	backend, err := streamable.Dial(streamable.BackendOptions{URL: "https://mcp.example/mcp"})
//	err = relay.Run(ctx, relay.Stdio(os.Stdin, os.Stdout, limit), backend, options)
package streamable
