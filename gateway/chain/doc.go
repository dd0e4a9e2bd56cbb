// Package chain decides which interceptors see an operation, in which order,
// and what becomes of it: a pure planner and one executor (protocol.md §5).
//
// # What it is for
//
// [NewPlan] merges what all hosts list with the operator's [Policy] into one
// immutable [Plan] for an event, a phase, a direction and a protocol version.
// [Executor.Execute] runs an operation through a plan and says in an [Outcome]
// whether its payload is released, and which bytes.
//
// # What it may not know
//
// Transports, connections, caches, files and messages. It does no I/O of its
// own: lists come in as [Listing] values, invocations go out through [Host].
// Planning is a function of its arguments; payloads and timing never influence
// a plan, so callers may cache one for as long as lists and policy stay.
//
// # How to use it
//
//	policy, err := chain.NewPolicy(entries)      // once, at load
//	plan := chain.NewPlan(listings, policy, event, phase, direction, version)
//	x := chain.NewExecutor(chain.Options{Sinks: sinks})
//	out := x.Execute(ctx, plan, chain.Operation{Payload: params, Arrived: arrived, Timeout: aggregate})
//	if out.Released() {
//		forward(out.FinalPayload)
//	}
//
// # What it settles where protocol.md leaves room
//
//   - An `as` entry without a host makes a copy on each host that lists the
//     interceptor: dropping a guard on one of two hosts would be worse.
//   - Of two descriptors with one name on one host the first counts; the second
//     is left out as a duplicate.
//   - A descriptor whose name a copy bears already is refused like one that an
//     override would widen: it fails under its own mode and failOpen. So no
//     host can switch a copy off by listing its name.
//   - An entry's `required` concerns every interceptor that the entry addresses:
//     one at least must be listed, and none of them may be malformed, refused,
//     disabled or left out by compat. An entry without a host can be met by
//     any host, so name the host of a guard that matters.
//   - A config that is not of its interceptor's schema is refused like hooks that
//     widen, where the policy checks configs ([Policy.CheckConfigs]).
//   - What was wrong with a payload before a mutation, and still is in the same
//     way, such as `"arguments":null`, is no fault of the mutation.
//   - `mode: audit` of a `*` entry passes over sinks, which have no audit mode.
//   - An answer that arrives after the deadline of its invocation is a timeout,
//     whatever it says.
//   - The aggregate deadline bounds what the requester waits for. Nobody waits
//     for sinks: they start whenever the passes before them released, and have
//     a limit of their own.
package chain
