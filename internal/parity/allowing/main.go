// Command allowing is a module whose interceptors see everything and change
// nothing: a validator, a mutator and a sink on every event in both phases.
package main

import "github.com/weir-mcp/weir/guest"

func init() {
	guest.Validator(guest.Descriptor{Name: "allow-all", Hooks: guest.OnBoth("*")},
		func(*guest.Call[guest.NoConfig]) (guest.Verdict, error) { return guest.Allow(), nil })
	guest.Mutator(guest.Descriptor{Name: "identity", Hooks: guest.OnBoth("*")},
		func(*guest.Call[guest.NoConfig]) (guest.Mutation, error) { return guest.Unchanged(), nil })
	guest.Sink(guest.Descriptor{Name: "watch", Hooks: guest.OnBoth("*")},
		func(*guest.Call[guest.NoConfig]) (guest.Record, error) { return guest.Recorded(), nil })
}

func main() {}
