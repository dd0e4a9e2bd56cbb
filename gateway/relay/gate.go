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
// large. It is false when the gate was closed, or ctx ended before there was room.
func (g *gate) enter(ctx context.Context, size int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed && g.crowded(size) {
		defer g.wakeAt(ctx)()
		for !g.closed && g.crowded(size) && ctx.Err() == nil {
			g.changed.Wait()
		}
		if ctx.Err() != nil {
			return false
		}
	}
	if g.closed {
		return false
	}
	g.number++
	g.bytes += size
	return true
}

func (g *gate) crowded(size int) bool {
	return g.number > 0 && (g.number >= g.limit || g.bytes+size > g.maxBytes)
}

// wakeAt wakes those who wait when ctx ends. What it returns calls that off.
func (g *gate) wakeAt(ctx context.Context) func() bool {
	return context.AfterFunc(ctx, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.changed.Broadcast()
	})
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
	defer g.wakeAt(ctx)()
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.number > 0 && ctx.Err() == nil {
		g.changed.Wait()
	}
	return g.number == 0
}
