package mockhost

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/weir-mcp/weir/abi"
)

// Behaviour is what an interceptor does when it is invoked.
type Behaviour func(ctx context.Context, inv abi.Invocation) (abi.Result, error)

// Echo is a result of the type that echoes its invocation and says no more.
func Echo(typ abi.Type, inv abi.Invocation) abi.Result {
	return abi.Result{Type: typ, Interceptor: inv.Name, Phase: inv.Phase}
}

// Verdict answers as a validation.
func Verdict(valid bool, severity abi.Severity, messages ...abi.Message) Behaviour {
	return func(_ context.Context, inv abi.Invocation) (abi.Result, error) {
		r := Echo(abi.Validation, inv)
		r.Valid, r.Severity, r.Messages = valid, severity, messages
		return r, nil
	}
}

// Pass and Reject are the plain verdicts.
var (
	Pass   = Verdict(true, "")
	Reject = Verdict(false, abi.SeverityError)
)

// Deny is a validation that rejects payloads which hold a word.
func Deny(word string) Behaviour {
	return func(ctx context.Context, inv abi.Invocation) (abi.Result, error) {
		return Verdict(!strings.Contains(string(inv.Payload), word), "")(ctx, inv)
	}
}

// Unmodified is a mutation that changes nothing.
func Unmodified(_ context.Context, inv abi.Invocation) (abi.Result, error) {
	return Echo(abi.Mutation, inv), nil
}

// Replace is a mutation that answers with one payload, whatever comes; "" is an
// answer without any.
func Replace(payload string) Behaviour {
	return func(_ context.Context, inv abi.Invocation) (abi.Result, error) {
		r := Echo(abi.Mutation, inv)
		r.Modified = true
		if payload != "" {
			r.Payload = json.RawMessage(payload)
		}
		return r, nil
	}
}

// Tag is a mutation that appends the interceptor's name to the text at the end
// of the payload, so that a payload tells its own story.
func Tag(_ context.Context, inv abi.Invocation) (abi.Result, error) {
	r := Echo(abi.Mutation, inv)
	r.Modified = true
	r.Payload = json.RawMessage(strings.Replace(string(inv.Payload), `"}`, "+"+inv.Name+`"}`, 1))
	return r, nil
}

// Recorded is a sink that did its work.
func Recorded(_ context.Context, inv abi.Invocation) (abi.Result, error) {
	r := Echo(abi.Sink, inv)
	r.Recorded = true
	return r, nil
}

// Fails answers with an error.
func Fails(reason abi.Reason) Behaviour {
	return func(_ context.Context, inv abi.Invocation) (abi.Result, error) {
		return abi.Result{}, abi.Failed(inv.Name, inv.Phase, reason, errors.New("scripted"))
	}
}

// Broken traps.
var Broken = Fails(abi.ReasonTrap)

// Raw answers with JSON that need not be a result.
func Raw(answer string) Behaviour {
	return func(context.Context, abi.Invocation) (abi.Result, error) { return abi.Result{}, rawAnswer(answer) }
}

// rawAnswer is an answer as it stands on the wire.
type rawAnswer string

func (r rawAnswer) Error() string { return "answers " + string(r) }

// ErrDropped is what a call ends with whose connection is lost.
var ErrDropped = errors.New("connection reset")

// Drop loses the connection in the middle of the call. Over a transport nothing
// is answered: a process exits, a web server cuts its connections.
func Drop(context.Context, abi.Invocation) (abi.Result, error) { return abi.Result{}, ErrDropped }

// Hang waits for its context.
func Hang(ctx context.Context, _ abi.Invocation) (abi.Result, error) {
	<-ctx.Done()
	return abi.Result{}, ctx.Err()
}

// After waits, unless its context ends first.
func After(d time.Duration, then Behaviour) Behaviour {
	return func(ctx context.Context, inv abi.Invocation) (abi.Result, error) {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return then(ctx, inv)
		case <-ctx.Done():
			return abi.Result{}, ctx.Err()
		}
	}
}

// Deaf waits without a look at its context.
func Deaf(d time.Duration, then Behaviour) Behaviour {
	return func(ctx context.Context, inv abi.Invocation) (abi.Result, error) {
		time.Sleep(d)
		return then(ctx, inv)
	}
}

// Twisted answers as then does and changes the answer.
func Twisted(then Behaviour, twist func(*abi.Result)) Behaviour {
	return func(ctx context.Context, inv abi.Invocation) (abi.Result, error) {
		r, err := then(ctx, inv)
		twist(&r)
		return r, err
	}
}
