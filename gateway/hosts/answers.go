package hosts

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/wire"
)

// envelopeBytes is room for the JSON-RPC envelope around an answer.
const envelopeBytes = 4 << 10

// answers is the strict reader in front of the SDK's: only messages that
// internal/wire accepts pass. A response that does not pass becomes a failure
// of the call that waits for it; one bad line costs no other call.
type answers struct {
	lines  *wire.LineReader
	closer io.Closer
	log    *slog.Logger
	rest   []byte
	noise  int
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
	if _, err := wire.Read(line); err != nil {
		var bad *wire.Error
		errors.As(err, &bad) // always one
		a.dropped(err)
		return refusal(bad.Kind, bad.ID, abi.ReasonBadOutput)
	}
	return append(wire.Flat(nil, line), '\n')
}

// dropped logs the first few of what is no message, so that a chatty command
// does not fill the log.
func (a *answers) dropped(err error) {
	if a.noise++; a.noise <= 5 {
		a.log.Warn("the host sent something that is no message; it was dropped", "error", err, "dropped", a.noise)
	}
}

// refusal is what the waiting call gets instead of an answer that was refused;
// nothing where nobody waits.
func refusal(kind wire.Kind, id wire.ID, reason abi.Reason) []byte {
	if kind == wire.Request || kind == wire.Notification || id.IsZero() || id.IsNull() {
		return nil
	}
	data := fmt.Appendf(nil, `{"reason":%q}`, reason)
	return append(wire.AppendFailure(nil, id.Raw(), abi.CodeInternal, "the answer was refused", data), '\n')
}

// refuseBody is refusal for the body that answers an HTTP request.
func refuseBody(request []byte, reason abi.Reason) []byte {
	_, id := wire.Peek(request)
	return bytes.TrimSuffix(refusal(wire.Response, id, reason), []byte("\n"))
}
