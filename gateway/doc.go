// Package gateway puts the rooms below it together: it governs what a relay
// moves (gateway/relay) by plans (gateway/chain) over what hosts offer
// (gateway/hosts), and runs the backend process.
//
// # What it does
//
// A [Gateway] is a [relay.Governor]. It keeps a plan for each event, phase,
// direction and protocol version for as long as the hosts' lists stay the same,
// executes it, and writes one log record for each decision, under the reference
// that a blocked requester is told. [Start] runs a backend over stdio in a
// process group of its own.
//
// # What it may not know
//
// Configuration files, command lines, modules and engines: hosts, policy and
// backends are given to it.
//
// # Use
//
//	g := gateway.New(gateway.Options{Hosts: hosts.NewSet(all, hosts.SetOptions{}), Policy: policy})
//	defer g.Close(ctx)
//	backend, err := gateway.Start(gateway.Command{Args: args})
//	...
//	err = g.Serve(ctx, relay.Stdio(os.Stdin, os.Stdout, gateway.DefaultClientLimit), backend)
package gateway
