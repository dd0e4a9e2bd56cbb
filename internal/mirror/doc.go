// Package mirror knows the HTTP headers that repeat what a message says
// (streamable HTTP of 2026-07-28): Mcp-Method, Mcp-Name and Mcp-Param-*. Whoever
// sends a message sets them, whoever has changed one sets them anew, and whoever
// receives one refuses it where they contradict the body: a load balancer or a
// guard that trusts a header must not let pass what the body does not say.
//
// # What it does
//
// [Set] writes the headers of a message, [Check] compares. A [Tools] remembers
// from the results of tools/list which arguments a server wants to see in
// headers (x-mcp-header in a tool's inputSchema). [Encode] and [Decode] are the
// form that values take which do not fit into a header.
//
// # What it may not know
//
// Sessions, streams, connections. Messages come to it read by internal/wire.
//
// # Use
//
//	if v := mirror.Version(&m); mirror.Applies(v) {
//		request.Header.Set(mirror.VersionHeader, v)
//		mirror.Set(request.Header, &m, tools)
//	}
package mirror
