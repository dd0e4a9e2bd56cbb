// Package mockhost is a host of interceptors that does as it is told and
// records every call. It is for tests only.
//
// A [Host] is a list of interceptors with a [Behaviour] each: behaviours can be
// slow, fail, lose the connection, ignore their context, and answer wrongly.
// It implements chain.Host by itself, and serves the same list as an MCP
// interceptor server over any transport ([Host.Server]), where what a behaviour
// does happens to the connection.
//
// # What it may not know
//
// Plans, policy and who calls it. It imports abi, so that the tests of
// gateway/chain can use it.
//
// # Use
//
//	h := mockhost.New("h", mockhost.Mutator("m", mockhost.Tag), mockhost.Validator("v", mockhost.Broken, mockhost.FailOpen))
//	r, err := h.Invoke(ctx, inv)
//	h.Calls("v")
package mockhost
