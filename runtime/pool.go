package runtime

import (
	"slices"
	"sync"
	"time"
)

// idleTime is how long a guest waits for a call before it is closed: the next
// one is made from the snapshot in less than a millisecond.
const idleTime = 30 * time.Second

// pool keeps the guests of a module that wait for a call, all in the state of
// one snapshot. A module has no more guests than calls that run at once, since
// each belongs to a call or waits here.
type pool struct {
	mu       sync.Mutex
	most     int
	snapshot *snapshot // nil until there is one
	idle     []*guest  // who came last is taken first
	closed   bool
	sweep    *time.Timer
}

// open has the pool keep guests in the state of the snapshot, whose use it takes
// over, and no others; the first is here. It reports false when the pool is
// closed; both are the caller's to free then.
func (p *pool) open(s *snapshot, first *guest) bool {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return false
	}
	old, others := p.snapshot, p.idle
	p.snapshot, p.idle = s, nil
	p.add(first)
	p.mu.Unlock()
	closeAll(others)
	if old != nil {
		old.release()
	}
	return true
}

// take gives a guest, if one waits, or else a use of the snapshot, if there is
// one.
func (p *pool) take() (*guest, *snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.idle) - 1
	if last < 0 {
		if p.snapshot == nil {
			return nil, nil
		}
		return nil, p.snapshot.retain()
	}
	g := p.idle[last]
	p.idle[last] = nil
	p.idle = p.idle[:last]
	return g, nil
}

// put gives a guest back that is in the state of its snapshot. It reports false
// when there is no place for it, or that is not the snapshot any more: the
// caller closes it.
func (p *pool) put(g *guest) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || g.from != p.snapshot || len(p.idle) >= p.most {
		return false
	}
	p.add(g)
	return true
}

func (p *pool) add(g *guest) {
	g.idle = time.Now()
	p.idle = append(p.idle, g)
	if p.sweep == nil {
		p.sweep = time.AfterFunc(idleTime, p.shrink)
	}
}

// shrink closes the guests that have waited too long.
func (p *pool) shrink() {
	p.mu.Lock()
	due := time.Now().Add(-idleTime)
	n := 0 // they are in the order in which they came
	for n < len(p.idle) && !p.idle[n].idle.After(due) {
		n++
	}
	old := slices.Clone(p.idle[:n])
	p.idle = slices.Delete(p.idle, 0, n)
	if len(p.idle) > 0 && !p.closed {
		p.sweep.Reset(p.idle[0].idle.Sub(due))
	} else {
		p.sweep = nil
	}
	p.mu.Unlock()
	closeAll(old)
}

// drain closes the guests that wait.
func (p *pool) drain() {
	p.mu.Lock()
	all := p.idle
	p.idle = nil
	p.mu.Unlock()
	closeAll(all)
}

// close closes the guests that wait and the snapshot. None may come any more.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	if p.sweep != nil {
		p.sweep.Stop()
	}
	s := p.snapshot
	p.snapshot = nil
	p.mu.Unlock()
	p.drain()
	if s != nil {
		s.release()
	}
}

func closeAll(guests []*guest) {
	for _, g := range guests {
		g.close()
	}
}
