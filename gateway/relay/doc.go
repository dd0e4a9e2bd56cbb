// Package relay moves JSON-RPC messages between an MCP client and the backend
// it talks to, and lets a [Governor] decide about the operations among them. A
// message crosses untouched, byte for byte, unless the governor says otherwise
// (protocol.md §6).
//
// # What it does
//
// A [Session] is the core, whatever the transports are. It classifies each message
// by kind, event, phase and direction, asks the governor, and says what is to be
// written where, through the [Lane] that the message came on. It keeps a table of
// the requests in flight for each side, so that an id is never used twice at the
// same time, a response nobody asked for never passes, and nobody waits for a
// peer that is gone. It finds what is governed inside other messages: task
// results, the requests of an input-required result and the answers to them.
//
// [Run] is a session between two ends, each of them one stream in each direction:
// it reads both at once. Transports that are no pair of streams, such as HTTP,
// hand their messages to a session themselves (gateway/proxy).
//
// # Order
//
// Between two ends, messages of one direction are written in the order in which they were read.
// The exception is a message that a plan governs: it waits for its plan beside
// the stream, and is written when the plan has released it. Nothing else waits
// for it. A notifications/cancelled never passes the request it names: while
// that request waits for its plan the plan is cancelled, and neither of the two
// is written. Plans that run at once are bounded in number and bytes; above the
// bound, and when the other side reads slowly, the relay stops reading.
//
// # What it may not know
//
// Transports, processes, hosts, interceptors and configuration. An [End] is
// four methods; [Lines] is the end for the stdio transport.
//
// # Use
//
//	err := relay.Run(ctx, relay.Stdio(os.Stdin, os.Stdout, limit), backend, relay.Options{
//		Governor: governor,
//		Boundary: relay.GuardClient,
//	})
package relay
