package relay

import (
	"context"
	"sync"
)

// gate bounds the plans that run at once, by their number and by the bytes of
// their messages.
type gate struct {
	mu       sync.Mutex
	changed  sync.Cond
	number   int
	bytes    int
	limit    int
	maxBytes int
	closed   bool
}

func newGate(limit, maxBytes int) *gate {
	g := &gate{limit: limit, maxBytes: maxBytes}
	g.changed.L = &g.mu
	return g
}

// enter waits for room and takes it. One message always has room, however
// large. It is false when the gate was closed.
func (g *gate) enter(size int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for !g.closed && g.number > 0 && (g.number >= g.limit || g.bytes+size > g.maxBytes) {
		g.changed.Wait()
	}
	if g.closed {
		return false
	}
	g.number++
	g.bytes += size
	return true
}

func (g *gate) leave(size int) {
	g.mu.Lock()
	g.number--
	g.bytes -= size
	g.mu.Unlock()
	g.changed.Broadcast()
}

// close lets nobody enter any more.
func (g *gate) close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.changed.Broadcast()
}

// wait returns when nobody is inside, or false when ctx ends before.
func (g *gate) wait(ctx context.Context) bool {
	stop := context.AfterFunc(ctx, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.changed.Broadcast()
	})
	defer stop()
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.number > 0 && ctx.Err() == nil {
		g.changed.Wait()
	}
	return g.number == 0
}
