package gateway

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/chain"
)

// Resolver says which hosts govern an operation besides the configured ones, by
// its message and by whom it runs for: c is its context with all claims. The
// zero [Resolved] is none.
//
// It is asked once for each governed phase, from many goroutines, within the
// aggregate deadline. Its failure, its panic and its silence until the deadline
// block the operation (abi.StatusDiscoveryFailed). It must change neither op nor
// c.
type Resolver func(ctx context.Context, op *Operation, c *abi.Context) (Resolved, error)

// Resolved names the hosts that a [Resolver] chose.
type Resolved struct {
	// Key names the set: operations with one key share it. It must stand for all
	// that the set depends on, the tenant with its credentials included. Empty is
	// none.
	Key string
	// Open makes the set of that key when none is open, such as by
	// hosts.NewSet. It is called once and should do no I/O: hosts connect when
	// they are first asked. The chain owns what it returns, see
	// [ChainOptions.ResolvedSets].
	Open func() (Hosts, error)
}

// The defaults of [ChainOptions] about resolved sets.
const (
	DefaultResolvedSets = 64
	DefaultResolvedIdle = 5 * time.Minute
)

// closing is how long a resolved set gets to close, and resolving bounds the
// calls of a resolver in progress, those included that did not end in time.
const (
	closing   = 5 * time.Second
	resolving = 256
)

// resolver keeps the sets that are open.
type resolver struct {
	resolve Resolver
	base    Hosts
	policy  *chain.Policy
	limit   int
	idle    time.Duration
	calls   chan struct{}

	mu      sync.Mutex
	sets    map[string]*resolvedSet
	clock   uint64 // of uses
	leaving int    // sets that close in the background
	closed  bool
	gone    sync.WaitGroup
}

// resolvedSet is an open set with the plans over it and the configured hosts.
// It closes when it has been thrown out and nobody holds it.
type resolvedSet struct {
	source
	key  string
	open sync.Once
	err  error
	own  Hosts

	// Under the resolver's lock.
	holds int
	used  uint64
	out   bool // no longer in sets
	timer *time.Timer
}

func newResolver(o *ChainOptions) *resolver {
	r := &resolver{resolve: o.Resolver, base: o.Hosts, policy: o.Policy, limit: o.ResolvedSets, idle: o.ResolvedIdle,
		calls: make(chan struct{}, resolving), sets: map[string]*resolvedSet{}}
	if r.limit <= 0 {
		r.limit = DefaultResolvedSets
	}
	if r.idle <= 0 {
		r.idle = DefaultResolvedIdle
	}
	return r
}

// hold asks the resolver and gives the set that it chose, held once, or nil for
// none.
func (r *resolver) hold(ctx context.Context, op *Operation, c *abi.Context) (*resolvedSet, error) {
	chosen, err := r.ask(ctx, op, c)
	switch {
	case err != nil:
		return nil, err
	case chosen.Key == "":
		return nil, nil
	case chosen.Open == nil:
		return nil, errors.New("the resolver gave a key and no way to open its set")
	}
	s, err := r.take(chosen.Key)
	if err != nil {
		return nil, err
	}
	s.open.Do(func() {
		if s.own, s.err = openSet(chosen.Open); s.err == nil {
			s.hosts = Join(r.base, s.own)
		}
	})
	if s.err != nil {
		r.drop(s)
		return nil, s.err
	}
	return s, nil
}

// ask keeps a resolver that hangs or panics to the operation it was asked about.
func (r *resolver) ask(ctx context.Context, op *Operation, c *abi.Context) (Resolved, error) {
	select {
	case r.calls <- struct{}{}:
	case <-ctx.Done():
		return Resolved{}, fmt.Errorf("there was no time left to ask the resolver: %w", context.Cause(ctx))
	}
	type answer struct {
		Resolved
		err error
	}
	answered := make(chan answer, 1)
	go func() {
		defer func() { <-r.calls }()
		a := answer{err: errors.New("the resolver ended its goroutine")}
		defer func() {
			if v := recover(); v != nil {
				a = answer{err: fmt.Errorf("the resolver panicked: %v\n%s", v, debug.Stack())}
			}
			answered <- a
		}()
		chosen, err := r.resolve(ctx, op, c)
		if err != nil {
			err = fmt.Errorf("the resolver failed: %w", err)
		}
		a = answer{chosen, err}
	}()
	select {
	case a := <-answered:
		return a.Resolved, a.err
	case <-ctx.Done():
		return Resolved{}, fmt.Errorf("the resolver has not answered in time: %w", context.Cause(ctx))
	}
}

func openSet(open func() (Hosts, error)) (hosts Hosts, err error) {
	defer func() {
		if v := recover(); v != nil {
			hosts, err = nil, fmt.Errorf("opening the resolved hosts panicked: %v\n%s", v, debug.Stack())
		}
	}()
	switch hosts, err = open(); {
	case err != nil:
		return nil, fmt.Errorf("the resolved hosts do not open: %w", err)
	case hosts == nil:
		return nil, errors.New("opening the resolved hosts gave none")
	}
	return hosts, nil
}

var errResolverClosed = errors.New("the chain is closed")

// take gives the set of a key, held once more. It may be yet to be opened.
func (r *resolver) take(key string) (*resolvedSet, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, errResolverClosed
	}
	s := r.sets[key]
	if s == nil {
		if len(r.sets) >= r.limit {
			oldest := r.oldestIdle()
			if oldest == nil || r.leaving >= r.limit {
				return nil, fmt.Errorf("all %d sets of resolved hosts are in use", r.limit)
			}
			r.throwOut(oldest)
		}
		s = &resolvedSet{key: key, source: source{plans: plans{policy: r.policy}}}
		r.sets[key] = s
	}
	r.clock++
	s.used = r.clock
	s.holds++
	if s.timer != nil {
		s.timer.Stop()
	}
	return s, nil
}

func (r *resolver) oldestIdle() (oldest *resolvedSet) {
	for _, s := range r.sets {
		if s.holds == 0 && (oldest == nil || s.used < oldest.used) {
			oldest = s
		}
	}
	return oldest
}

// again holds a set once more that is held.
func (r *resolver) again(s *resolvedSet) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.holds++
}

// release takes a hold back. A set that nobody uses for a while closes.
func (r *resolver) release(s *resolvedSet) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.holds--; s.holds > 0 {
		return
	}
	if s.out {
		r.close(s)
		return
	}
	used := s.used
	s.timer = time.AfterFunc(r.idle, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if !s.out && s.holds == 0 && s.used == used {
			r.throwOut(s)
		}
	})
}

// drop is release for a set that did not open: the next operation tries again.
func (r *resolver) drop(s *resolvedSet) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.holds--
	if !s.out {
		s.out = true
		delete(r.sets, s.key)
	}
}

// throwOut forgets a set; it closes once nobody holds it.
func (r *resolver) throwOut(s *resolvedSet) {
	s.out = true
	delete(r.sets, s.key)
	if s.timer != nil {
		s.timer.Stop()
	}
	if s.holds == 0 {
		r.close(s)
	}
}

// close closes a set beside everything else.
func (r *resolver) close(s *resolvedSet) {
	if s.own == nil {
		return
	}
	r.leaving++
	r.gone.Add(1)
	go func() {
		defer r.gone.Done()
		ctx, cancel := context.WithTimeout(context.Background(), closing)
		defer cancel()
		_ = s.own.Close(ctx)
		r.mu.Lock()
		r.leaving--
		r.mu.Unlock()
	}()
}

// closeAll closes what is open, as far as ctx lasts. Sets that operations hold
// close when those end.
func (r *resolver) closeAll(ctx context.Context) error {
	r.mu.Lock()
	r.closed = true
	held := 0
	for _, s := range r.sets {
		if s.holds > 0 {
			held++
		}
		r.throwOut(s)
	}
	r.mu.Unlock()
	done := make(chan struct{})
	go func() {
		r.gone.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		return fmt.Errorf("resolved hosts are still closing: %w", ctx.Err())
	}
	if held > 0 {
		return fmt.Errorf("%d sets of resolved hosts are in use; they close when their operations end", held)
	}
	return nil
}
