package library

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/wire"
)

// Handler answers one invocation of a native interceptor. What it leaves out of
// the result of type, interceptor, phase and durationMs is filled in. An error
// that is no *abi.Error is a failure "guest" (or "timeout", "cancelled" for
// those of the context) and its text goes to the operator's log only.
//
// It may be called concurrently. It must not change the bytes it is given, and
// should return when ctx ends; if it does not, the caller stops waiting for it.
type Handler func(ctx context.Context, inv *abi.Invocation) (abi.Result, error)

// Native is an interceptor written in Go, with what it says about itself
// (protocol.md §2) and its handler. [Validator], [Mutator], [Sink], [Check] and
// [CheckTool] make one; the other members may be set on what they return.
type Native struct {
	Name        string
	Version     string
	Description string
	Type        abi.Type
	Hooks       abi.Hooks
	Mode        abi.Mode // empty means active
	FailOpen    bool
	// Priority orders a mutation in both phases. Set it or the two below, not
	// both: Register refuses that. New makes a pointer: new(int32(-100)).
	Priority *int32
	// RequestPriority and ResponsePriority order a mutation phase by phase. One
	// that is nil is 0.
	RequestPriority, ResponsePriority *int32
	Compat                            *abi.Compat
	// ConfigSchema is a JSON Schema with "type":"object", or nil for none.
	ConfigSchema json.RawMessage
	Handler      Handler
}

// Verdict is what a [Validator] decides. Its zero value is "no", with severity
// error.
type Verdict struct {
	Valid bool
	// Severity grades a "no"; empty counts as error (protocol.md §5).
	Severity    abi.Severity
	Messages    []abi.Message
	Suggestions []abi.Suggestion
	// Info is any JSON value for the record, or nil.
	Info json.RawMessage
}

// Allow is the verdict that lets an operation pass.
func Allow() Verdict { return Verdict{Valid: true} }

// Deny is the verdict that blocks an operation, with one message.
func Deny(message string) Verdict {
	return Verdict{
		Severity: abi.SeverityError,
		Messages: []abi.Message{{Message: message, Severity: abi.SeverityError}},
	}
}

// Validator is a native validation.
func Validator(name string, hooks abi.Hooks, decide func(ctx context.Context, inv *abi.Invocation) (Verdict, error)) Native {
	n := Native{Name: name, Type: abi.Validation, Hooks: hooks}
	if decide != nil {
		n.Handler = func(ctx context.Context, inv *abi.Invocation) (abi.Result, error) {
			v, err := decide(ctx, inv)
			return abi.Result{
				Valid: v.Valid, Severity: v.Severity, Messages: v.Messages, Suggestions: v.Suggestions, Info: v.Info,
			}, err
		}
	}
	return n
}

// Mutator is a native mutation. It returns the payload that replaces the
// invocation's, or nil to leave it as it is.
func Mutator(name string, hooks abi.Hooks, replace func(ctx context.Context, inv *abi.Invocation) (json.RawMessage, error)) Native {
	n := Native{Name: name, Type: abi.Mutation, Hooks: hooks}
	if replace != nil {
		n.Handler = func(ctx context.Context, inv *abi.Invocation) (abi.Result, error) {
			payload, err := replace(ctx, inv)
			return abi.Result{Modified: payload != nil, Payload: payload}, err
		}
	}
	return n
}

// Sink is a native sink. Its result says recorded when the handler returns no
// error.
func Sink(name string, hooks abi.Hooks, record func(ctx context.Context, inv *abi.Invocation) error) Native {
	n := Native{Name: name, Type: abi.Sink, Hooks: hooks}
	if record != nil {
		n.Handler = func(ctx context.Context, inv *abi.Invocation) (abi.Result, error) {
			return abi.Result{Recorded: true}, record(ctx, inv)
		}
	}
	return n
}

// Check is a native validation out of a plain func: it is given the bare
// payload as raw JSON (protocol.md §3, whatever shape it was sent in) and says
// whether the operation may pass.
func Check(name string, hooks abi.Hooks, allow func(payload json.RawMessage) bool) Native {
	if allow == nil {
		return Validator(name, hooks, nil)
	}
	return Validator(name, hooks, func(_ context.Context, inv *abi.Invocation) (Verdict, error) {
		bare, _ := abi.Unwrap(inv.Event, inv.Payload)
		return verdict(allow(bare)), nil
	})
}

// CheckTool is a native validation of tools/call requests out of a plain func:
// it is given the name of the tool and its arguments as raw JSON, {} when there
// are none, and says whether the call may pass. A call without a tool's name
// may not.
func CheckTool(name string, allow func(tool string, arguments json.RawMessage) bool) Native {
	hooks := abi.On(abi.Request, abi.ToolsCall)
	if allow == nil {
		return Validator(name, hooks, nil)
	}
	return Validator(name, hooks, func(_ context.Context, inv *abi.Invocation) (Verdict, error) {
		bare, _ := abi.Unwrap(inv.Event, inv.Payload)
		raw, _ := wire.Get(bare, "name")
		tool, ok := wire.Unquote(raw)
		if !ok {
			return Deny("the call names no tool"), nil
		}
		arguments, ok := wire.Get(bare, "arguments")
		if !ok || string(arguments) == "null" {
			arguments = []byte("{}")
		}
		return verdict(allow(tool, arguments)), nil
	})
}

func verdict(allowed bool) Verdict {
	if allowed {
		return Allow()
	}
	return Verdict{Severity: abi.SeverityError}
}

// descriptor checks the registration.
func (n *Native) descriptor() (abi.Descriptor, error) {
	d := abi.Descriptor{
		Name: n.Name, Version: n.Version, Description: n.Description, Type: n.Type, Hooks: n.Hooks,
		Mode: n.Mode, FailOpen: n.FailOpen, Compat: n.Compat, ConfigSchema: n.ConfigSchema,
	}
	if d.Mode == "" {
		d.Mode = abi.Active
	}
	perPhase := n.RequestPriority != nil || n.ResponsePriority != nil
	switch {
	case n.Priority != nil && perPhase:
		return d, fmt.Errorf("%q: Priority beside RequestPriority or ResponsePriority: which of them counts would be anyone's guess; set one kind", n.Name)
	case n.Priority != nil:
		d.PriorityHint = abi.Priority(*n.Priority)
	case perPhase:
		d.PriorityHint = abi.PhasePriority(n.RequestPriority, n.ResponsePriority)
	}
	if n.Handler == nil {
		return d, fmt.Errorf("%q: has no handler", n.Name)
	}
	return d, d.Validate()
}

// native is a registered Native as a caller of interceptors.
type native struct {
	descriptor abi.Descriptor
	handler    Handler
	schema     *schema
	gate       *gate
}

type nativeAnswer struct {
	result abi.Result
	err    error
}

// invoke runs the handler beside the caller, so that neither a handler that
// ignores its context nor one that panics takes the caller with it.
func (n *native) invoke(ctx context.Context, inv abi.Invocation) (abi.Result, error) {
	start := time.Now()
	if inv.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, inv.Timeout)
		defer cancel()
	}
	if err := ctx.Err(); err != nil {
		return abi.Result{}, n.ended(ctx, &inv)
	}
	if !n.gate.enter() {
		return abi.Result{}, abi.Failed(inv.Name, inv.Phase, abi.ReasonUnavailable, ErrClosed)
	}
	answered := make(chan nativeAnswer, 1)
	go func() {
		defer n.gate.leave()
		var a nativeAnswer
		defer func() { answered <- a }()
		defer func() {
			if p := recover(); p != nil {
				a = nativeAnswer{err: abi.Failed(inv.Name, inv.Phase, abi.ReasonTrap, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))}
			}
		}()
		call := inv
		a.result, a.err = n.handler(ctx, &call)
	}()
	var a nativeAnswer
	select {
	case a = <-answered:
	case <-ctx.Done():
		return abi.Result{}, n.ended(ctx, &inv)
	}
	if a.err != nil {
		return abi.Result{}, n.failed(ctx, &inv, a.err)
	}
	r := a.result
	if err := n.complete(&r, inv.Phase); err != nil {
		return abi.Result{}, abi.Failed(inv.Name, inv.Phase, abi.ReasonBadOutput, err)
	}
	ms := float64(time.Since(start).Milliseconds())
	r.DurationMs = &ms
	return r, nil
}

// ended is the error for a context that ended before the handler did.
func (n *native) ended(ctx context.Context, inv *abi.Invocation) *abi.Error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return abi.TimedOut(inv.Name, inv.Phase, inv.Timeout, ctx.Err())
	}
	return abi.Failed(inv.Name, inv.Phase, abi.ReasonCancelled, context.Cause(ctx))
}

func (n *native) failed(ctx context.Context, inv *abi.Invocation, err error) *abi.Error {
	if e, ok := errors.AsType[*abi.Error](err); ok {
		return e
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return n.ended(ctx, inv)
	}
	return abi.Failed(inv.Name, inv.Phase, abi.ReasonGuest, err)
}

// complete fills in what the handler left out, and holds the answer to what the
// strict reader holds a guest's to: its raw parts are spliced into messages.
func (n *native) complete(r *abi.Result, phase abi.Phase) error {
	if err := r.Complete(&n.descriptor, phase); err != nil {
		return err
	}
	type part struct {
		name string
		raw  json.RawMessage
	}
	parts := []part{{"info", r.Info}, {"payload", r.Payload}, {"metrics", r.Metrics}}
	for i, s := range r.Suggestions {
		parts = append(parts, part{fmt.Sprintf("suggestions[%d]", i), s.Value})
	}
	for _, p := range parts {
		if p.raw == nil {
			continue
		}
		if err := wire.Strict(p.raw); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	_, err := abi.ReadResult(r.AppendJSON(nil))
	return err
}
