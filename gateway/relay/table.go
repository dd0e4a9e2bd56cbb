package relay

import (
	"context"
	"sync"

	"github.com/weir-mcp/weir/internal/wire"
)

// state is where a request is on its way.
type state uint8

const (
	deciding  state = iota // its own plan runs; the other side has not seen it
	asked                  // the other side has it
	answering              // it has been answered; the answer's plan runs
	marked                 // it was cancelled: its answer is dropped, its id stays taken
	done                   // it is not in the table any more
)

// flight is one request between its arrival and its answer.
type flight struct {
	key     string
	spelled string // the id as the requester spelled it
	method  string
	// governedAs is the event whose response phase its result is, or empty.
	governedAs string
	// creator is the method that made the task it asks about, or empty.
	creator string
	// version is the protocol version that the request itself named.
	version string
	// payload is what a governed response will want to see of the request.
	payload []byte
	// trace is the trace context that the transport brought it with.
	trace string
	// asTask says that the requester asked for a task instead of the result.
	asTask bool
	// size is how many bytes the flight keeps alive: the payload holds on to the
	// message that it is a part of.
	size int

	// again says that its answer may come a second time, because the first one may
	// have been lost on the way to the requester: what is known of the request
	// outlives the answer then.
	again bool

	state state
	// unseen says of a marked one that the other side never saw it.
	unseen bool
	cancel context.CancelFunc
}

func (f *flight) id() []byte { return []byte(f.spelled) }

func newFlight(m *wire.Message) *flight {
	f := &flight{key: m.ID.Key(), method: m.Method, state: asked}
	if raw := m.ID.Raw(); string(raw) == f.key {
		f.spelled = f.key
	} else {
		f.spelled = string(raw)
	}
	f.size = len(f.spelled) + len(f.method)
	return f
}

// longTrace is the longest trace context that is kept, in bytes. Version 00 has 55.
const longTrace = 256

func (f *flight) keepTrace(traceparent string) {
	if len(traceparent) <= longTrace {
		f.trace = traceparent
		f.size += len(traceparent)
	}
}

// table holds the requests of one side. Nothing in it expires: an entry lives
// until its response, the death of a peer, or the end of the session
// (protocol.md §6).
type table struct {
	mu      sync.Mutex
	flights map[string]*flight
	marks   int
	kept    int // bytes that the flights keep alive, marks aside
	closed  bool
	limits  Limits
	emptied chan struct{} // closed when nothing is open, while somebody waits
}

func newTable(l Limits) *table { return &table{flights: map[string]*flight{}, limits: l} }

// verdict is what became of a request that wanted to be entered.
type verdict uint8

const (
	entered verdict = iota
	reused
	full
	shut
)

// enter takes up a request.
func (t *table) enter(f *flight) verdict {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return shut
	case t.flights[f.key] != nil:
		return reused
	case len(t.flights)-t.marks >= t.limits.InFlight:
		return full
	case t.kept+f.size > t.limits.KeptBytes && t.kept > 0:
		return full
	}
	t.flights[f.key] = f
	t.kept += f.size
	return entered
}

// pass moves a decided request on to the other side. It is false when the
// request has been cancelled or given up meanwhile and must not pass.
func (t *table) pass(f *flight, payload []byte) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f.state != deciding {
		return false
	}
	f.state = asked
	f.cancel = nil
	if f.payload != nil {
		more := len(payload) - len(f.payload)
		t.kept, f.size = t.kept+more, f.size+more
		f.payload = payload
	}
	return true
}

// lookup finds the request that a response is for, and says in which state it
// is; done when there is none.
func (t *table) lookup(key string) (*flight, state) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.flights[key]
	if f == nil {
		return nil, done
	}
	return f, f.state
}

// expect is lookup for one request and no other one. One that has been answered
// is taken up again if its answer may be repeated and its id is not taken.
func (t *table) expect(f *flight, key string) (*flight, state) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f == nil || f.key != key {
		return nil, done
	}
	if f.state == done && f.again && !t.closed && t.flights[key] == nil {
		f.state = asked
		t.flights[key] = f
		t.kept += f.size
	}
	return f, f.state
}

// repeatable notes that the answer may come a second time.
func (t *table) repeatable(f *flight) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f.again = true
}

func (t *table) sizeOf(f *flight) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return f.size
}

// undo makes a request whose answer was decided about wait for it again.
func (t *table) undo(f *flight) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f.state == answering {
		f.state, f.cancel = asked, nil
	}
}

// begin notes that a plan starts for the request, or for its answer, and how to
// stop it. It gives what is kept of the request, and is false when the request
// has been cancelled or given up meanwhile.
func (t *table) begin(f *flight, next state, cancel context.CancelFunc) (payload []byte, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f.state != deciding && f.state != asked {
		return nil, false
	}
	f.state, f.cancel = next, cancel
	return f.payload, true
}

// waits says that a request is in the table and its requester waits.
func (t *table) waits(f *flight) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return f.state != marked && f.state != done
}

// open is how many requests wait for their answers.
func (t *table) open() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.flights) - t.marks
}

// finish ends a request that is about to get its answer. It is false when there
// must be none.
func (t *table) finish(f *flight) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f.state == marked || f.state == done {
		return false
	}
	t.remove(f)
	return true
}

func (t *table) remove(f *flight) {
	delete(t.flights, f.key)
	t.release(f)
	f.state = done
	t.noteEmpty()
}

func (t *table) release(f *flight) {
	t.kept -= f.size
	f.cancel = nil
	if !f.again {
		f.size, f.payload = 0, nil
	}
}

// cancellation says what is to be done with a notifications/cancelled.
type cancellation uint8

const (
	forward cancellation = iota
	forget               // the other side never saw the request
	tooMany              // there is no room for another mark
)

// withdraw marks the request as cancelled and stops its plan. With a flight it is
// that request and no other one.
func (t *table) withdraw(key string, only *flight) cancellation {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.flights[key]
	switch {
	case f == nil || only != nil && f != only:
		return forward
	case f.state == marked:
		if f.unseen {
			return forget
		}
		return forward
	case t.marks >= t.limits.Marks:
		return tooMany
	}
	if f.cancel != nil {
		f.cancel()
	}
	f.unseen = f.state == deciding
	f.again = false
	t.release(f)
	f.state = marked
	// A mark holds no more than its key, whatever the request was.
	t.flights[key] = &flight{key: f.key, state: marked, unseen: f.unseen}
	t.marks++
	t.noteEmpty()
	if f.unseen {
		return forget
	}
	return forward
}

// shut takes no more requests.
func (t *table) shut() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
}

// abandon takes no more requests, ends all that are open, stops their plans and
// returns them: each is to be answered with an error.
func (t *table) abandon() []*flight {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	var open []*flight
	for _, f := range t.flights {
		if f.state == marked {
			continue
		}
		if f.cancel != nil {
			f.cancel()
		}
		open = append(open, f)
	}
	for _, f := range open {
		t.remove(f)
	}
	return open
}

// empty gives a channel that is closed once no request waits for its answer.
func (t *table) empty() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.emptied == nil {
		t.emptied = make(chan struct{})
	}
	c := t.emptied
	t.noteEmpty()
	return c
}

func (t *table) noteEmpty() {
	if t.emptied != nil && len(t.flights) == t.marks {
		close(t.emptied)
		t.emptied = nil
	}
}
