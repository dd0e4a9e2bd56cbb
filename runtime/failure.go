package runtime

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/runtime/memory"
	"github.com/weir-mcp/weir/runtime/meter"
)

// failure is why a run of a guest came to nothing. Host functions end a guest
// by returning one.
type failure struct {
	reason abi.Reason
	cause  error
	limit  time.Duration // for a timeout, 0 where it was a stranger's
	stage  string        // what ran, where that was not the call itself
}

// Error names what ran, so that a call that fails in the start of its instance
// is not looked for in the interceptor.
func (f *failure) Error() string {
	if f.stage == "" {
		return f.cause.Error()
	}
	return f.stage + ": " + f.cause.Error()
}

func (f *failure) Unwrap() error { return f.cause }

// stages are what of a module runs besides its calls, by the export that is
// called for it.
var stages = map[string]string{
	meter.ExportStart:    "the start function",
	abi.ExportInitialize: abi.ExportInitialize,
	abi.ExportDescribe:   abi.ExportDescribe,
	abi.ExportWarmup:     abi.ExportWarmup,
	abi.ExportReseed:     abi.ExportReseed,
}

// stageInstance is the stage in which nothing of the module runs yet.
const stageInstance = "making an instance"

func failuref(reason abi.Reason, format string, args ...any) *failure {
	return &failure{reason: reason, cause: fmt.Errorf(format, args...)}
}

// failureOf finds out why a run failed with err.
func failureOf(err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	f := &failure{reason: abi.ReasonTrap, cause: err}
	if _, ok := errors.AsType[*exited](err); ok {
		f.reason = abi.ReasonExit
	} else if fault, ok := errors.AsType[*Fault](err); ok && fault.Kind == FaultStack {
		f.reason = abi.ReasonStack
	} else if errors.Is(err, memory.ErrNoRoom) {
		// The other modules have it, for now.
		f.reason = abi.ReasonBusy
	}
	return f
}

// deadline is a moment at which a run must end, and the limit that it is the
// end of. The zero value is none.
type deadline struct {
	at    time.Time
	limit time.Duration // 0 for a stranger's
}

// within is the deadline that a limit sets, or none for a limit of 0.
func within(limit time.Duration) deadline {
	if limit <= 0 {
		return deadline{}
	}
	return deadline{time.Now().Add(limit), limit}
}

// deadlineOf is the deadline of a context, which is the caller's.
func deadlineOf(ctx context.Context) deadline {
	at, ok := ctx.Deadline()
	if !ok {
		return deadline{}
	}
	return deadline{at, max(time.Until(at), time.Millisecond)}
}

// or gives the earlier one.
func (d deadline) or(other deadline) deadline {
	if d.at.IsZero() || !other.at.IsZero() && other.at.Before(d.at) {
		return other
	}
	return d
}

// left is how much time there is, and false without a deadline.
func (d deadline) left() (time.Duration, bool) {
	if d.at.IsZero() {
		return 0, false
	}
	return time.Until(d.at), true
}

// passed is the failure of a run that goes on, or nil while it may.
func (d deadline) passed(ctx context.Context) *failure { return d.passedAt(ctx, time.Now()) }

func (d deadline) passedAt(ctx context.Context, now time.Time) *failure {
	if err := ctx.Err(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return &failure{reason: abi.ReasonCancelled, cause: context.Cause(ctx)}
	} else if err != nil || !d.at.IsZero() && now.After(d.at) {
		return d.missed()
	}
	return nil
}

// missed is the failure of a run that has not ended in time.
func (d deadline) missed() *failure {
	f := failuref(abi.ReasonTimeout, "the limit of %v passed", d.limit)
	f.limit = d.limit
	return f
}

// maxCause is how much of a guest's own words an error carries, in bytes.
const maxCause = 4 << 10

// boundedError is an error whose text is short, valid UTF-8 and one line: engines
// tell where a guest trapped in many.
type boundedError struct{ err error }

func bounding(err error) error { return &boundedError{err} }

func (e *boundedError) Error() string { return boundedText(e.err.Error()) }
func (e *boundedError) Unwrap() error { return e.err }

func boundedText(s string) string {
	s = oneLine(s)
	if len(s) > maxCause {
		s = s[:maxCause] + "…"
	}
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// oneLine joins the lines of a text.
func oneLine(s string) string {
	if !strings.ContainsAny(s, "\r\n") {
		return s
	}
	var b strings.Builder
	for line := range strings.FieldsFuncSeq(s, func(r rune) bool { return r == '\r' || r == '\n' }) {
		line = strings.TrimSpace(line)
		switch {
		case line == "":
			continue
		case b.Len() == 0:
		case strings.HasSuffix(b.String(), ":"):
			b.WriteByte(' ')
		default:
			b.WriteString("; ")
		}
		b.WriteString(line)
	}
	return b.String()
}
