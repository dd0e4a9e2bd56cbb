package relay

import "errors"

// ErrClosed is what the methods of an [End] return after Close.
var ErrClosed = errors.New("relay: end is closed")

// End is one side's stream of messages, as a transport gives it to the relay.
// Read is called by one goroutine, Write and CloseWrite by one at a time, and
// Close by any.
type End interface {
	// Read gives the next message, which then belongs to the caller. A
	// *wire.TooLong stands for a message that was discarded, and reading goes
	// on behind it. Any other error is final; io.EOF means that the peer has
	// nothing more to say.
	Read() ([]byte, error)
	// Write sends one message. It blocks while the peer does not read. It does
	// not keep the bytes. A transport that frames by lines must write it
	// without CR and LF (wire.Flat).
	Write(message []byte) error
	// CloseWrite tells the peer that nothing more will come.
	CloseWrite() error
	// Close ends both directions and whatever serves them, and makes a Read or
	// Write in progress return. It may be called more than once.
	Close() error
}

// Traced is an [End] whose transport brings trace contexts beside messages.
type Traced interface {
	End
	// Traceparent is the W3C Trace Context that came with the message which Read
	// gave last, unchecked; empty where none did. Whoever calls Read calls it.
	Traceparent() string
}

// Side is one of the two ends.
type Side uint8

// The two sides.
const (
	Client Side = iota
	Backend
)

// String is the side in lower case.
func (s Side) String() string {
	if s == Backend {
		return "backend"
	}
	return "client"
}
