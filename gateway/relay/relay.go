package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-mcp/weir/internal/wire"
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
	s := NewSession(o)
	r := &run{
		Session:  s,
		client:   newPeer(s.client, client),
		backend:  newPeer(s.backend, backend),
		refusals: make(chan Outgoing, refusalsKept),
	}
	return r.run(ctx)
}

// run is a session between two ends.
type run struct {
	*Session
	client, backend *peer
	// refusals are on their way to the backend.
	refusals chan Outgoing
}

// refusalsKept is how many refusals of what the backend has sent wait for it to
// read. One more is dropped: who sends that much that is refused, and reads
// nothing of it, does not miss it.
const refusalsKept = 64

// peer is one side with its end.
type peer struct {
	*party
	end End

	// write serialises messages to this peer, and what must be decided in the
	// moment of writing.
	write sync.Mutex
	// deaf is closed once writing to it has failed.
	deaf     chan struct{}
	deafOnce sync.Once
	// writing is when the write that is under way began, nil when there is none.
	writing atomic.Pointer[time.Time]
	spoke   atomic.Bool
	// ended is closed when its pump has ended, with readErr.
	ended   chan struct{}
	readErr error
}

func newPeer(p *party, end End) *peer {
	return &peer{party: p, end: end, deaf: make(chan struct{}), ended: make(chan struct{})}
}

func (r *run) across(p *peer) *peer {
	if p == r.client {
		return r.backend
	}
	return r.client
}

// pump moves what one side sends until there is nothing more.
func (r *run) pump(from *peer) {
	lane := &direct{run: r, from: from, to: r.across(from)}
	traced, _ := from.end.(Traced)
	for {
		raw, err := from.end.Read()
		a := Arrival{From: from.side, Raw: raw, At: time.Now(), Lane: lane}
		if err != nil {
			var long *wire.TooLong
			if errors.As(err, &long) {
				from.spoke.Store(true)
				r.HandleTooLong(a, long)
				continue
			}
			from.readErr = err
			close(from.ended)
			return
		}
		from.spoke.Store(true)
		if traced != nil {
			a.Traceparent = traced.Traceparent()
		}
		if rest := r.Handle(r.plans, a); rest != nil {
			go rest()
		}
	}
}

// direct is the lane of all messages from one end.
type direct struct {
	*run
	from, to *peer
}

// Forward writes to the other end.
func (d *direct) Forward(out Outgoing) { d.deliver(d.to, out) }

// Answer writes back. To the backend it does so by itself: one that writes lines
// of its log where messages belong and does not read meanwhile would have to be
// waited for, and would wait for its lines to be read.
func (d *direct) Answer(out Outgoing) {
	switch {
	case out.Message == nil:
	case d.from == d.backend && out.step == nothing:
		select {
		case d.refusals <- out:
		default:
		}
	default:
		d.deliver(d.from, out)
	}
}

// refuse writes refusals to the backend until the session is over.
func (r *run) refuse(over <-chan struct{}) {
	for {
		select {
		case out := <-r.refusals:
			r.deliver(r.backend, out)
		case <-over:
			return
		}
	}
}

// deliver writes what is still to be written.
func (r *run) deliver(to *peer, out Outgoing) {
	to.write.Lock()
	defer to.write.Unlock()
	if out.Commit() {
		r.sendLocked(to, out.Message)
	}
}

var _ Lane = (*direct)(nil)

// send writes one message.
func (r *run) send(to *peer, message []byte) {
	to.write.Lock()
	defer to.write.Unlock()
	r.sendLocked(to, message)
}

// sendLocked writes one message while to.write is held. A peer that cannot be
// written to takes nothing more; the session then ends by what [run.run]
// makes of it.
func (r *run) sendLocked(to *peer, message []byte) {
	select {
	case <-to.deaf:
		return
	default:
	}
	began := time.Now()
	to.writing.Store(&began)
	err := to.end.Write(message)
	to.writing.Store(nil)
	if err != nil {
		r.giveUp(to, err)
	}
}

// watch gives peers up that have not taken a message for too long, until it is
// stopped. It looks now and then, so that no timer is started and stopped with
// each message.
func (r *run) watch() (stop func()) {
	every := time.NewTicker(max(r.Stall/stallLooks, time.Millisecond))
	over := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			select {
			case <-over:
				return
			case <-every.C:
			}
			for _, p := range []*peer{r.client, r.backend} {
				if began := p.writing.Load(); began != nil && time.Since(*began) >= r.Stall {
					r.giveUp(p, errStalled)
				}
			}
		}
	})
	return func() {
		every.Stop()
		close(over)
		watching.Wait()
	}
}

// stallLooks is how often it is looked within the time that a write may take.
const stallLooks = 8

var errStalled = errors.New("it has not read for too long")

// giveUp says that a peer takes nothing more. A write to it that is under way
// ends when the session does.
func (r *run) giveUp(to *peer, err error) {
	to.deafOnce.Do(func() {
		r.Logger.Debug("writing failed", "to", to.side.String(), "error", err)
		close(to.deaf)
	})
}

func (r *run) run(ctx context.Context) error {
	defer r.watch()()
	over := make(chan struct{})
	defer close(over)
	go r.refuse(over)
	go r.pump(r.client)
	go r.pump(r.backend)

	var err error
	select {
	case <-r.client.ended:
		if r.client.readErr != io.EOF {
			err = fmt.Errorf("reading from the client: %w", r.client.readErr)
		}
		r.finishClient(ctx)
	case <-r.client.deaf:
		err = errors.New("the client does not take messages any more")
	case <-r.backend.ended:
		err = r.backendGone(ctx, r.backend.readErr)
	case <-r.backend.deaf:
		// What it still said before it went is worth reading.
		readErr := errors.New("it does not take messages any more")
		if waitFor(ctx, r.Grace, r.backend.ended) {
			readErr = r.backend.readErr
		}
		err = r.backendGone(ctx, readErr)
	case <-r.Overflow():
		err = ErrTooManyMarks
	case <-ctx.Done():
		err = context.Cause(ctx)
		r.client.asked.shut()
		grace, stop := context.WithTimeout(context.Background(), r.Grace)
		r.client.gate.wait(grace)
		r.backend.gate.wait(grace)
		stop()
	}
	r.end()
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
func (r *run) finishClient(ctx context.Context) {
	defer r.within(ctx, r.Drain+r.Grace)()
	drain, stop := context.WithTimeout(ctx, r.Drain)
	defer stop()
	go func() {
		// Without an answer or somebody who takes it there is nothing to wait for.
		select {
		case <-r.client.deaf:
			stop()
		case <-r.backend.ended:
			stop()
		case <-drain.Done():
		}
	}()
	r.client.gate.wait(drain)
	r.client.asked.shut()
	// Whatever the backend asked of the client, there will be no answer.
	r.failOpen(r.backend, codeInternal, textClientGone)
	r.closeWrite(r.backend)
	select {
	case <-r.client.asked.empty():
	case <-r.backend.ended:
		if err := r.backendGone(ctx, r.backend.readErr); err.Open > 0 {
			r.Logger.Warn("the client has closed its side", "error", err)
		}
	case <-drain.Done():
	}
}

// backendGone answers what the backend has left open.
func (r *run) backendGone(ctx context.Context, readErr error) *BackendGone {
	gone := &BackendGone{Spoke: r.backend.spoke.Load()}
	if readErr != io.EOF {
		gone.Err = readErr
	}
	defer r.within(ctx, r.Drain+r.Grace)()
	// Answers that have arrived are still decided about and delivered.
	drain, stop := context.WithTimeout(ctx, r.Drain)
	defer stop()
	r.backend.gate.wait(drain)
	gone.Open = r.failOpen(r.client, codeInternal, textBackendGone)
	return gone
}

// within closes both ends when what follows takes longer than d, or longer than
// the grace once ctx has ended: a peer that does not read must not keep the
// session. What it returns calls that off.
func (r *run) within(ctx context.Context, d time.Duration) (stop func()) {
	closeBoth := func() {
		r.backend.end.Close()
		r.client.end.Close()
	}
	late := time.AfterFunc(d, closeBoth)
	stopWatch := context.AfterFunc(ctx, func() { late.Reset(min(d, r.Grace)) })
	return func() {
		stopWatch()
		late.Stop()
	}
}

// end stops everything.
func (r *run) end() {
	stop := r.within(context.Background(), 2*r.Grace)
	r.failOpen(r.client, codeInternal, textClosing)
	r.failOpen(r.backend, codeInternal, textClosing)
	r.closeWrite(r.backend)
	r.stopPlans()
	r.client.gate.close()
	r.backend.gate.close()
	waitFor(context.Background(), r.Leave, r.backend.ended)
	stop()
	for _, p := range []*peer{r.backend, r.client} {
		if err := p.end.Close(); err != nil {
			r.Logger.Debug("closing failed", "side", p.side.String(), "error", err)
		}
	}
	<-r.backend.ended
	<-r.client.ended
	r.client.gate.wait(context.Background())
	r.backend.gate.wait(context.Background())
}

func (r *run) closeWrite(p *peer) {
	p.write.Lock()
	defer p.write.Unlock()
	if err := p.end.CloseWrite(); err != nil {
		r.Logger.Debug("closing the write side failed", "side", p.side.String(), "error", err)
	}
}

// failOpen answers every open request of a side with an error.
func (r *run) failOpen(p *peer, code int, text string) int {
	open := p.asked.abandon()
	for _, f := range open {
		r.send(p, appendError(nil, f.id(), code, text))
	}
	return len(open)
}
