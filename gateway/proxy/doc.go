// Package proxy is the relay between HTTP clients and an HTTP backend: a reverse
// proxy that understands MCP's streamable HTTP transport, in every version that
// has it (2025-03-26 to 2026-07-28), and lets a [relay.Governor] decide.
//
// # What it does
//
// A [Proxy] is an http.Handler. It passes on each POST, GET and DELETE as it is,
// headers and status codes included, and reads the messages in the bodies on the
// way: those of a POST before the backend sees anything of it, those of an answer
// as JSON or as server-sent events, event by event, each written and flushed as
// soon as it has been decided about. Ids, retry fields and comments of a stream
// survive. What a mutation changes is followed by Content-Length and by the
// headers that mirror the body (Mcp-Name, Mcp-Param-*); a request whose headers
// contradict its body is refused.
//
// # Sessions
//
// It keeps none of its own. A session of the backend (Mcp-Session-Id) is a scope:
// the requests in flight, the tasks and the negotiated version of that session,
// as far as this replica has seen them. A request without a session is a scope of
// its own. So replicas behind a load balancer need no affinity in the stateless
// era, and the backend's own in the session era. A stream is resumed where it was
// relayed, since only there it is known whose answers it brings; elsewhere the
// request is refused with 404 (protocol.md §6).
//
// # What it may not know
//
// Who may call: whoever checks that, puts the principal into the request's
// context ([relay.WithPrincipal]). Chains, hosts, configuration, and how the
// handler is served.
//
// # Use
//
//	p, err := proxy.New(proxy.Options{Backend: "http://127.0.0.1:3000/mcp", Relay: relay.Options{Governor: g}})
//	defer p.Close()
//	mux.Handle("/mcp", p)
//	mux.Handle("/.well-known/", p)
package proxy
