// Package expose offers the interceptors of all hosts of a gateway together, as
// one set that an interceptor server can serve (config.md, expose).
//
// # What it does
//
// A [Set] lists what the hosts offer, as policy has it, and passes each
// invocation to the host that owns the interceptor. Names that two hosts share,
// and names that begin with a host's name and "/", are listed as HOST/NAME; an
// answer bears the listed name. An error is passed on as it is and never tried
// elsewhere.
//
// A caller decides little: whose call it is says whoever authenticated it, the
// configuration is policy's, and so is the timeout, where policy sets one. What
// policy says of mode and failOpen is an invoker's, and this caller is one.
//
// [Route] finds the requests of an interceptor server among those of the MCP
// server that a gateway stands for.
//
// # What it may not know
//
// Servers, sessions, configuration files. It is given the hosts and the policy,
// and what tells the caller from a context.
//
// # Use
//
//	set := expose.New(expose.Options{Listings: hosts.Listings, Policy: policy, Principal: relay.PrincipalFrom})
//	interceptors := server.New(set, server.Options{TrustContext: true}).Handler()
//	mux.Handle("/mcp", expose.Route(interceptors, gateway, limit))
package expose
