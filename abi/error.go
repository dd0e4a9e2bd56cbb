package abi

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Error says why an invocation has no result. It is what every host of
// interceptors returns and what goes out as a JSON-RPC error (protocol.md §3).
// Only [Error.Code], [Error.Message] and [Error.AppendData] cross a border;
// Cause is for the operator's log and may hold a guest's own words.
type Error struct {
	Reason      Reason
	Interceptor string
	Event       string
	Phase       Phase
	// Path says which member of the parameters or of the config is wrong.
	Path string
	// Limit is the limit that fired, for ReasonTimeout.
	Limit time.Duration
	// Unknown marks a name that no interceptor has.
	Unknown bool
	// Unhooked marks an event and phase that the interceptor does not hook;
	// AdvertisedHooks is then what it does hook.
	Unhooked        bool
	AdvertisedHooks Hooks
	Cause           error
}

// UnknownName is the error for a name that no interceptor has.
func UnknownName(name string) *Error {
	return &Error{Reason: ReasonParams, Interceptor: name, Unknown: true}
}

// NotHooked is the error for an event and phase that d does not hook.
func NotHooked(d *Descriptor, event string, phase Phase) *Error {
	return &Error{Reason: ReasonParams, Interceptor: d.Name, Event: event, Phase: phase, Unhooked: true, AdvertisedHooks: d.Hooks}
}

// BadParams is the error for malformed parameters. Name and path may be empty.
func BadParams(name, path string, cause error) *Error {
	return &Error{Reason: ReasonParams, Interceptor: name, Path: path, Cause: cause}
}

// BadConfig is the error for a config that is not of its schema.
func BadConfig(name, path string, cause error) *Error {
	return &Error{Reason: ReasonConfig, Interceptor: name, Path: path, Cause: cause}
}

// Failed is the error for an execution that failed for the given reason.
func Failed(name string, phase Phase, reason Reason, cause error) *Error {
	return &Error{Reason: reason, Interceptor: name, Phase: phase, Cause: cause}
}

// TimedOut is the error for an execution that passed its limit.
func TimedOut(name string, phase Phase, limit time.Duration, cause error) *Error {
	return &Error{Reason: ReasonTimeout, Interceptor: name, Phase: phase, Limit: limit, Cause: cause}
}

// AsError returns err as an [*Error]: itself when it is one, else a failure of
// the named interceptor whose reason is timeout or cancelled for a context's
// error and unavailable for all others. It returns nil for nil.
func AsError(err error, name string, phase Phase) *Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	reason := ReasonUnavailable
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		reason = ReasonTimeout
	case errors.Is(err, context.Canceled):
		reason = ReasonCancelled
	}
	return Failed(name, phase, reason, err)
}

// Error describes the failure with its cause, for logs.
func (e *Error) Error() string {
	s := e.Message()
	if e.Interceptor != "" {
		s = fmt.Sprintf("interceptor %q: %s", e.Interceptor, s)
	}
	if e.Path != "" {
		s += ": " + e.Path
	}
	if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Code is the JSON-RPC code.
func (e *Error) Code() int {
	switch e.Reason {
	case ReasonParams, ReasonConfig:
		return CodeInvalidParams
	case ReasonTimeout:
		return CodeTimeout
	default:
		return CodeInternal
	}
}

// Message is the generic text that goes out: never a path, a trace or a
// guest's own words.
func (e *Error) Message() string {
	switch {
	case e.Unknown:
		return "no interceptor has this name"
	case e.Unhooked:
		return "the interceptor does not hook this event and phase"
	case e.Reason == ReasonParams:
		return "malformed params"
	case e.Reason == ReasonConfig:
		return "config does not match the interceptor's configSchema"
	case e.Reason == ReasonTimeout:
		return "the interceptor did not answer in time"
	default:
		return "the interceptor failed: " + string(e.Reason)
	}
}

// AppendData appends error.data of the table in protocol.md §3.
func (e *Error) AppendData(dst []byte) []byte {
	o := openObject(dst)
	switch {
	case e.Unknown:
		o.string(keyName, e.Interceptor)
	case e.Unhooked:
		o.string(keyName, e.Interceptor)
		o.string(keyEvent, e.Event)
		o.string(keyPhase, string(e.Phase))
		o.b = e.AdvertisedHooks.AppendJSON(o.key(keyAdvertisedHooks))
	case e.Reason == ReasonParams, e.Reason == ReasonConfig:
		o.optString(keyName, e.Interceptor)
		o.string(keyReason, string(e.Reason))
		o.optString(keyPath, e.Path)
	default:
		o.string(keyInterceptor, e.Interceptor)
		o.string(keyReason, string(e.Reason))
		if e.Reason == ReasonTimeout {
			o.int(keyTimeoutMs, Milliseconds(e.Limit))
		}
		o.string(keyPhase, string(e.Phase))
	}
	return o.close()
}

// ReadError turns the JSON-RPC error with which a host answered an invocation
// into an [*Error]. A timeout is known by its reason under -32000 and -32603
// alike (protocol.md §3); a reason that is not known, or none, counts as
// unavailable, and -32602 without one as params.
func ReadError(name string, phase Phase, code int, message string, data []byte) *Error {
	e := &Error{Interceptor: name, Phase: phase, Cause: fmt.Errorf("the host answered %d: %s", code, message)}
	if m, err := readObject(data); err == nil {
		reason, _, _ := m.string(keyReason)
		e.Reason = Reason(reason)
		e.Path, _, _ = m.string(keyPath)
		if raw, ok := m.get(keyTimeoutMs); ok {
			if ms, err := readInteger(raw); err == nil && ms > 0 {
				e.Limit = time.Duration(min(ms, maxTimeoutMs)) * time.Millisecond
			}
		}
	}
	switch e.Reason {
	case ReasonParams, ReasonConfig:
		if code != CodeInvalidParams {
			e.Reason = ReasonUnavailable
		}
	case ReasonTimeout, ReasonTrap, ReasonExit, ReasonMemory, ReasonStack, ReasonFuel, ReasonBusy, ReasonPayloadTooLarge,
		ReasonOutputTooLarge, ReasonBadOutput, ReasonGuest, ReasonUnavailable, ReasonCancelled:
	default:
		e.Reason = ReasonUnavailable
		if code == CodeInvalidParams {
			e.Reason = ReasonParams
			e.readWhose(data)
		}
	}
	return e
}

// readWhose tells apart the rows of the table that have no reason: an unknown
// name, and an event and phase that are not hooked.
func (e *Error) readWhose(data []byte) {
	m, err := readObject(data)
	if err != nil || !m.has(keyName) {
		return
	}
	raw, ok := m.get(keyAdvertisedHooks)
	if !ok {
		e.Unknown = len(m) == 1
		return
	}
	if hooks, err := readHooks(object{{keyHooks, raw}}); err == nil {
		e.Unhooked, e.AdvertisedHooks = true, hooks
		e.Event, _, _ = m.string(keyEvent)
	}
}
