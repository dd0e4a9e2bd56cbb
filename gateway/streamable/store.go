package streamable

import (
	"container/list"
	"strconv"
	"strings"
	"sync"
)

// store keeps the streams of one session with their events: those that are still
// to be delivered, and behind them those that a client may ask for again. The
// oldest go first when there is no room.
type store struct {
	max      int
	maxBytes int
	// lost is told of an event that was dropped before it was delivered. It is
	// called while nothing is locked.
	lost func(*event)

	mu      sync.Mutex
	room    sync.Cond
	streams map[int]*stream
	next    int
	order   list.List // of *event, the oldest first
	bytes   int
	// waiting is how many bytes of events are for streams that are connected.
	waiting int
	closed  bool
}

// event is one message on a stream.
type event struct {
	stream *stream
	seq    int
	data   []byte
	// final says that it is the last one, the answer to the stream's request.
	final bool
	// request says that the backend waits for an answer to it.
	request bool
	// status is the HTTP status of an answer that is sent alone, failed says that
	// the answer is an error.
	status int
	failed bool
	entry  *list.Element
}

// stream is what one HTTP response carries, or several in turn when it is
// resumed. All of it is guarded by the store's mutex.
type stream struct {
	id     int
	events []*event
	// next is the number of the next event, sent of the next one to be delivered.
	// The first is 1.
	next, sent int
	// done says that no more events come.
	done bool
	// conn is the connection that delivers it, nil when there is none.
	conn *conn
	// resumable says that a client has been given the id of an event of it.
	resumable bool
}

// conn is one HTTP response that delivers a stream.
type conn struct {
	wake chan struct{} // of capacity 1: there is something new
	gone chan struct{} // closed when another connection has taken over
}

func newStore(max, maxBytes int, lost func(*event)) *store {
	st := &store{max: max, maxBytes: maxBytes, lost: lost, streams: map[int]*stream{}}
	st.room.L = &st.mu
	return st
}

// open makes a stream.
func (st *store) open() *stream {
	st.mu.Lock()
	defer st.mu.Unlock()
	s := &stream{id: st.next, next: 1, sent: 1}
	st.next++
	st.streams[s.id] = s
	return s
}

// add puts an event on a stream. While its client reads slowly it blocks, until
// there is room, the client is gone, or the store is closed. It is false when
// nobody will ever get the event.
func (st *store) add(s *stream, e *event) bool {
	st.mu.Lock()
	for !st.closed && s.conn != nil && st.waiting > 0 && st.waiting+len(e.data) > st.maxBytes {
		st.room.Wait()
	}
	if st.closed || s.done || st.streams[s.id] != s {
		st.mu.Unlock()
		return false
	}
	e.stream, e.seq = s, s.next
	s.next++
	s.events = append(s.events, e)
	s.done = e.final
	e.entry = st.order.PushBack(e)
	st.bytes += len(e.data)
	if s.conn != nil {
		st.waiting += len(e.data)
	}
	lost := st.evict()
	s.signal()
	st.mu.Unlock()
	for _, e := range lost {
		st.lost(e)
	}
	return true
}

func (s *stream) signal() {
	if s.conn != nil {
		select {
		case s.conn.wake <- struct{}{}:
		default:
		}
	}
}

// pinned says that an event is about to be delivered.
func (e *event) pinned() bool { return e.stream.conn != nil && e.seq >= e.stream.sent }

// evict makes room. It gives the events that nobody has seen.
func (st *store) evict() (lost []*event) {
	for entry := st.order.Front(); entry != nil && (st.bytes > st.maxBytes || st.order.Len() > st.max); {
		e := entry.Value.(*event)
		entry = entry.Next()
		if e.pinned() {
			continue
		}
		if e.seq >= e.stream.sent {
			lost = append(lost, e)
			e.stream.sent = e.seq + 1
		}
		st.drop(e)
	}
	return lost
}

// drop forgets the oldest event of a stream, and the stream when nothing of it is
// left to tell.
func (st *store) drop(e *event) {
	st.order.Remove(e.entry)
	st.bytes -= len(e.data)
	s := e.stream
	s.events[0] = nil
	s.events = s.events[1:]
	if s.done && len(s.events) == 0 && s.conn == nil {
		delete(st.streams, s.id)
	}
}

// discard forgets a stream that can never be asked for again.
func (st *store) discard(s *stream) {
	st.mu.Lock()
	lost := st.discardLocked(s)
	st.mu.Unlock()
	for _, e := range lost {
		st.lost(e)
	}
}

func (st *store) discardLocked(s *stream) (lost []*event) {
	for len(s.events) > 0 {
		if e := s.events[0]; e.seq >= s.sent {
			lost = append(lost, e)
		}
		st.drop(s.events[0])
	}
	s.done = true
	delete(st.streams, s.id)
	return lost
}

// finish says that nothing more comes on a stream.
func (st *store) finish(s *stream) {
	st.mu.Lock()
	defer st.mu.Unlock()
	s.done = true
	s.signal()
	if s.conn == nil && len(s.events) == 0 {
		delete(st.streams, s.id)
	}
}

// connect makes a connection deliver a stream, from the event after seq on, or
// from the first one that has not been delivered when seq is negative. It is
// false when that cannot be: the stream is not known, or events behind seq are
// gone.
func (st *store) connect(id, seq int) (*stream, *conn, bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	s := st.streams[id]
	if s == nil || st.closed {
		return nil, nil, false
	}
	if seq >= 0 {
		first := s.next
		if len(s.events) > 0 {
			first = s.events[0].seq
		}
		if seq >= s.next || seq+1 < first {
			return nil, nil, false
		}
		st.detach(s)
		s.sent = seq + 1
	} else {
		st.detach(s)
	}
	s.conn = &conn{wake: make(chan struct{}, 1), gone: make(chan struct{})}
	for _, e := range s.events {
		if e.pinned() {
			st.waiting += len(e.data)
		}
	}
	return s, s.conn, true
}

// connected says whether a connection delivers the stream.
func (st *store) connected(s *stream) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return s.conn != nil
}

// detach takes a stream's connection away.
func (st *store) detach(s *stream) {
	if s.conn == nil {
		return
	}
	for _, e := range s.events {
		if e.pinned() {
			st.waiting -= len(e.data)
		}
	}
	close(s.conn.gone)
	s.conn = nil
	st.room.Broadcast()
}

// disconnect is the end of a connection. A stream that nobody can ask for again
// goes with it.
func (st *store) disconnect(s *stream, c *conn) {
	st.mu.Lock()
	var lost []*event
	if s.conn == c {
		st.detach(s)
		switch {
		case !s.resumable && s.id != standalone:
			lost = st.discardLocked(s)
		case s.done && len(s.events) == 0:
			delete(st.streams, s.id)
		default:
			lost = st.evict()
		}
	}
	st.mu.Unlock()
	for _, e := range lost {
		st.lost(e)
	}
}

// head is the next event to deliver, nil when there is none now; over says that
// there will be none any more.
func (st *store) head(s *stream) (e *event, over bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if len(s.events) > 0 {
		if i := s.sent - s.events[0].seq; i < len(s.events) {
			e = s.events[i]
		}
	}
	return e, e == nil && (s.done || st.closed)
}

// delivered notes that an event has been written by a connection. Resumable says
// that the client knows its id.
func (st *store) delivered(c *conn, e *event, resumable bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if e.stream.conn != c || e.seq != e.stream.sent {
		return
	}
	st.waiting -= len(e.data)
	e.stream.sent++
	e.stream.resumable = e.stream.resumable || resumable
	st.room.Broadcast()
}

// position is the number of the last event that has been delivered.
func (st *store) position(s *stream) int {
	st.mu.Lock()
	defer st.mu.Unlock()
	return s.sent - 1
}

// keep notes that a client knows an id of a stream.
func (st *store) keep(s *stream) {
	st.mu.Lock()
	defer st.mu.Unlock()
	s.resumable = true
}

// close ends all streams; connections deliver what they still have.
func (st *store) close() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.closed = true
	for _, s := range st.streams {
		s.signal()
	}
	st.room.Broadcast()
}

// standalone is the stream for what belongs to no request.
const standalone = 0

// eventID is the id of an event: its stream and its number.
func eventID(stream, seq int) string { return strconv.Itoa(stream) + "-" + strconv.Itoa(seq) }

func parseEventID(id string) (stream, seq int, ok bool) {
	a, b, ok := strings.Cut(id, "-")
	if !ok || len(id) > 40 {
		return 0, 0, false
	}
	stream, err := strconv.Atoi(a)
	seq, err2 := strconv.Atoi(b)
	return stream, seq, err == nil && err2 == nil && stream >= 0 && seq >= 0 && eventID(stream, seq) == id
}
