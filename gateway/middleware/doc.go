// Package middleware puts a chain of interceptors into programs that are made
// with the go-sdk: a client's, in front of any server, or a server's, in front
// of any client.
//
// # What it does
//
// [NewClient] makes an MCP client and [GovernServer] takes an MCP server, whose
// operations are governed by a [gateway.Chain] in both directions: what the
// client asks for (tools/call, tools/list, prompts, resources, custom methods)
// and what the server asks for (sampling, elicitation, roots), including what an
// input-required result carries inside and the answers to it (protocol.md §6
// "No way round"). The side sets the direction: a client sends requests and
// receives results, a server receives requests and sends results (protocol.md
// §5, Order passes). What is blocked is a *jsonrpc.Error with the data of
// protocol.md §6 "Blocked": for a client's caller from its session's methods, for
// a peer on the wire.
//
// # What interceptors see
//
// The params and results as JSON, as the SDK writes them, but for its escapes of
// "<", ">" and "&". The SDK's types are what there is: members that they do not
// know are gone before any middleware sees a message, and integers above 2^53 in
// untyped places are rounded where the SDK reads them as float64. Whoever needs
// every byte puts weir's gateway in between instead. What no interceptor changed
// is left alone: the peer gets the values that the SDK had, and of a message that
// was changed the members that were not. A member that an interceptor adds and
// the SDK's type has no room for is lost; one whose name differs from the type's
// in case only is refused.
//
// Notifications, errors and what is no event pass (protocol.md §1). Results that
// a client's cache answers do not cross again, and nobody is asked about them; a
// list that an active mutation worked on is not cached (protocol.md §6).
//
// # What it may not know
//
// Hosts, policy and plans: the chain is given to it. Options such as the events
// to govern, the default context, the identity of the server and the resolver
// are [gateway.ChainOptions].
//
// # Use
//
//	client := middleware.NewClient(&mcp.Implementation{Name: "app", Version: "1"}, nil, chain, middleware.Options{})
//	session, err := client.Connect(ctx, transport, nil)
//
//	server := mcp.NewServer(&mcp.Implementation{Name: "files", Version: "1"}, nil)
//	middleware.GovernServer(server, chain, middleware.Options{})
package middleware
