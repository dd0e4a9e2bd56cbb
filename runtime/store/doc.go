// Package store keeps what modules remember from call to call: the values
// behind the grant kv (abi.md "What a module can reach").
//
// [Store] is what the sandbox needs of a store, [Memory] the one that lives in
// this process and ends with it. A store that several processes share implements
// the same interface; [Space] and the errors are all that they have in common.
//
// It may not know modules, callers or protocols: who asks is a Space by the time
// it gets here, and how large a key or a value may be has been checked.
//
//	kv := store.NewMemory(store.Limits{})
//	alice := store.Space{Host: "local", File: "quota.wasm", Scope: store.Principal, Owner: "user:alice"}
//	n, err := kv.Add(ctx, alice, "calls", 1, time.Minute) // 1, 2, 3, … within the minute
package store
