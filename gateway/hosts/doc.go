// Package hosts knows who hosts interceptors and what they offer: a set in this
// process, an interceptor server that it runs as a command, one at a URL. A
// [Host] implements chain.Host for one of them, a [Set] discovers from all and
// remembers the answer, so that a governed message costs no list (protocol.md
// §5, Discover).
//
// # What it may not know
//
// Policy, plans, clients and backends. It hands over what is offered, or why
// that is not known, in the configured order, and runs what it is told to.
//
// # Discovery
//
// A list is valid while the connection that it came over lives. Besides that it
// is fetched again in the background once it is older than [SetOptions.Fresh],
// and no older than twice that is ever used. A set in this process says itself
// when it changed. A host that cannot be listed is tried again on demand, after
// a pause that grows from 100 ms to 5 s; until then its listing says why.
//
// # Trust
//
// What runs elsewhere is not trusted: each answer passes the strict reader of
// internal/wire before anything else reads it, everything is bounded, and a
// connection that misbehaves is dropped and made anew. An invocation is never
// sent twice: when the connection breaks under it, it fails, and what follows
// from that is its policy's to decide. Commands get PATH, HOME, LANG, TMPDIR and
// what their configuration sets, and no more of the environment ([Environment]).
// Redirects are not followed, since the configured headers would go with them.
//
// # Use
//
//	set := hosts.NewSet([]*hosts.Host{
//		hosts.InProcess("local", lib, hosts.Options{}),
//		hosts.HTTP("security", hosts.Endpoint{URL: "https://sec.internal/mcp"}, hosts.Options{}),
//	}, hosts.SetOptions{})
//	defer set.Close(context.Background())
//	listings, version := set.Listings(ctx)
//
// All of it is safe for concurrent use.
package hosts
