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
	fault, _ := errors.AsType[*Fault](err)
	f := failure{reason: abi.ReasonTrap, cause: bounding(err)}
	if s, ok := errors.AsType[*stop](err); ok {
		f.reason = s.reason
	} else if _, ok := errors.AsType[*exited](err); ok {
		f.reason = abi.ReasonExit
	} else if fault != nil && fault.Kind == FaultStack {
		f.reason = abi.ReasonStack
	} else if ctx.Err() != nil && (fault == nil || fault.Kind != FaultTrap) {
		return interruption(ctx)
	}
	// A guest that was refused memory and then dies of whatever died of that.
	if fault != nil && fault.GrowthRefused && (f.reason == abi.ReasonTrap || f.reason == abi.ReasonExit) {
		f.reason = abi.ReasonMemory
	}
	return f
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
