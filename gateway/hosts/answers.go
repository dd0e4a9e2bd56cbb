package hosts

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/wire"
)

// envelopeBytes is room for the JSON-RPC envelope around an answer.
const envelopeBytes = 4 << 10

// Bounds on what a host may ask by itself. The SDK queues what arrives without
// bound while the host does not read its answers.
const (
	maxPingsPerSecond = 10
	maxPingID         = 128 // bytes
)

// answers is the strict reader in front of the SDK's: only messages that
// internal/wire accepts pass, and of those the ones that an invoker has use for:
// answers, and a ping now and then. A response that does not pass becomes a
// failure of the call that waits for it; one bad line costs no other call.
type answers struct {
	lines  *wire.LineReader
	closer io.Closer
	log    *slog.Logger
	rest   []byte
	noise  int

	second time.Time // in which pings are counted
	pings  int
}

func (a *answers) Close() error { return a.closer.Close() }

// Read gives message after message, each with a line feed.
func (a *answers) Read(p []byte) (int, error) {
	for len(a.rest) == 0 {
		line, err := a.lines.Next()
		var long *wire.TooLong
		switch {
		case errors.As(err, &long):
			a.rest = refusal(long.Kind, long.ID, abi.ReasonOutputTooLarge)
			a.dropped(err)
		case err != nil:
			return 0, err
		default:
			a.rest = a.admit(line)
		}
	}
	n := copy(p, a.rest)
	a.rest = a.rest[n:]
	return n, nil
}

func (a *answers) admit(line []byte) []byte {
	m, err := wire.Read(line)
	if err != nil {
		bad := wire.AsError(err)
		a.dropped(err)
		return refusal(bad.Kind, bad.ID, abi.ReasonBadOutput)
	}
	switch m.Kind {
	case wire.Request:
		if m.Method != "ping" || len(m.ID.Raw()) > maxPingID || !a.mayPing(time.Now()) {
			a.dropped(errUnasked)
			return nil
		}
		return append(wire.AppendRequest(nil, m.ID.Raw(), m.Method, nil), '\n')
	case wire.Notification:
		return nil
	default:
		return append(wire.Flat(nil, line), '\n')
	}
}

var errUnasked = errors.New("a request that an interceptor server has no use for, or one ping too many")

// mayPing counts a ping.
func (a *answers) mayPing(now time.Time) bool {
	if now.Sub(a.second) >= time.Second {
		a.second, a.pings = now, 0
	}
	a.pings++
	return a.pings <= maxPingsPerSecond
}

// dropped logs the first few of what is no message, so that a chatty command
// does not fill the log.
func (a *answers) dropped(err error) {
	if a.noise++; a.noise <= 5 {
		a.log.Warn("the host sent something that is no message for an invoker; it was dropped", "error", err, "dropped", a.noise)
	}
}

// refusal is what the waiting call gets instead of an answer that was refused;
// nothing where nobody waits.
func refusal(kind wire.Kind, id wire.ID, reason abi.Reason) []byte {
	if kind == wire.Request || kind == wire.Notification || id.IsZero() || id.IsNull() {
		return nil
	}
	return append(refuse(id, reason, "the answer was refused"), '\n')
}

// refuse answers a call in the host's place.
func refuse(id wire.ID, reason abi.Reason, text string) []byte {
	return wire.AppendFailure(nil, id.Raw(), abi.CodeInternal, text, fmt.Appendf(nil, `{"reason":%q}`, reason))
}
