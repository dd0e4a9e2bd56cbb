package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// BackendGone is the error of a session whose backend ended first.
type BackendGone struct {
	// Spoke says that the backend had sent at least one message.
	Spoke bool
	// Open is how many requests of the client were left without an answer; each
	// has been answered with an error.
	Open int
	// Err is what reading from the backend gave, nil for a plain end.
	Err error
}

// Error says what happened.
func (e *BackendGone) Error() string {
	s := "the backend closed the connection"
	if !e.Spoke {
		s += " before it had sent a message"
	}
	if e.Open > 0 {
		s += fmt.Sprintf(" with %d requests open", e.Open)
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap gives the error of the read.
func (e *BackendGone) Unwrap() error { return e.Err }

// ErrTooManyMarks ends a session in which one side has cancelled more requests
// than are remembered (protocol.md §6).
var ErrTooManyMarks = errors.New("too many cancelled requests in one session")

// Run relays between two ends until one of them is done, then closes both.
//
// When the client has nothing more to say, what it asked for is still decided,
// forwarded and answered, for at most [Options.Drain]; then the backend is told
// to end and gets [Options.Grace]. The error is nil, or the client's read
// error. When the backend ends first, every open request is answered with an
// error and Run returns a [*BackendGone]. When ctx ends, no new request is
// taken, plans in progress get the grace, what is still open is answered with
// an error, and the error is ctx's cause.
//
// Run returns when all it started has ended, as far as Close of both ends makes
// their Read and Write return.
func Run(ctx context.Context, client, backend End, o Options) error {
	o = o.withDefaults()
	s := &session{
		Options: o,
		client:  newPeer(Client, client, o.Limits),
		backend: newPeer(Backend, backend, o.Limits),
		fatal:   make(chan error, 1),
		names:   newNames(o.Limits.Names),
	}
	s.plans, s.stopPlans = context.WithCancel(context.WithoutCancel(ctx))
	return s.run(ctx)
}

// session is one client and one backend.
type session struct {
	Options
	client, backend *peer
	names           *names
	// version is the negotiated protocol version, once known.
	version atomic.Pointer[string]

	// plans is the context of all plans.
	plans     context.Context
	stopPlans context.CancelFunc
	// fatal takes the first reason to end the session at once.
	fatal chan error
}

// peer is one side: its end, the requests it has made, and the plans of the
// messages that came from it.
type peer struct {
	side  Side
	end   End
	asked *table
	gate  *gate

	// write serialises messages to this peer, and what must be decided in the
	// moment of writing.
	write sync.Mutex
	// deaf is closed once writing to it has failed.
	deaf     chan struct{}
	deafOnce sync.Once
	spoke    atomic.Bool
	// ended is closed when its pump has ended, with readErr.
	ended   chan struct{}
	readErr error
}

func newPeer(side Side, end End, l Limits) *peer {
	return &peer{
		side: side, end: end, asked: newTable(l), gate: newGate(l.Plans, l.PlanBytes),
		deaf: make(chan struct{}), ended: make(chan struct{}),
	}
}

func (s *session) other(p *peer) *peer {
	if p == s.client {
		return s.backend
	}
	return s.client
}

// send writes one message.
func (s *session) send(to *peer, message []byte) {
	to.write.Lock()
	defer to.write.Unlock()
	s.sendLocked(to, message)
}

// sendLocked writes one message while to.write is held. A peer that cannot be
// written to takes nothing more; the session then ends by what [session.run]
// makes of it.
func (s *session) sendLocked(to *peer, message []byte) {
	select {
	case <-to.deaf:
		return
	default:
	}
	stalled := time.AfterFunc(s.Stall, func() { s.giveUp(to, errStalled) })
	err := to.end.Write(message)
	stalled.Stop()
	if err != nil {
		s.giveUp(to, err)
	}
}

var errStalled = errors.New("it has not read for too long")

// giveUp says that a peer takes nothing more. A write to it that is under way
// ends when the session does.
func (s *session) giveUp(to *peer, err error) {
	to.deafOnce.Do(func() {
		s.Logger.Debug("writing failed", "to", to.side.String(), "error", err)
		close(to.deaf)
	})
}

// fail ends the session at once.
func (s *session) fail(err error) {
	select {
	case s.fatal <- err:
	default:
	}
}

func (s *session) run(ctx context.Context) error {
	go s.pump(s.client)
	go s.pump(s.backend)

	var err error
	select {
	case <-s.client.ended:
		if s.client.readErr != io.EOF {
			err = fmt.Errorf("reading from the client: %w", s.client.readErr)
		}
		s.finishClient(ctx)
	case <-s.client.deaf:
		err = errors.New("the client does not take messages any more")
	case <-s.backend.ended:
		err = s.backendGone(ctx, s.backend.readErr)
	case <-s.backend.deaf:
		// What it still said before it went is worth reading.
		readErr := errors.New("it does not take messages any more")
		if waitFor(ctx, s.Grace, s.backend.ended) {
			readErr = s.backend.readErr
		}
		err = s.backendGone(ctx, readErr)
	case err = <-s.fatal:
	case <-ctx.Done():
		err = context.Cause(ctx)
		s.client.asked.shut()
		grace, stop := context.WithTimeout(context.Background(), s.Grace)
		s.client.gate.wait(grace)
		s.backend.gate.wait(grace)
		stop()
	}
	s.end()
	return err
}

// waitFor waits for a channel to be closed, at most for d and while ctx lasts.
func waitFor(ctx context.Context, d time.Duration, closed chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-closed:
		return true
	case <-t.C:
	case <-ctx.Done():
	}
	return false
}

// finishClient serves what the client asked before it closed its side.
func (s *session) finishClient(ctx context.Context) {
	defer s.within(ctx, s.Drain+s.Grace)()
	drain, stop := context.WithTimeout(ctx, s.Drain)
	defer stop()
	go func() {
		// Without an answer or somebody who takes it there is nothing to wait for.
		select {
		case <-s.client.deaf:
			stop()
		case <-s.backend.ended:
			stop()
		case <-drain.Done():
		}
	}()
	s.client.gate.wait(drain)
	s.client.asked.shut()
	// Whatever the backend asked of the client, there will be no answer.
	s.failOpen(s.backend, codeInternal, textClientGone)
	s.closeWrite(s.backend)
	select {
	case <-s.client.asked.empty():
	case <-s.backend.ended:
		if err := s.backendGone(ctx, s.backend.readErr); err.Open > 0 {
			s.Logger.Warn("the client has closed its side", "error", err)
		}
	case <-drain.Done():
	}
}

// backendGone answers what the backend has left open.
func (s *session) backendGone(ctx context.Context, readErr error) *BackendGone {
	gone := &BackendGone{Spoke: s.backend.spoke.Load()}
	if readErr != io.EOF {
		gone.Err = readErr
	}
	defer s.within(ctx, s.Drain+s.Grace)()
	// Answers that have arrived are still decided about and delivered.
	drain, stop := context.WithTimeout(ctx, s.Drain)
	defer stop()
	s.backend.gate.wait(drain)
	gone.Open = s.failOpen(s.client, codeInternal, textBackendGone)
	return gone
}

// within closes both ends when what follows takes longer than d, or longer than
// the grace once ctx has ended: a peer that does not read must not keep the
// session. What it returns calls that off.
func (s *session) within(ctx context.Context, d time.Duration) (stop func()) {
	closeBoth := func() {
		s.backend.end.Close()
		s.client.end.Close()
	}
	late := time.AfterFunc(d, closeBoth)
	stopWatch := context.AfterFunc(ctx, func() { late.Reset(min(d, s.Grace)) })
	return func() {
		stopWatch()
		late.Stop()
	}
}

// end stops everything.
func (s *session) end() {
	stop := s.within(context.Background(), 2*s.Grace)
	s.failOpen(s.client, codeInternal, textClosing)
	s.failOpen(s.backend, codeInternal, textClosing)
	s.closeWrite(s.backend)
	s.stopPlans()
	s.client.gate.close()
	s.backend.gate.close()
	waitFor(context.Background(), s.Leave, s.backend.ended)
	stop()
	for _, p := range []*peer{s.backend, s.client} {
		if err := p.end.Close(); err != nil {
			s.Logger.Debug("closing failed", "side", p.side.String(), "error", err)
		}
	}
	<-s.backend.ended
	<-s.client.ended
	s.client.gate.wait(context.Background())
	s.backend.gate.wait(context.Background())
}

func (s *session) closeWrite(p *peer) {
	p.write.Lock()
	defer p.write.Unlock()
	if err := p.end.CloseWrite(); err != nil {
		s.Logger.Debug("closing the write side failed", "side", p.side.String(), "error", err)
	}
}

// failOpen answers every open request of a side with an error.
func (s *session) failOpen(p *peer, code int, text string) int {
	open := p.asked.abandon()
	for _, f := range open {
		s.send(p, appendError(nil, f.id(), code, text))
	}
	return len(open)
}
