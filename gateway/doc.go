// Package gateway puts the rooms below it together: one chain (gateway/chain)
// over what hosts offer (gateway/hosts), for a program to call, and for what a
// relay (gateway/relay) moves.
//
// # What it does
//
// A [Chain] is the library's entrance: it discovers from any number of hosts,
// keeps a plan for each event, phase, direction and protocol version for as long
// as the hosts' lists stay the same, and executes operations. It fills in the
// context that interceptors get, asks a [Resolver] for further hosts, tells
// observers, and writes one log record for each decision, under the reference
// that a blocked requester is told. [ExecuteOnce] is one operation through a
// chain of its own. A [Gateway] is the chain as a [relay.Governor]; [Start] runs
// a backend over stdio in a process group of its own. Package gateway/middleware
// is the chain as middleware of go-sdk clients and servers.
//
// # What it may not know
//
// Configuration files, command lines, modules and engines: hosts, policy and
// backends are given to it.
//
// # Use
//
//	c, err := gateway.NewChain(gateway.ChainOptions{Hosts: hosts.NewSet(all, hosts.SetOptions{}), Policy: policy})
//	...
//	defer c.Close(ctx)
//	out := c.Execute(ctx, gateway.Operation{Event: abi.ToolsCall, Payload: params})
//	if !out.Released() {
//		return out.Refusal()
//	}
//	params = out.FinalPayload
//
// And as a gateway:
//
//	g, err := gateway.New(gateway.Options{ChainOptions: gateway.ChainOptions{Hosts: set, Policy: policy}})
//	...
//	backend, err := gateway.Start(gateway.Command{Args: args})
//	...
//	err = g.Serve(ctx, relay.Stdio(os.Stdin, os.Stdout, gateway.DefaultClientLimit), backend)
package gateway
