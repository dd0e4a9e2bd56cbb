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
// is fetched again in the background before it is older than [SetOptions.Fresh],
// and none older than twice that is ever used. A set in this process says itself
// when it changed; elsewhere nothing does, but a host that does not know an
// interceptor it listed is asked at once. Lists change as a whole.
//
// A connection that breaks is made anew at once. A host that cannot be listed is
// tried again after a pause that grows from 100 ms to 5 s, less up to half of it
// at random; until then its listing says why. After three attempts in a row that
// did not reach it its [Breaker] opens: nobody waits for it any more, and it is
// probed in the background. [Set.Status] says how each host does.
//
// # Trust
//
// What runs elsewhere is not trusted: each answer passes the strict reader of
// internal/wire before anything else reads it, everything is bounded, and what
// goes wrong with one invocation stays with it where the transport lets it: over
// HTTP always, over stdio unless the process dies or does not read. An invocation
// is never sent twice: when the connection breaks under it, it fails, and what
// follows from that is its policy's to decide. Commands get PATH, HOME, LANG,
// TMPDIR and what their configuration sets, and no more of the environment
// ([Environment]). Redirects are not followed, since the configured headers would
// go with them. The request that a response answers goes out of this process
// only where [Options.Request] says so.
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
