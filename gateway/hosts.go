package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/chain"
)

// Hosts is where interceptors come from: a *hosts.Set, what [Fixed] and [Join]
// make, or one of your own.
type Hosts interface {
	// Listings gives one listing for each host in the configured order and a
	// version that changes whenever they do, and then grows. Version 0 means that
	// ctx ended first and the listings are good for one operation only. It costs
	// little unless a host has to be asked.
	Listings(ctx context.Context) ([]chain.Listing, uint64)
	// Close ends all connections.
	Close(ctx context.Context) error
}

// Fixed is hosts whose lists never change, given whole: for an embedding program
// with a [chain.Host] of its own and no use for discovery. Closing it does
// nothing.
func Fixed(listings ...chain.Listing) Hosts { return fixed(slices.Clone(listings)) }

type fixed []chain.Listing

func (f fixed) Listings(context.Context) ([]chain.Listing, uint64) { return f, 1 }
func (fixed) Close(context.Context) error                          { return nil }

// Join is several hosts as one, in the order given, which it takes over. A host
// whose name another one before it bears cannot be told apart from that one by
// policy: it counts as one that cannot be listed, and blocks.
func Join(parts ...Hosts) Hosts { return &joined{parts: slices.Clone(parts)} }

type joined struct {
	parts []Hosts

	mu       sync.Mutex
	versions []uint64 // of the parts, when listings was made of theirs
	version  uint64
	listings []chain.Listing
}

// Listings asks all before it waits for one.
func (j *joined) Listings(ctx context.Context) ([]chain.Listing, uint64) {
	lists := make([][]chain.Listing, len(j.parts))
	versions := make([]uint64, len(j.parts))
	for i, p := range j.parts {
		lists[i], versions[i] = p.Listings(ended)
	}
	whole := true
	for i, p := range j.parts {
		if versions[i] == 0 {
			lists[i], versions[i] = p.Listings(ctx)
		}
		whole = whole && versions[i] > 0
	}
	if !whole {
		return merge(lists), 0
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.version > 0 && slices.Equal(versions, j.versions):
	case j.version > 0 && slices.ContainsFunc(indices(versions), func(i int) bool { return versions[i] < j.versions[i] }):
		// Somebody who asked before the lists changed, and goes on later.
		return merge(lists), 0
	default:
		j.versions, j.listings = versions, merge(lists)
		j.version++
	}
	return j.listings, j.version
}

func indices(s []uint64) []int {
	all := make([]int, len(s))
	for i := range all {
		all[i] = i
	}
	return all
}

// merge puts lists one behind the other.
func merge(lists [][]chain.Listing) []chain.Listing {
	merged := slices.Concat(lists...)
	seen := make(map[string]struct{}, len(merged))
	for i := range merged {
		host := merged[i].Host
		if host == nil {
			continue
		}
		name := host.Name()
		if _, ok := seen[name]; ok {
			merged[i] = chain.Listing{Host: host, Err: fmt.Errorf("host %q: another host has this name; give each its own", name)}
		}
		seen[name] = struct{}{}
	}
	return merged
}

// Close closes all parts, whatever one of them says.
func (j *joined) Close(ctx context.Context) error {
	errs := make([]error, len(j.parts))
	var all sync.WaitGroup
	for i, p := range j.parts {
		all.Go(func() { errs[i] = p.Close(ctx) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// nobody stands in for hosts that never came to be known.
type nobody string

func (n nobody) Name() string { return string(n) }

// Invoke is never called: a listing without a list has no steps.
func (n nobody) Invoke(_ context.Context, inv abi.Invocation) (abi.Result, error) {
	return abi.Result{}, abi.Failed(inv.Name, inv.Phase, abi.ReasonUnavailable, errors.New("no host"))
}

// ended is a context for asking without waiting.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()
