package processgroup

import (
	"context"
	"os/exec"
	"sync"
	"time"
)

// Group is a command that was started, and all that it started in its turn and
// that did not leave the group.
type Group struct {
	cmd    *exec.Cmd
	tree   tree
	exited chan struct{}
	gone   chan struct{}
	hurry  chan struct{} // closed when nobody wants what lingers

	stopping sync.Once
	mu       sync.Mutex // of reaped: no signal is sent once it is set
	reaped   bool
	err      error // of cmd.Wait, readable once gone is closed
}

// Start starts the command in a process group of its own and sees to its end:
// nobody else may call cmd.Wait. When the command ends by itself, what it left
// behind gets linger to say what it still has to say, and is killed then; 0 is
// at once. On systems where that is not safe it is always at once. The error is
// that of cmd.Start.
func Start(cmd *exec.Cmd, linger time.Duration) (*Group, error) {
	own(cmd)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	g := &Group{cmd: cmd, tree: adopt(cmd), exited: make(chan struct{}), gone: make(chan struct{}), hurry: make(chan struct{})}
	go g.watch(linger)
	return g, nil
}

// watch follows the command to its end. Until it is reaped its id, and so the
// group's, is nobody else's.
func (g *Group) watch(linger time.Duration) {
	waited := awaitExit(g.cmd)
	if !waited {
		linger, g.err = 0, g.cmd.Wait()
	}
	close(g.exited)
	if linger > 0 {
		timer := time.NewTimer(linger)
		select {
		case <-timer.C:
		case <-g.hurry:
			timer.Stop()
		}
	}
	g.mu.Lock()
	g.tree.kill(g.cmd)
	g.tree.close()
	g.reaped = true
	g.mu.Unlock()
	if waited {
		g.err = g.cmd.Wait()
	}
	close(g.gone)
}

// Exited is closed when the command itself has ended. It may not have been
// reaped, and what it left behind may linger.
func (g *Group) Exited() <-chan struct{} { return g.exited }

// Gone is closed when the command has been reaped and its group killed.
func (g *Group) Gone() <-chan struct{} { return g.gone }

// Err waits until the group is gone and gives what cmd.Wait returned: how the
// command ended. The command's ProcessState may be read then, too.
func (g *Group) Err() error {
	<-g.gone
	return g.err
}

// signal reaches the group while its number is its own.
func (g *Group) signal(send func(*exec.Cmd)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.reaped {
		send(g.cmd)
	}
}

// Stop ends the group by steps and returns when it is gone: hangUp, which closes
// the command's input, tells it that nothing more comes; after leave it is sent
// SIGTERM, and after patience more SIGKILL. A command that goes earlier takes
// the rest of its group with it at once. The end of ctx cuts both waits short.
// HangUp may be nil. Stop may be called again, and from several goroutines.
func (g *Group) Stop(ctx context.Context, hangUp func() error, leave, patience time.Duration) {
	g.stopping.Do(func() { close(g.hurry) })
	if hangUp != nil {
		_ = hangUp() // it may be closed already
	}
	if !g.exits(ctx, leave) {
		g.signal(g.tree.terminate)
		if !g.exits(ctx, patience) {
			g.signal(g.tree.kill)
		}
	}
	<-g.gone
}

// exits waits for the command's end, no longer than limit and ctx allow.
func (g *Group) exits(ctx context.Context, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-g.exited:
		return true
	case <-ctx.Done():
	case <-timer.C:
	}
	select { // both may have been ready
	case <-g.exited:
		return true
	default:
		return false
	}
}
