package store_test

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-mcp/weir/runtime/store"
)

func ExampleMemory() {
	ctx := context.Background()
	kv := store.NewMemory(store.Limits{})
	of := func(owner string) store.Space {
		return store.Space{Host: "local", File: "quota.wasm", Scope: store.Principal, Owner: owner}
	}
	for _, owner := range []string{"user:alice", "user:alice", "user:bob"} {
		n, err := kv.Add(ctx, of(owner), "calls", 1, time.Minute)
		fmt.Println(owner, n, err)
	}
	text, ok, _ := kv.Get(ctx, of("user:alice"), "calls")
	fmt.Println(string(text), ok)
	// Output:
	// user:alice 1 <nil>
	// user:alice 2 <nil>
	// user:bob 1 <nil>
	// 2 true
}
