package runtime

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weir-mcp/weir/abi"
)

// timeLimit is the cause of a context that one of our own limits ended.
type timeLimit struct{ limit time.Duration }

func (t *timeLimit) Error() string { return "the limit of " + t.limit.String() + " passed" }

// failure is why a run of a guest came to nothing.
type failure struct {
	reason abi.Reason
	cause  error
	limit  time.Duration // for a timeout, 0 where it was a stranger's
}

// failureOf finds out why a run under ctx failed with err.
func failureOf(ctx context.Context, err error) failure {
	if s, ok := errors.AsType[*stop](err); ok {
		return failure{reason: s.reason, cause: s.err}
	}
	if e, ok := errors.AsType[*exited](err); ok {
		f := failure{reason: abi.ReasonExit, cause: e}
		if fault, ok := errors.AsType[*Fault](err); ok && fault.GrowthRefused {
			f.reason = abi.ReasonMemory
		}
		return f
	}
	fault, ok := errors.AsType[*Fault](err)
	if interrupted := ctx.Err() != nil && (!ok || fault.Kind == FaultInterrupted || fault.Kind == FaultHost); interrupted {
		return interruption(ctx)
	}
	if !ok {
		return failure{reason: abi.ReasonTrap, cause: bounding(err)}
	}
	switch {
	case fault.Kind == FaultStack:
		return failure{reason: abi.ReasonStack, cause: bounding(err)}
	case fault.GrowthRefused:
		return failure{reason: abi.ReasonMemory, cause: bounding(err)}
	default:
		return failure{reason: abi.ReasonTrap, cause: bounding(err)}
	}
}

// interruption tells the end of our own limits from that of the caller.
func interruption(ctx context.Context) failure {
	cause := context.Cause(ctx)
	if own, ok := cause.(*timeLimit); ok {
		return failure{reason: abi.ReasonTimeout, cause: cause, limit: own.limit}
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return failure{reason: abi.ReasonTimeout, cause: cause}
	}
	return failure{reason: abi.ReasonCancelled, cause: cause}
}

// maxCause is how much of a guest's own words an error carries, in bytes.
const maxCause = 4 << 10

// boundedError is an error whose text is short and valid UTF-8.
type boundedError struct{ err error }

func bounding(err error) error { return &boundedError{err} }

func (e *boundedError) Error() string { return boundedText(e.err.Error()) }
func (e *boundedError) Unwrap() error { return e.err }

func boundedText(s string) string {
	if len(s) > maxCause {
		s = s[:maxCause] + "…"
	}
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
