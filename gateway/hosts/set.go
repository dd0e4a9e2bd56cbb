package hosts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/chain"
)

// DefaultFresh is how old a list may get before it is fetched again. Nothing
// tells of a change on a host elsewhere, since the drafts have no notification
// for it; so this is also how long such a change may take to be in force.
const DefaultFresh = time.Minute

// SetOptions configure a [Set].
type SetOptions struct {
	// Fresh is the age at which a list is fetched again in the background, or a
	// little before; no list older than twice that is used. 0 is [DefaultFresh].
	Fresh time.Duration
}

// Set is all configured hosts, in order.
type Set struct {
	hosts []*Host
	view  atomic.Pointer[view]
	mu    sync.Mutex // of changes to view
}

// view is what is known of all hosts at one time. It is never changed.
type view struct {
	listings []chain.Listing
	version  uint64
}

// NewSet takes hosts in the configured order, and takes them over: they are
// closed with the set and belong to no other.
func NewSet(hosts []*Host, o SetOptions) *Set {
	if o.Fresh <= 0 {
		o.Fresh = DefaultFresh
	}
	s := &Set{hosts: hosts}
	first := &view{version: 1, listings: make([]chain.Listing, len(hosts))}
	for i, h := range hosts {
		first.listings[i] = chain.Listing{Host: h, FailOpen: h.failOpen, Err: fmt.Errorf("host %q: has not been listed yet", h.name)}
		h.fresh = o.Fresh
		h.publish = func(l chain.Listing) { s.publish(i, l) }
	}
	s.view.Store(first)
	return s
}

// Listings is what the hosts offer, one listing for each in the configured
// order. It asks those of which no valid list is known, in parallel, and waits
// for them as long as ctx allows: a host that has not answered by then is
// listed with an error. One that fails open is waited for no longer than 2 s,
// one whose breaker is open not at all. Else it costs a few loads.
//
// The version grows whenever the listings differ from those before, so that
// plans may be kept for it. It is 0 where ctx cut the wait short: such listings
// are good for one operation only. The slice and what it holds are shared and
// must not be changed.
func (s *Set) Listings(ctx context.Context) ([]chain.Listing, uint64) {
	now := time.Now()
	type awaited struct {
		host   int
		flight *flight
	}
	var wanted []awaited
	for i, h := range s.hosts {
		switch h.needs(now) {
		case refresh:
			h.discover()
		case wait:
			wanted = append(wanted, awaited{i, h.discover()})
		}
	}
	var late []int
	for _, w := range wanted {
		if !s.hosts[w.host].await(ctx, w.flight) {
			late = append(late, w.host)
		}
	}
	v := s.view.Load()
	if late == nil {
		return v.listings, v.version
	}
	listings := slices.Clone(v.listings)
	for _, i := range late {
		h := s.hosts[i]
		listings[i] = chain.Listing{Host: h, FailOpen: h.failOpen,
			Err: fmt.Errorf("host %q: has not answered in time: %w", h.name, context.Cause(ctx))}
	}
	return listings, 0
}

func (s *Set) publish(i int, l chain.Listing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.view.Load()
	if sameListing(&old.listings[i], &l) {
		return
	}
	next := &view{version: old.version + 1, listings: slices.Clone(old.listings)}
	next.listings[i] = l
	s.view.Store(next)
}

func sameListing(a, b *chain.Listing) bool {
	return errText(a.Err) == errText(b.Err) && slices.EqualFunc(a.Skipped, b.Skipped, sameSkip) && sameInterceptors(a.Interceptors, b.Interceptors)
}

func sameInterceptors(a, b []abi.Descriptor) bool {
	if len(a) != len(b) {
		return false
	}
	if len(a) == 0 || &a[0] == &b[0] {
		return true
	}
	return string(abi.AppendPage(nil, a, "")) == string(abi.AppendPage(nil, b, ""))
}

// Close ends all connections and the processes behind them, in parallel, and
// waits until they are gone: a peer that does not leave when asked is cut off
// within 2 s. When ctx ends before that, Close returns an error and the rest
// goes on by itself.
func (s *Set) Close(ctx context.Context) error {
	errs := make([]error, len(s.hosts))
	var all sync.WaitGroup
	for i, h := range s.hosts {
		all.Go(func() { errs[i] = h.close(ctx) })
	}
	all.Wait()
	return errors.Join(errs...)
}
