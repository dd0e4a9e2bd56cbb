package runtime

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/runtime/meter"
)

// guest is an instance and the variables in it that the runtime knows.
type guest struct {
	instance Instance
	fuel     Global
	refused  Global
	saved    []Global  // what a snapshot keeps of it besides memory
	from     *snapshot // what it is put back to; nil for one that serves once
	idle     time.Time // since when

	// slept is how far the clock had been moved on by sleep when the guest's
	// state was made, which has seen that time: it must not go back.
	slept time.Duration
}

// snapshot is the state that every call of a module starts from. Its image is
// freed when nobody makes guests from it any more.
type snapshot struct {
	image   Image
	globals []uint64
	slept   time.Duration
	users   atomic.Int64
}

func (s *snapshot) retain() *snapshot {
	s.users.Add(1)
	return s
}

func (s *snapshot) release() {
	if s.users.Add(-1) == 0 {
		freeGuarded(s.image)
	}
}

var errGlobal = errors.New("the engine does not know a global that the module exports")

// newGuest makes an instance: one that has not been started, or with a snapshot
// one that is in its state.
func (m *Module) newGuest(ctx context.Context, from *snapshot) (*guest, error) {
	room := Room{Pages: m.maxPages, Account: m.runtime.account}
	if from != nil {
		room.Image = from.image
	}
	instance, err := instantiateGuarded(ctx, m.code, room)
	if err != nil {
		return nil, err
	}
	g := &guest{
		instance: instance, from: from,
		fuel: globalGuarded(instance, meter.ExportFuel), refused: globalGuarded(instance, meter.ExportRefused),
		saved: make([]Global, len(m.globals)),
	}
	missing := g.fuel == nil || g.refused == nil
	for i, saved := range m.globals {
		g.saved[i] = globalGuarded(instance, saved.Export)
		missing = missing || g.saved[i] == nil
	}
	if missing {
		g.close()
		return nil, errGlobal
	}
	if from != nil {
		g.slept = from.slept
		if err := g.set(from); err != nil {
			g.close()
			return nil, err
		}
	}
	return g, nil
}

// startGuest makes an instance and runs its start function and _initialize,
// which have no input and whose output is no answer. The run that it has begun
// goes on: the caller ends it.
func (m *Module) startGuest(ctx context.Context, c *call, until deadline) (*guest, error) {
	g, err := m.newGuest(ctx, nil)
	if err != nil {
		return nil, c.failedIn(stageInstance, nil, err)
	}
	err = c.begin(g, until, 0)
	stage := stageInstance
	for _, export := range m.starts {
		if err != nil {
			break
		}
		stage = stages[export]
		_, err = callGuarded(ctx, g.instance, export)
	}
	if err != nil {
		c.end()
		defer g.close()
		return nil, c.failedIn(stage, g, err)
	}
	c.output, c.hasOutput = nil, false
	g.slept = c.clock.slept
	return g, nil
}

// call calls a function that returns a status, 0 for success.
func (g *guest) call(ctx context.Context, c *call, export string, args ...uint64) error {
	result, err := callGuarded(ctx, g.instance, export, args...)
	if status := int32(result); err == nil && status != 0 {
		err = failuref(abi.ReasonGuest, "%s returned %d", export, status)
	}
	if err == nil {
		err = c.tank.settle()
	}
	if err != nil {
		return c.failedIn(stages[export], g, err)
	}
	return nil
}

// capture freezes the state, which the guest is put back to from then on. The
// caller has the one use of it.
func (g *guest) capture() (*snapshot, error) {
	s := &snapshot{globals: make([]uint64, len(g.saved)), slept: g.slept}
	s.users.Store(1)
	err := g.get(s)
	if err != nil {
		return nil, err
	}
	if s.image, err = captureGuarded(g.instance); err != nil {
		return nil, err
	}
	if err := g.set(s); err != nil {
		s.release()
		return nil, err
	}
	g.from = s
	return s, nil
}

// restore puts the guest back to its snapshot. After an error it is good for
// close only.
func (g *guest) restore() error {
	if err := restoreGuarded(g.instance); err != nil {
		return err
	}
	return g.set(g.from)
}

// get notes the globals as they are.
func (g *guest) get(s *snapshot) (err error) {
	defer recoverFault(&err)
	for i, global := range g.saved {
		s.globals[i] = global.Get()
	}
	return nil
}

// set sets the globals as they were. The fuel is set by every run.
func (g *guest) set(s *snapshot) (err error) {
	defer recoverFault(&err)
	for i, global := range g.saved {
		global.Set(s.globals[i])
	}
	g.refused.Set(0)
	return nil
}

// wasRefused reports whether growth was refused to the guest in this call.
func (g *guest) wasRefused() bool {
	return guarded(0, g.refused.Get) != 0
}

// close frees the instance. It must not be running.
func (g *guest) close() { _ = closeGuarded(g.instance) }
