package proxy

import (
	"sync"

	"github.com/weir-mcp/weir/gateway/relay"
)

// trail is what is remembered of one stream of a session, so that it can be
// resumed: whose answer it brings, and which events a client has seen last.
type trail struct {
	// ticket is the request that the stream answers, zero for one that a client
	// opened to listen.
	ticket relay.Ticket
	// ids are the last event ids that went to the client, oldest first, and bytes
	// how long they are together.
	ids   []string
	bytes int
	// live says that a client reads it now.
	live int
}

// trails are the streams of one session.
type trails struct {
	mu   sync.Mutex
	byID map[string]*trail
	// ended are those that no client reads, oldest first.
	ended []*trail
}

const (
	// idsOfTrail is how many event ids of one stream are remembered, and idBytes how
	// many bytes of them. A client resumes behind the last event that it has read;
	// what is still on its way to it is less than this.
	idsOfTrail = 256
	idBytes    = 32 << 10
	// endedTrails is how many streams of a session that ended are remembered, and
	// endedBytes how much of the requests they answered.
	endedTrails = 64
	endedBytes  = 8 << 20
)

func newTrails() *trails { return &trails{byID: map[string]*trail{}} }

// pass notes that the client gets an event with that id on the stream.
func (t *trails) pass(tr *trail, id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(tr.ids) == 0 {
		tr.ticket.Repeatable()
	}
	if t.byID[id] == tr {
		return // it comes again
	}
	for len(tr.ids) > 0 && (len(tr.ids) == idsOfTrail || tr.bytes+len(id) > idBytes) {
		t.unlink(tr, tr.ids[0])
		tr.bytes -= len(tr.ids[0])
		tr.ids = append(tr.ids[:0], tr.ids[1:]...)
	}
	tr.ids = append(tr.ids, id)
	tr.bytes += len(id)
	t.byID[id] = tr
}

func (t *trails) unlink(tr *trail, id string) {
	if t.byID[id] == tr {
		delete(t.byID, id)
	}
}

// begin notes that a client reads a new stream.
func (t *trails) begin(ticket relay.Ticket) *trail { return &trail{ticket: ticket, live: 1} }

// resume finds the stream that had the event, nil if none is known.
func (t *trails) resume(lastEventID string) *trail {
	t.mu.Lock()
	defer t.mu.Unlock()
	tr := t.byID[lastEventID]
	if tr != nil {
		tr.live++
		t.unend(tr)
	}
	return tr
}

func (t *trails) unend(tr *trail) {
	for i, other := range t.ended {
		if other == tr {
			t.ended = append(t.ended[:i], t.ended[i+1:]...)
			return
		}
	}
}

// leave notes that the client does not read the stream any more. It says whether
// the stream can be resumed.
func (t *trails) leave(tr *trail) (resumable bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tr.live--
	if len(tr.ids) == 0 {
		return false
	}
	if tr.live > 0 {
		return true
	}
	t.ended = append(t.ended, tr)
	size := 0
	for _, tr := range t.ended {
		size += tr.ticket.Size()
	}
	for len(t.ended) > endedTrails || size > endedBytes && len(t.ended) > 1 {
		size -= t.ended[0].ticket.Size()
		t.drop(t.ended[0])
		t.ended = t.ended[1:]
	}
	return true
}

func (t *trails) drop(tr *trail) {
	for _, id := range tr.ids {
		t.unlink(tr, id)
	}
	tr.ids, tr.bytes = nil, 0
	// Nobody can bring its answer any more.
	tr.ticket.Abandon()
}

// forget lets go of everything.
func (t *trails) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.byID)
	t.ended = nil
}
