// Package abi holds the words that everyone who deals with interceptors
// shares: descriptors and their hooks, events and phases, invocations and
// results, errors with their reasons, and the frames that cross the border
// between a host and a WebAssembly module.
//
// It is compiled into hosts and into guests, so it imports the standard
// library only, keeps no state and does no I/O. It knows neither engines nor
// transports nor chains. The rules it writes down are those of protocol.md
// (§1-§4) and abi.md.
//
// Reading is tolerant and writing is canonical (protocol.md §2): [ReadDescriptor]
// takes the spellings that the published drafts have used, and
// [Descriptor.AppendJSON] writes exactly one. Member names are compared byte
// for byte, unlike encoding/json's, because a reader that takes "Type" for
// "type" disagrees with the next reader about what a message says.
//
// Payloads are raw JSON throughout. Nothing here decodes one: what an
// interceptor did not change keeps its spelling.
//
// The functions are pure and safe for concurrent use; so are the values, as
// long as nobody writes to the byte slices they share with their input.
package abi
