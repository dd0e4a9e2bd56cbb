// Package door is what stands before an HTTP endpoint: it says who comes in, how
// many at once and how often, and lets them finish when the house closes.
//
// # What it does
//
// [Door.Guard] wraps a handler. A request is turned away, before the handler
// sees it, that
//
//   - comes from a web page of another origin, or reaches a loopback address
//     under a name that is not the loopback's (DNS rebinding): 403;
//   - has no bearer token or a wrong one, where there are tokens: 401;
//   - comes too often for its caller, or when too many are served: 429, 503.
//
// A caller that does not read ends the connection. How large a body may be is the
// handler's to say, since it reads.
//
// Behind it a request has its caller in its context, if [Options.Known] puts it
// there, and no Authorization header any more, where there are tokens (config.md).
//
// [Serve] runs an http.Server with bounds on headers, idle connections and the time
// that a body takes to come, whether anybody wants it or not, and
// drains it: streams that only wait end at once, what runs may finish.
// [Certificate] follows a certificate that is renewed on disk.
//
// # What it may not know
//
// MCP, JSON-RPC, sessions, and what the handlers do. Who callers are is a list of
// tokens; other ways to know them (JWT, client certificates) would be another
// [Authenticator].
//
// # Use
//
//	tokens, err := door.NewTokens(door.Token{Name: "ci", Secret: secret})
//	d := door.New(door.Options{Authenticator: tokens, Concurrency: 256})
//	mux.Handle("/mcp", d.Guard(handler))
//	err = door.Serve(ctx, listener, mux, door.ServeOptions{Drain: 10 * time.Second})
package door
