package streamable

import (
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/relay"
	"github.com/weir-mcp/weir/internal/wire"
)

// pool is the backend that the stateless requests of one principal share, and
// what is known of the ones before it.
type pool struct {
	worker *worker
	// starting is closed when a start that is under way has ended.
	starting chan struct{}
	// failures is how many backends in a row ended soon after they started, and
	// after is when the next one may start.
	failures int
	after    time.Time
}

const (
	// soon is how early a backend that ends has failed.
	soon = 10 * time.Second
	// firstWait doubles with each failure after the first, up to longestWait.
	firstWait   = 200 * time.Millisecond
	longestWait = 30 * time.Second
)

// notNow is why there is no backend for a principal.
type notNow struct {
	text  string
	after time.Duration
}

// Error is what the client is told.
func (e *notNow) Error() string { return e.text }

// workerOf gives the backend of a principal and holds it, after starting it if
// need be. The error is a *notNow.
func (f *Front) workerOf(p *abi.Principal) (*worker, error) {
	key := principalKey(p)
	for {
		f.mu.Lock()
		own := f.pools[key]
		if own == nil {
			f.prune()
			own = &pool{}
			f.pools[key] = own
		}
		switch wait := time.Until(own.after); {
		case own.worker != nil && own.worker.hold():
			f.mu.Unlock()
			return own.worker, nil
		case own.starting != nil:
			starting := own.starting
			f.mu.Unlock()
			<-starting
			continue
		case wait > 0:
			f.mu.Unlock()
			return nil, &notNow{textDown, wait}
		}
		started := make(chan struct{})
		own.starting = started
		f.mu.Unlock()
		w, err := f.startWorker(p, own)
		f.mu.Lock()
		own.starting = nil
		if err == nil {
			own.worker = w
		}
		f.mu.Unlock()
		close(started)
		return w, err
	}
}

// prune forgets principals without a backend who may have one at once. f.mu is
// held.
func (f *Front) prune() {
	for key, own := range f.pools {
		if own.worker == nil && own.starting == nil && time.Now().After(own.after) {
			delete(f.pools, key)
		}
	}
}

// startWorker starts a backend, which it holds.
func (f *Front) startWorker(p *abi.Principal, own *pool) (*worker, error) {
	if !f.take() {
		if f.isClosing() {
			return nil, &notNow{textClosing, time.Second}
		}
		f.log.Warn("no room for another backend", "limit", f.o.Sessions)
		return nil, &notNow{textBusy, time.Second}
	}
	end, err := f.o.Start(f.ctx, p)
	if err != nil {
		f.release()
		f.log.Error("the backend for stateless requests does not start", "error", err)
		f.mu.Lock()
		defer f.mu.Unlock()
		return nil, &notNow{textDown, own.fail()}
	}
	w := &worker{front: f, end: end, started: time.Now(), exchanges: map[string]*exchange{}, busy: 1, replies: make(chan []byte, maxReplies), stop: make(chan struct{}), ended: make(chan struct{})}
	w.idle = time.AfterFunc(f.o.Idle, w.expire)
	w.idle.Stop()
	go w.read()
	go w.reply()
	go w.run(own)
	return w, nil
}

// fail notes a failure and gives how long to wait. The mutex of the front is held.
func (p *pool) fail() time.Duration {
	p.failures++
	if p.failures == 1 {
		return time.Second
	}
	wait := min(firstWait<<min(p.failures-2, 16), longestWait)
	p.after = time.Now().Add(wait)
	return wait
}

// worker is one backend of a pool.
type worker struct {
	front   *Front
	end     relay.End
	started time.Time
	// write serialises messages to the backend.
	write sync.Mutex
	// replies are answers to requests of the backend.
	replies chan []byte
	stop    chan struct{} // closed when it is to end
	ended   chan struct{} // closed when reading from it has ended

	mu      sync.Mutex
	stopped bool
	// gone says that the backend says nothing any more: all exchanges were told, and
	// no other may enter.
	gone      bool
	last      uint64
	exchanges map[string]*exchange // by the id that the backend sees
	busy      int
	idle      *time.Timer
}

// hold keeps the worker from being idle. It is false when it ends.
func (w *worker) hold() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped || w.gone {
		return false
	}
	w.busy++
	w.idle.Stop()
	return true
}

func (w *worker) release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.busy--; w.busy == 0 && !w.stopped {
		w.idle.Reset(w.front.o.Idle)
	}
}

func (w *worker) expire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.busy == 0 {
		w.stopLocked()
	}
}

func (w *worker) stopLocked() {
	if !w.stopped {
		w.stopped = true
		w.idle.Stop()
		close(w.stop)
	}
}

// run sees to the worker's end.
func (w *worker) run(own *pool) {
	f := w.front
	defer f.release()
	died := false
	select {
	case <-w.ended:
		died = true
	case <-w.stop:
	case <-f.ctx.Done():
	}
	w.mu.Lock()
	w.stopLocked()
	w.mu.Unlock()
	f.mu.Lock()
	if own.worker == w {
		own.worker = nil
	}
	switch {
	case died && time.Since(w.started) < soon:
		own.fail()
	default:
		own.failures = 0
	}
	f.mu.Unlock()
	if died {
		f.log.Warn("the backend for stateless requests has ended")
	}
	if !died {
		if w.write.TryLock() {
			_ = w.end.CloseWrite()
			w.write.Unlock()
		}
		leave := time.NewTimer(f.leaveTime())
		select {
		case <-w.ended:
		case <-leave.C:
		}
		leave.Stop()
	}
	_ = w.end.Close()
	<-w.ended
}

// leaveTime is how long a backend whose input has ended gets to go by itself.
func (f *Front) leaveTime() time.Duration {
	if f.o.Relay.Leave > 0 {
		return f.o.Relay.Leave
	}
	return time.Second
}

// stallTime is how long one message may wait for a backend that does not read.
func (f *Front) stallTime() time.Duration {
	if f.o.Relay.Stall > 0 {
		return f.o.Relay.Stall
	}
	return 10 * time.Minute
}

// read hands what the backend says to whom it is for, until it ends.
func (w *worker) read() {
	defer close(w.ended)
	for {
		raw, err := w.end.Read()
		var long *wire.TooLong
		switch {
		case errors.As(err, &long):
			w.front.discard(relay.Backend, relay.TooLarge, nil, long.Error())
			w.broken(long.Kind, long.ID)
			continue
		case err != nil:
			w.abandon()
			return
		}
		m, err := wire.Read(raw)
		if err != nil {
			bad := wire.AsError(err)
			w.front.discard(relay.Backend, relay.BadMessage, nil, bad.Error())
			w.broken(bad.Kind, bad.ID)
			continue
		}
		switch m.Kind {
		case wire.Request:
			w.front.discard(relay.Backend, BackendAsked, &m, "there is no client to ask in the stateless era")
			select {
			case w.replies <- wire.AppendFailure(nil, m.ID.Raw(), codeMethodNotFound, textNotFound, nil):
			default: // it asks without reading what it is told
			}
		case wire.Notification:
			w.notification(&m)
		default:
			w.answer(&m)
		}
	}
}

// maxReplies bounds the replies that wait for a backend to read them.
const maxReplies = 64

// reply writes the replies. The goroutine that reads must not: a backend may read
// nothing while it waits for somebody to read what it writes.
func (w *worker) reply() {
	for {
		select {
		case message := <-w.replies:
			if w.send(message) != nil {
				return
			}
		case <-w.ended:
			return
		}
	}
}

// send writes one message to the backend. One that does not read for too long is
// ended.
func (w *worker) send(message []byte) error {
	w.write.Lock()
	defer w.write.Unlock()
	stalled := time.AfterFunc(w.front.stallTime(), func() {
		w.front.log.Warn("the backend for stateless requests does not read")
		_ = w.end.Close()
	})
	defer stalled.Stop()
	return w.end.Write(message)
}

// enter gives an exchange the id that the backend will see.
func (w *worker) enter(x *exchange) (id string, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gone {
		return "", false
	}
	w.last++
	id = strconv.FormatUint(w.last, 10)
	w.exchanges[id] = x
	return id, true
}

// leave takes an exchange away. It is false when it had got its answer.
func (w *worker) leave(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, open := w.exchanges[id]
	delete(w.exchanges, id)
	return open
}

func (w *worker) exchange(id string) *exchange {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.exchanges[id]
}

// broken ends the wait for an answer that cannot be read.
func (w *worker) broken(kind wire.Kind, id wire.ID) {
	if kind != wire.Response && kind != wire.Failure {
		return
	}
	if x := w.exchange(id.Key()); x != nil && w.leave(id.Key()) {
		x.put(wire.AppendFailure(nil, x.id.Raw(), abi.CodeInternal, textBadAnswer, nil))
	}
}

const textBadAnswer = "the answer to this request was malformed and has been withheld"

// answer gives an answer to whom it is for, on the id that they have chosen.
func (w *worker) answer(m *wire.Message) {
	key := m.ID.Key()
	x := w.exchange(key)
	if x == nil || !w.leave(key) {
		w.front.discard(relay.Backend, relay.UnknownResponse, m, "")
		return
	}
	raw := m.Raw
	if m.Kind == wire.Response {
		if result, ok := respell(m.Result, key, x.id, "_meta", metaSubscription); ok {
			raw = m.WithResult(result)
		}
	}
	back, err := wire.Read(raw)
	if err != nil {
		back = *m
	}
	x.put(back.WithID(x.id.Raw()))
}

// notification gives a notification to the request that it belongs to, and one
// that a list has changed to everybody who listens.
func (w *worker) notification(m *wire.Message) {
	for _, path := range [][]string{{"_meta", metaSubscription}, {"progressToken"}} {
		raw, ok := wire.Get(m.Params, path...)
		if !ok {
			continue
		}
		key, _ := mintedKey(raw)
		x := w.exchange(key)
		if x == nil || path[0] == "progressToken" && x.token == nil {
			break
		}
		to := x.id
		if path[0] == "progressToken" {
			to = wire.ID{}
			if token, ok := wire.ParseID(x.token); ok {
				to = token
			}
		}
		if params, ok := respell(m.Params, key, to, path...); ok {
			x.put(m.WithParams(params))
			return
		}
		break
	}
	if listChanged[m.Method] {
		w.mu.Lock()
		var to []*exchange
		for _, x := range w.exchanges {
			if x.listens {
				to = append(to, x)
			}
		}
		w.mu.Unlock()
		for _, x := range to {
			x.put(m.Raw)
		}
		if len(to) > 0 {
			return
		}
	}
	w.front.discard(relay.Backend, Unattributed, m, "it belongs to no request of the stateless era")
}

var listChanged = map[string]bool{
	"notifications/tools/list_changed": true, "notifications/prompts/list_changed": true, "notifications/resources/list_changed": true,
}

// abandon ends all exchanges: the backend is gone.
func (w *worker) abandon() {
	w.mu.Lock()
	w.gone = true
	open := w.exchanges
	w.exchanges = map[string]*exchange{}
	w.mu.Unlock()
	for _, x := range open {
		x.fail()
	}
}
