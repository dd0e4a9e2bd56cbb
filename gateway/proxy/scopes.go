package proxy

import (
	"sync"
	"time"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/relay"
)

// scope is what is known of one session of the backend, or of one request where
// there is none.
type scope struct {
	session *relay.Session
	// id is the Mcp-Session-Id, empty for a request of its own.
	id        string
	principal *abi.Principal
	trails    *trails

	// The rest is guarded by scopes.
	uses int
	// accepted says that the backend has accepted a request of this session.
	accepted bool
	// ended says that nothing of this session is served any more.
	ended bool
	since time.Time // when it was last used
}

// scopes are the sessions that this replica knows.
type scopes struct {
	mu     sync.Mutex
	byID   map[string]*scope
	limit  int
	idle   time.Duration
	sweep  *time.Timer
	closed bool
}

func newScopes(limit int, idle time.Duration) *scopes {
	return &scopes{byID: map[string]*scope{}, limit: limit, idle: idle}
}

// owed is how many times as long a session stays known in which somebody waits for
// an answer.
const owed = 24

// longSessionID is the longest session id that is taken, in bytes.
const longSessionID = 1 << 10

// samePrincipal says that two callers are one, or that both are nobody.
func samePrincipal(a, b *abi.Principal) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Type == b.Type && a.ID == b.ID
}

// enter finds the session for a request, or takes it up by make. It is nil when
// the session is not there for that caller, and crowded when there is no room. Each
// enter is followed by leave.
func (t *scopes) enter(id string, principal *abi.Principal, known bool, make func() *scope) (s *scope, crowded bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s = t.byID[id]
	switch {
	case s != nil && (s.ended || !samePrincipal(s.principal, principal)):
		return nil, false
	case s == nil && (known || principal != nil || t.closed):
		// Whose session it is, only the replica knows that saw it open.
		return nil, false
	case s == nil:
		if !t.makesRoom(false) {
			return nil, true
		}
		s = make()
		if len(t.byID) < t.limit {
			// Else the backend has to accept it first: who makes up a session
			// displaces none that is there.
			t.byID[id] = s
		}
	}
	s.uses++
	return s, false
}

// leave ends the use of a session.
func (t *scopes) leave(s *scope) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.uses--; s.uses > 0 {
		return
	}
	s.since = time.Now()
	switch {
	case t.byID[s.id] != s:
		s.close()
	case !s.accepted:
		// Somebody made up that session.
		t.remove(s)
	case t.sweep == nil && !t.closed:
		t.sweep = time.AfterFunc(t.idle, t.expire)
	}
}

// accept notes that the backend knows the session.
func (t *scopes) accept(s *scope) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.accepted = true
	if t.byID[s.id] == nil && !s.ended && !t.closed && t.makesRoom(true) {
		t.byID[s.id] = s
	}
}

// crowded says that there is no room for another session.
func (t *scopes) crowded() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closed || !t.makesRoom(false)
}

// open takes up a session that the backend has just opened. It is false when there
// is no room.
func (t *scopes) open(s *scope) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || t.byID[s.id] == nil && !t.makesRoom(true) {
		return false
	}
	if old := t.byID[s.id]; old != nil {
		t.remove(old)
	}
	s.accepted = true
	t.byID[s.id] = s
	return true
}

// gone forgets a session that the backend does not know any more.
func (t *scopes) gone(s *scope) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.ended = true
	if t.byID[s.id] == s {
		t.remove(s)
	}
}

// end serves nothing of a session any more, and remembers that.
func (t *scopes) end(s *scope) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.ended = true
	s.session.Close()
}

// remove forgets a session; it is closed when nobody uses it any more.
func (t *scopes) remove(s *scope) {
	delete(t.byID, s.id)
	if s.uses == 0 {
		s.close()
	}
}

func (s *scope) close() {
	s.session.Close()
	s.trails.forget()
}

// open says that somebody in the session waits for an answer.
func (s *scope) open() bool { return s.session.Open(relay.Client)+s.session.Open(relay.Backend) > 0 }

// makesRoom says whether there is room for one more session, and with really makes
// it: of those without a request in progress
// the one goes that has been idle for longest, if possible one in which nobody
// waits for an answer.
func (t *scopes) makesRoom(really bool) bool {
	if len(t.byID) < t.limit {
		return true
	}
	var oldest *scope
	var oldestOwed bool
	for _, s := range t.byID {
		if s.uses > 0 {
			continue
		}
		owed := s.open()
		if oldest == nil || oldestOwed && !owed || oldestOwed == owed && s.since.Before(oldest.since) {
			oldest, oldestOwed = s, owed
		}
	}
	if oldest != nil && really {
		t.remove(oldest)
	}
	return oldest != nil
}

// expire forgets the sessions that have been idle for too long, and comes again
// for the others.
func (t *scopes) expire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	now, next := time.Now(), time.Duration(0)
	for _, s := range t.byID {
		if s.uses > 0 {
			continue
		}
		idle := t.idle
		if s.open() {
			idle *= owed
		}
		left := idle - now.Sub(s.since)
		if left <= 0 {
			t.remove(s)
		} else if next == 0 || left < next {
			next = left
		}
	}
	if next == 0 {
		t.sweep = nil
		return
	}
	t.sweep.Reset(max(next, t.idle/16))
}

func (t *scopes) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	if t.sweep != nil {
		t.sweep.Stop()
	}
	for _, s := range t.byID {
		t.remove(s)
	}
}

func (t *scopes) size() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.byID)
}
