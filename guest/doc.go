// Package guest is the Go SDK for interceptor modules: a program that registers
// validators, mutators and sinks in its init functions is compiled to
// WebAssembly, dropped into a folder, and governs MCP traffic from then on.
//
//	type config struct {
//		Deny []string `json:"deny" doc:"names of tools that may not be called"`
//	}
//
//	func init() {
//		guest.Validator(guest.Descriptor{
//			Name:  "deny-tools",
//			Hooks: guest.OnRequest(guest.ToolsCall),
//		}, func(c *guest.Call[config]) (guest.Verdict, error) {
//			call, err := c.ToolCall()
//			if err != nil {
//				return guest.Verdict{}, err
//			}
//			if slices.Contains(c.Config.Deny, call.Name) {
//				return guest.Deny("tool %q may not be called here", call.Name).At("$.name"), nil
//			}
//			return guest.Allow(), nil
//		})
//	}
//
//	func main() {}
//
// Build it with
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -trimpath -ldflags='-s -w' -o deny-tools.wasm .
//
// The package speaks the reactor flavour of the module ABI (abi.md): importing
// it is enough to export weir_describe, weir_invoke and weir_reseed. Outside
// Wasm everything but the border is the same, and package guesttest calls it, so
// that interceptors are developed and tested natively.
//
// # Payloads
//
// Payloads are raw JSON, and an author who changes one is expected to leave the
// rest of its bytes as they were: [EditStrings], [Set] and [Remove] do. [Get],
// [GetText], [Members], [Elements], [WalkStrings], [Operation.ToolCall] and
// [Operation.ToolResult] read. All of them compare member names byte for byte.
// encoding/json, which takes "Name" for "name" and the last of two members for
// the one that counts, is for an interceptor's own config, not for payloads.
//
// # State
//
// A module has no state of its own: every call begins with what init functions
// left behind, and what a call changes is gone when it is over (abi.md,
// Isolation), except in the store that an operator may grant ([KV]). So package variables are for what is computed once, such as
// compiled patterns. [Rand] says what that means for random numbers.
//
// It may know package abi and the standard library, nothing of hosts.
package guest
