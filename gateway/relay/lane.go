package relay

import (
	"github.com/weir-mcp/weir/internal/wire"
)

// Lane is the way of one message, as a transport gives it to [Session.Handle]:
// where it leads on to, and the way back. At most one of its methods is called
// for a message, once, before Handle or the function that Handle gave returns.
// When neither is called nothing is to be written anywhere: the request has been
// given up meanwhile.
type Lane interface {
	// Forward writes to the side that the message did not come from.
	Forward(Outgoing)
	// Answer writes to the side that it came from. A message that is dropped
	// without an answer comes as one that is empty: there is nothing to be
	// written, and Cause says why.
	Answer(Outgoing)
}

// Outgoing is a message that is about to be written.
type Outgoing struct {
	// Message is the whole of it. There may be line breaks in it, outside
	// strings: a transport that frames by lines leaves them out (wire.Flat).
	Message []byte
	// Kind, Method and Params are those of Message. Method and Params are empty
	// in what answers a request.
	Kind   wire.Kind
	Method string
	Params []byte
	// Cause says of an answer that it refuses what was sent, and why. It is empty
	// for everything else, an operation that a governor blocked included.
	Cause Cause
	// Ticket is that of a forwarded request, else zero.
	Ticket Ticket

	step step
	s    *Session
	// from is the party that a cancellation came from, and the one that a request
	// or an answer is for.
	from    *party
	flight  *flight
	key     string
	payload []byte
}

// step is what has to happen in the moment of writing.
type step uint8

const (
	nothing step = iota
	passing
	finishing
	withdrawing
)

// Commit says whether the message is still to be written: its request may have
// been cancelled or answered since. It is called once, immediately before
// writing, and together with writing it excludes other messages to the same
// stream: so no two of them change order.
func (o *Outgoing) Commit() bool {
	switch o.step {
	case passing:
		return o.from.asked.pass(o.flight, o.payload)
	case finishing:
		return o.from.asked.finish(o.flight)
	case withdrawing:
		return o.s.withdraw(o.from, o.key, nil)
	default:
		return true
	}
}

// Undo says that the message has not been written and will not be, though nobody
// withdrew it: an answer is waited for again. It is called instead of Commit.
func (o *Outgoing) Undo() {
	if o.step == finishing {
		o.from.asked.undo(o.flight)
	}
}

// Ticket is a request on its way, for those who see to its end when no answer
// comes. The zero Ticket is none.
type Ticket struct {
	s     *Session
	party *party
	f     *flight
}

// IsZero says that there is no request.
func (t Ticket) IsZero() bool { return t.f == nil }

// Open says that the requester still waits for the answer.
func (t Ticket) Open() bool { return t.f != nil && t.party.asked.waits(t.f) }

// Fail is the answer to a request whose peer is gone. [Outgoing.Commit] is false
// when there has been another one.
func (t Ticket) Fail() Outgoing { return t.failure(textBackendGone, textClientGone) }

// Malformed is the answer to a request whose real answer cannot be read.
func (t Ticket) Malformed() Outgoing { return t.failure(textBadAnswer, textBadAnswer) }

// Refuse is an answer to a request that cannot be sent on after all.
func (t Ticket) Refuse(code int, text string) Outgoing {
	return t.s.answer(t.party, t.f, appendError(nil, t.f.id(), code, text), "")
}

// Repeatable says that the transport may bring the answer again later, to a
// requester who has missed it ([Arrival.For]). It is governed again then. Until
// the last copy of the ticket is gone, what is known of the request is kept.
func (t Ticket) Repeatable() {
	if t.f != nil {
		t.party.asked.repeatable(t.f)
	}
}

// Size is how many bytes the ticket keeps alive.
func (t Ticket) Size() int {
	if t.f == nil {
		return 0
	}
	return t.party.asked.sizeOf(t.f)
}

func (t Ticket) failure(toClient, toBackend string) Outgoing {
	text := toClient
	if t.party.side == Backend {
		text = toBackend
	}
	return t.Refuse(codeInternal, text)
}

// Abandon says that the requester is gone and will not come back for the answer.
// While none has come, the id stays taken and an answer is dropped, as after a cancellation.
func (t Ticket) Abandon() {
	if t.f != nil {
		t.s.withdraw(t.party, t.f.key, t.f)
	}
}

// answer is what ends a request of a party.
func (s *Session) answer(requester *party, f *flight, message []byte, cause Cause) Outgoing {
	return Outgoing{Message: message, Kind: wire.Failure, Cause: cause, step: finishing, s: s, from: requester, flight: f}
}
