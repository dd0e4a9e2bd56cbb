package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/weir-mcp/weir/abi"
)

// call is what one run of a guest may see and what comes of it. Host functions
// find it in their context. It belongs to the goroutine that runs the guest.
type call struct {
	m       *Module
	command bool

	input     []byte // what weir.input or stdin hands over; nil in describe
	inputRead int    // how much of stdin a command has read
	args      []string

	output    []byte
	hasOutput bool

	clock guestClock
	log   guestLog
	kv    kvAccess // of an invocation; none in describe and rehearsals
	tank  tank
	stack stackRoom

	// rehearsal: this is a call of the warm-up. What it logs is dropped, and
	// whatever it is granted beyond itself is unavailable.
	rehearsal bool
}

// newCall prepares a run. What the guest logs is marked with the attributes.
func (m *Module) newCall(input []byte, attrs ...slog.Attr) *call {
	return &call{
		m:       m,
		command: m.flavour == Command,
		input:   input,
		clock:   guestClock{real: m.grants.Clock},
		log:     newGuestLog(m.logger, m.limits, append([]slog.Attr{slog.String("module", m.name)}, attrs...)),
	}
}

// newRehearsal prepares a run of the warm-up.
func (m *Module) newRehearsal(input []byte) *call {
	c := m.newCall(input)
	c.rehearsal = true
	c.log.logger, c.log.lines = slog.New(slog.DiscardHandler), 0
	return c
}

// failedIn is failed in a stage before or beside the call itself.
func (c *call) failedIn(stage string, g *guest, err error) *failure {
	f := c.failed(g, err)
	f.stage = stage
	return f
}

// failed tells why a run in the guest came to nothing, with the guest's last
// words. A guest that was refused memory or elements of a table and then dies
// of whatever died of that.
func (c *call) failed(g *guest, err error) *failure {
	f := *failureOf(err)
	if g != nil && g.wasRefused() && (f.reason == abi.ReasonTrap || f.reason == abi.ReasonExit) {
		f.reason = abi.ReasonMemory
		f.cause = fmt.Errorf("%w (after it was refused more memory)", f.cause)
	}
	if words := c.log.lastWords(); words != "" {
		f.cause = fmt.Errorf("%w; the guest's last words: %s", f.cause, words)
	}
	f.cause = bounding(f.cause)
	return &f
}

type callKey struct{}

// context returns ctx with the call in it. It must be the outermost value, so
// that host functions find it in one step.
func (c *call) context(ctx context.Context) context.Context {
	return context.WithValue(ctx, callKey{}, c)
}

func callOf(ctx context.Context) *call { return ctx.Value(callKey{}).(*call) }

// exited is how proc_exit ends a guest.
type exited struct{ code uint32 }

func (e *exited) Error() string { return fmt.Sprintf("the guest called proc_exit(%d)", e.code) }

// exitCode returns the code with which a guest left by proc_exit.
func exitCode(err error) (uint32, bool) {
	if e, ok := errors.AsType[*exited](err); ok {
		return e.code, true
	}
	return 0, false
}

// maxAnswer is how many bytes a guest may hand over.
func (c *call) maxAnswer() int64 { return c.m.limits.OutputBytes + answerOverhead }
