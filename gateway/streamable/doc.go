// Package streamable is the streamable HTTP transport of MCP for the relay, for
// where it is spoken on one side only. [Backend] leads a client on stdio to a
// server on HTTP; [Front] serves clients on HTTP from servers on stdio.
//
// # What it does
//
// A [Backend] is a [relay.End]. It posts what is written to it, gives what any
// stream of the server brings, keeps the server's session, and resumes streams
// that break.
//
// A [Front] is an http.Handler. In the session era (protocol versions up to
// 2025-11-25) every session has a backend of its own, and a relay between the
// two. In the stateless era (from 2026-07-28) the requests of one principal share
// a backend; each request is a scope of its own, and its ids and progress tokens
// are remapped on the way to the backend and spelled back exactly.
//
// Both read through internal/wire and internal/sse: strictly, within bounds, one
// message for one message (protocol.md §6). README.md is the manual page.
//
// # What it may not know
//
// Interceptors and configuration: what is governed is the matter of the
// [relay.Governor] in [relay.Options]. Which process a backend is, and how it is
// started, is the caller's. Listening, TLS, Host and Origin checks, tokens and
// rates are the front door's: a [Front] is told the principal and believes it.
//
// # Use
//
//	backend, err := streamable.Dial(streamable.BackendOptions{URL: "https://mcp.example/mcp"})
//	err = relay.Run(ctx, relay.Stdio(os.Stdin, os.Stdout, limit), backend, options)
//
//	front := streamable.NewFront(streamable.FrontOptions{Start: start, Relay: options})
//	http.Handle("/mcp", front)
//	…
//	err = front.Shutdown(ctx)
package streamable
