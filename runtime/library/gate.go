package library

import "sync"

// gate counts the calls inside something that will be closed one day.
type gate struct {
	mu      sync.Mutex
	inside  int
	closed  bool
	drained chan struct{} // closed when closed and nobody is inside
}

func newGate() *gate { return &gate{drained: make(chan struct{})} }

// enter is false when the gate is closed.
func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.inside++
	return true
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.inside--; g.closed && g.inside == 0 {
		close(g.drained)
	}
}

// close lets nobody in any more. What it returns is closed when the last one
// has left. It is called once.
func (g *gate) close() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed = true; g.inside == 0 {
		close(g.drained)
	}
	return g.drained
}
