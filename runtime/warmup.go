package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/runtime/memory"
)

// A warm-up gets, in all and for each made-up call (abi.md "Load").
const (
	warmupTime     = time.Second
	warmupCallTime = 250 * time.Millisecond
	warmupCalls    = 8
)

// settle warms the module up on the guest that has described itself, and
// captures the state that calls start from. It runs beside calls, which get
// fresh instances until it is done.
func (m *Module) settle(g *guest) {
	defer m.leave()
	defer close(m.settled)
	select {
	case m.runtime.warmups <- struct{}{}:
		defer func() { <-m.runtime.warmups }()
	case <-m.life.Done():
		g.close()
		return
	}
	g, err := m.warm(g)
	if err == nil {
		err = m.capture(g)
	}
	if m.life.Err() != nil {
		return
	}
	if err == nil {
		m.renewal.captured()
		return
	}
	m.setReset(fmt.Sprintf("%v: its state could not be captured yet: %v", memory.Fresh, err))
	m.logger.LogAttrs(m.life, slog.LevelWarn, "every call of the module gets a fresh instance, until its state can be captured",
		slog.String("module", m.name), slog.Any("cause", err), slog.Duration("tryAgainIn", m.renewal.failed()))
}

// errFull is the failure of a warm-up that has taken all the memory there is: a
// call would have none.
var errFull = errors.New("the guest was refused more memory in it, which every call would lack")

// warm gives a guest whose state is to be captured: the one it was given, after
// a warm-up, or a new one where that failed.
func (m *Module) warm(g *guest) (*guest, error) {
	err := m.rehearse(g)
	if err == nil && g.wasRefused() {
		err = errFull
	}
	if err == nil {
		return g, nil
	}
	g.close()
	if m.life.Err() != nil {
		return nil, err
	}
	m.logger.LogAttrs(m.life, slog.LevelInfo, "the warm-up of the module failed: calls start from the state before it",
		slog.String("module", m.name), slog.Any("cause", err))
	c := m.newRehearsal(nil)
	defer c.end()
	return m.startGuest(c.context(m.life), c, within(m.limits.LoadTime))
}

func (m *Module) capture(g *guest) error {
	s, err := g.capture()
	if err != nil {
		g.close()
		return err
	}
	if !m.guests.open(s, g) {
		g.close()
		s.release()
	}
	return nil
}

// rehearse runs weir_warmup, or a made-up call of each interceptor and phase.
func (m *Module) rehearse(g *guest) error {
	all := within(warmupTime)
	try := func(input []byte, until deadline, budget int64, run func(ctx context.Context, c *call) error) error {
		c := m.newRehearsal(input)
		c.clock.slept = g.slept
		if err := c.begin(g, until, budget); err != nil {
			return err
		}
		defer c.end()
		err := run(c.context(m.life), c)
		g.slept = c.clock.slept
		return err
	}
	if m.warmup {
		return try(nil, all, 0, func(ctx context.Context, c *call) error { return g.call(ctx, c, abi.ExportWarmup) })
	}
	for _, inv := range m.rehearsals() {
		err := try(abi.AppendCall(nil, &inv), all.or(within(warmupCallTime)), m.limits.Fuel,
			func(ctx context.Context, c *call) error { return m.enact(ctx, c, g) })
		if err != nil {
			return fmt.Errorf("%s, %s: %w", inv.Name, inv.Phase, err)
		}
	}
	return nil
}

// rehearsals makes up one call for each interceptor and phase.
func (m *Module) rehearsals() (list []abi.Invocation) {
	for _, d := range m.descriptors {
		for _, phase := range []abi.Phase{abi.Request, abi.Response} {
			for _, h := range d.Hooks {
				if h.Phase != phase || len(h.Events) == 0 {
					continue
				}
				event := likelyEvent(h.Events)
				list = append(list, abi.Invocation{Name: d.Name, Event: event, Phase: phase, Payload: likelyPayload(event, phase)})
				break
			}
			if len(list) == warmupCalls {
				return list
			}
		}
	}
	return list
}

// likelyEvent picks an event that the patterns match.
func likelyEvent(patterns []string) string {
	for _, p := range patterns {
		if abi.MatchEvent(p, abi.ToolsCall) {
			return abi.ToolsCall
		}
	}
	return strings.ReplaceAll(patterns[0], "*", "list")
}

// likelyPayload is a payload of the event, so that the code that a real one
// runs is run once.
func likelyPayload(event string, phase abi.Phase) json.RawMessage {
	switch {
	case event != abi.ToolsCall:
		return json.RawMessage(`{}`)
	case phase == abi.Request:
		return json.RawMessage(`{"name":"warm-up","arguments":{"text":"Some words, an address (a@example.com) and\n a \"quote\".","number":1.5,"list":[1,true,null]}}`)
	default:
		return json.RawMessage(`{"content":[{"type":"text","text":"Some words, an address (a@example.com) and\n a \"quote\"."}],"isError":false}`)
	}
}

// Settled is closed once the warm-up that follows a load has ended, one way or
// the other: calls start from the captured state from then on, where there is
// one ([Module.Reset]).
func (m *Module) Settled() <-chan struct{} { return m.settled }

// Reset says how the module is made pristine for every call: [memory.Way] in
// words, and why where each call gets a fresh instance.
func (m *Module) Reset() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.reset
}

func (m *Module) setReset(text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reset = text
}
