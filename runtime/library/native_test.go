package library_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/runtime/library"
)

var onCalls = abi.On(abi.Request, abi.ToolsCall)

func registered(t testing.TB, natives ...library.Native) *library.Library {
	t.Helper()
	l := library.New(library.Options{})
	for _, n := range natives {
		require.NoError(t, l.Register(n))
	}
	return l
}

func TestRegisterRefuses(t *testing.T) {
	good := library.Validator("good", onCalls, allow)
	rows := []struct {
		name, complaint string
		change          func(n *library.Native)
	}{
		{"a scalar and a per-phase priority", "set one kind", func(n *library.Native) { n.Priority, n.ResponsePriority = new(int32(1)), new(int32(1)) }},
		{"even when both say 0", "set one kind", func(n *library.Native) { n.Priority, n.RequestPriority = new(int32), new(int32) }},
		{"no name", `"name" is missing`, func(n *library.Native) { n.Name = "" }},
		{"no type", "none of validation", func(n *library.Native) { n.Type = "" }},
		{"no handler", "no handler", func(n *library.Native) { n.Handler = nil }},
		{"a hook without a phase", "phase", func(n *library.Native) { n.Hooks = abi.Hooks{{Events: []string{"*"}}} }},
		{"a sink in audit mode", "no audit mode", func(n *library.Native) { n.Type, n.Mode = abi.Sink, abi.Audit }},
		{"a schema of no object", "must be", func(n *library.Native) { n.ConfigSchema = json.RawMessage(`{"type":"array"}`) }},
		{"a schema that does not resolve", "configSchema", func(n *library.Native) { n.ConfigSchema = json.RawMessage(`{"type":"object","$ref":"#/x"}`) }},
		{"a taken name", "already", func(n *library.Native) { n.Name = "taken" }},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			l := registered(t, library.Validator("taken", onCalls, allow))
			n := good
			row.change(&n)
			require.ErrorContains(t, l.Register(n), row.complaint)
			require.Equal(t, []string{"taken"}, names(l))
		})
	}
	for _, n := range []library.Native{
		library.Validator("x", onCalls, nil), library.Mutator("x", onCalls, nil), library.Sink("x", onCalls, nil),
		library.Check("x", onCalls, nil), library.CheckTool("x", nil),
	} {
		require.ErrorContains(t, library.New(library.Options{}).Register(n), "no handler")
	}
}

func TestPriorities(t *testing.T) {
	scalar, perPhase, none := library.Mutator("s", onCalls, keep), library.Mutator("p", onCalls, keep), library.Mutator("n", onCalls, keep)
	scalar.Priority = new(int32(-7))
	perPhase.ResponsePriority = new(int32(3))
	list := registered(t, scalar, perPhase, none).List()
	require.Equal(t, abi.Priority(-7), list[0].PriorityHint)
	require.Equal(t, abi.PhasePriority(nil, new(int32(3))), list[1].PriorityHint)
	require.False(t, list[2].PriorityHint.IsSet())
}

func keep(context.Context, *abi.Invocation) (json.RawMessage, error) { return nil, nil }

func TestNativeResults(t *testing.T) {
	l := registered(t,
		library.Check("check", onCalls, func(p json.RawMessage) bool { return string(p) == `{"n":1.0}` }),
		library.CheckTool("tool", func(tool string, arguments json.RawMessage) bool {
			return tool == "ls" && string(arguments) == `{"a":1.0}`
		}),
		library.Validator("deny", onCalls, func(context.Context, *abi.Invocation) (library.Verdict, error) { return library.Deny("no"), nil }),
		library.Mutator("replace", onCalls, func(context.Context, *abi.Invocation) (json.RawMessage, error) {
			return json.RawMessage(`{"m":2}`), nil
		}),
		library.Mutator("keep", onCalls, keep),
		library.Sink("sink", onCalls, func(context.Context, *abi.Invocation) error { return nil }),
	)
	rows := []struct{ name, payload, result string }{
		{"check", `{"n":1.0}`, `{"type":"validation","interceptor":"check","phase":"request","valid":true}`},
		{"check", `{"n":1}`, `{"type":"validation","interceptor":"check","phase":"request","valid":false,"severity":"error"}`},
		{"check", `{"method":"tools/call","params":{"n":1.0}}`, `{"type":"validation","interceptor":"check","phase":"request","valid":true}`},
		{"tool", `{"name":"ls","arguments":{"a":1.0}}`, `{"type":"validation","interceptor":"tool","phase":"request","valid":true}`},
		{"tool", `{"name":"rm","arguments":{"a":1.0}}`, `{"type":"validation","interceptor":"tool","phase":"request","valid":false,"severity":"error"}`},
		{"tool", `{"name":"ls"}`, `{"type":"validation","interceptor":"tool","phase":"request","valid":false,"severity":"error"}`},
		{"tool", `{"name":7}`, `{"type":"validation","interceptor":"tool","phase":"request","valid":false,"severity":"error","messages":[{"message":"the call names no tool","severity":"error"}]}`},
		{"deny", `{}`, `{"type":"validation","interceptor":"deny","phase":"request","valid":false,"severity":"error","messages":[{"message":"no","severity":"error"}]}`},
		{"replace", `{}`, `{"type":"mutation","interceptor":"replace","phase":"request","modified":true,"payload":{"m":2}}`},
		{"keep", `{"n":1.0}`, `{"type":"mutation","interceptor":"keep","phase":"request","modified":false,"payload":{"n":1.0}}`},
		{"sink", `{}`, `{"type":"sink","interceptor":"sink","phase":"request","recorded":true}`},
	}
	for _, row := range rows {
		inv := call(row.name)
		inv.Payload = json.RawMessage(row.payload)
		r, err := l.Invoke(t.Context(), inv)
		require.NoError(t, err)
		require.NotNil(t, r.DurationMs)
		r.DurationMs = nil
		require.Equal(t, row.result, string(r.AppendJSON(nil)), row.payload)
	}
}

func TestNativeFailures(t *testing.T) {
	answers := func(r abi.Result, err error) library.Handler {
		return func(context.Context, *abi.Invocation) (abi.Result, error) { return r, err }
	}
	rows := []struct {
		name    string
		typ     abi.Type
		handler library.Handler
		reason  abi.Reason
	}{
		{"a panic", abi.Sink, func(context.Context, *abi.Invocation) (abi.Result, error) { panic("boom") }, abi.ReasonTrap},
		{"an error", abi.Sink, answers(abi.Result{}, errors.New("boom")), abi.ReasonGuest},
		{"an error with its reason", abi.Sink, answers(abi.Result{}, abi.Failed("?", "", abi.ReasonFuel, errors.New("boom"))), abi.ReasonFuel},
		{"the name of another", abi.Sink, answers(abi.Result{Interceptor: "boom"}, nil), abi.ReasonBadOutput},
		{"another type", abi.Sink, answers(abi.Result{Type: abi.Validation}, nil), abi.ReasonBadOutput},
		{"another phase", abi.Sink, answers(abi.Result{Phase: abi.Response}, nil), abi.ReasonBadOutput},
		{"a payload that is no JSON", abi.Mutation, answers(abi.Result{Modified: true, Payload: json.RawMessage(`{"a":`)}, nil), abi.ReasonBadOutput},
		{"a payload with duplicates", abi.Mutation, answers(abi.Result{Modified: true, Payload: json.RawMessage(`{"a":1,"a":2}`)}, nil), abi.ReasonBadOutput},
		{"modified without a payload", abi.Mutation, answers(abi.Result{Modified: true}, nil), abi.ReasonBadOutput},
		{"metrics that are no numbers", abi.Sink, answers(abi.Result{Metrics: json.RawMessage(`{"a":"b"}`)}, nil), abi.ReasonBadOutput},
		{"info that is no JSON", abi.Validation, answers(abi.Result{Info: json.RawMessage(`}`)}, nil), abi.ReasonBadOutput},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			l := registered(t, library.Native{Name: "n", Type: row.typ, Hooks: onCalls, Handler: row.handler})
			_, err := l.Invoke(t.Context(), call("n"))
			e := failure(t, err)
			require.Equal(t, row.reason, e.Reason)
			require.Equal(t, "n", e.Interceptor)
			require.Equal(t, abi.Request, e.Phase)
			require.NotContains(t, e.Message()+string(e.AppendData(nil)), "boom")
		})
	}
}

// A limit holds for a handler that ignores its context, and Close waits for it.
func TestNativeTimeoutAndCancellation(t *testing.T) {
	noLeaks(t)
	goOn := make(chan struct{})
	entered := make(chan struct{}, 2)
	l := registered(t, library.Sink("deaf", onCalls, func(context.Context, *abi.Invocation) error {
		entered <- struct{}{}
		<-goOn
		return nil
	}))
	inv := call("deaf")
	inv.Timeout = time.Millisecond
	_, err := l.Invoke(t.Context(), inv)
	e := failure(t, err)
	require.Equal(t, abi.ReasonTimeout, e.Reason)
	require.Equal(t, time.Millisecond, e.Limit)
	<-entered

	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-entered
		cancel()
	}()
	_, err = l.Invoke(ctx, call("deaf"))
	require.Equal(t, abi.ReasonCancelled, failure(t, err).Reason)

	_, err = l.Invoke(ctx, call("deaf"))
	require.Equal(t, abi.ReasonCancelled, failure(t, err).Reason, "not even started")

	soon, stop := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer stop()
	require.ErrorIs(t, l.Close(soon), context.DeadlineExceeded)
	close(goOn)
}
