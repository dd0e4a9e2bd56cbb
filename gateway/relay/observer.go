package relay

import (
	"log/slog"
	"sync"
	"time"

	"github.com/weir-mcp/weir/internal/wire"
)

// Observer is told what the relay did, for logs and counters. Its methods are
// called from many goroutines and must return quickly.
type Observer interface {
	// Arrived reports one message that could be read.
	Arrived(from Side, kind wire.Kind)
	// Governed reports one governed phase.
	Governed(Record)
	// Discarded reports one message that did not pass for a reason other than
	// a governor's decision.
	Discarded(Discard)
}

// Record is one governed phase.
type Record struct {
	Scope
	Reference string
	Initiator Side
	// Block is nil when the operation was released.
	Block *Block
	// Modified says that the released payload is not the one that came.
	Modified bool
	// Cancelled says that the requester withdrew before the decision; the
	// message did not pass whatever Block says.
	Cancelled bool
	// Duration is the time the decision took, Waited the time from the
	// message's arrival to the decision's start.
	Duration, Waited time.Duration
	// Size is that of the payload that came, in bytes.
	Size int
}

// Cause says why a message was discarded.
type Cause string

// The causes. A discarded request is answered to its sender, a discarded
// response becomes an error at the requester it was for, if there is one, and
// a discarded notification is dropped (protocol.md §6 "What is refused").
const (
	BadMessage        Cause = "bad_message"        // not JSON, not UTF-8, a batch, duplicate names, …
	TooLarge          Cause = "too_large"          // over the limit of its end
	ReusedID          Cause = "reused_id"          // its id is in flight
	TableFull         Cause = "table_full"         // too many requests in flight
	Closing           Cause = "closing"            // the relay shuts down, or the other side is gone
	BadResult         Cause = "bad_result"         // a governed result that is no object
	UnknownResponse   Cause = "unknown_response"   // nobody asked
	DuplicateResponse Cause = "duplicate_response" // it has been answered
	CancelledResponse Cause = "cancelled_response" // its requester has withdrawn
	CancelledUnseen   Cause = "cancelled_unseen"   // a cancellation of what the other side never saw
	BlockedInside     Cause = "blocked_inside"     // a notification whose content was blocked
	UnknownTask       Cause = "unknown_task"       // of a task held by the client that was never seen
	NotLetThrough     Cause = "not_let_through"    // a notification that [Passthrough] does not name
	UnknownAnswer     Cause = "unknown_answer"     // answers a request that was never seen and fits none
)

// Discard is one message that did not pass.
type Discard struct {
	From  Side
	Cause Cause
	// Kind is "request", "notification", "response", "failure" or "unknown".
	Kind string
	// Method is known for requests and notifications that could be read. It is
	// the peer's own word, cut to 128 bytes.
	Method string
	// Detail says more, without any part of a payload.
	Detail string
}

const shownMethod = 128

func shorten(method string) string {
	return wire.Clip(method, shownMethod)
}

// LogObserver counts discards and writes them to a logger as warnings; records
// it leaves to the governor, who knows more about them. A peer must not be able
// to fill the log: of each cause the first hundred are written, then those whose
// number is a power of two.
type LogObserver struct {
	logger *slog.Logger
	mu     sync.Mutex
	counts map[Cause]uint64
}

// NewLogObserver makes one that writes to logger.
func NewLogObserver(logger *slog.Logger) *LogObserver {
	return &LogObserver{logger: logger, counts: map[Cause]uint64{}}
}

// allShown is up to how many discards of one cause are all logged.
const allShown = 100

// Arrived does nothing.
func (o *LogObserver) Arrived(Side, wire.Kind) {}

// Governed does nothing.
func (o *LogObserver) Governed(Record) {}

// Discarded counts d, and logs it with the number of its cause.
func (o *LogObserver) Discarded(d Discard) {
	o.mu.Lock()
	o.counts[d.Cause]++
	n := o.counts[d.Cause]
	o.mu.Unlock()
	if n > allShown && n&(n-1) != 0 {
		return
	}
	o.logger.Warn("message discarded", "from", d.From.String(), "cause", string(d.Cause), "number", n,
		"kind", d.Kind, "method", d.Method, "detail", d.Detail)
}

// Count is how many messages have been discarded for a cause.
func (o *LogObserver) Count(c Cause) uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.counts[c]
}

var _ Observer = (*LogObserver)(nil)
