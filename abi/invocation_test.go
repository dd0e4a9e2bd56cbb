package abi_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
)

func TestInvocationRoundTrip(t *testing.T) {
	const wire = `{"name":"pii","event":"tools/call","phase":"request","payload":{"name":"x","arguments":{"n":9007199254740993,"f":1.0,"e":1e400,"s":"<&>"}},"config":{"a":1},"timeoutMs":250,"context":{"principal":{"type":"user","id":"u1","claims":{"g":["x"]}},"traceId":"t","spanId":"s","sessionId":"q","timestamp":"2026-01-02T03:04:05.678Z"}}`
	inv, err := abi.ReadInvocation([]byte(wire))
	require.NoError(t, err)
	require.Equal(t, 250*time.Millisecond, inv.Timeout)
	require.Equal(t, "u1", inv.Context.Principal.ID)
	require.Equal(t, wire, string(inv.AppendJSON(nil)))
}

func TestInvocationPayloadIsAlwaysSent(t *testing.T) {
	inv := abi.Invocation{Name: "a", Event: "tools/list", Phase: abi.Request}
	require.Equal(t, `{"name":"a","event":"tools/list","phase":"request","payload":{}}`, string(inv.AppendJSON(nil)))
}

func TestInvocationTimeoutRoundsUp(t *testing.T) {
	inv := abi.Invocation{Name: "a", Event: "x/y", Phase: abi.Request, Timeout: time.Microsecond}
	require.Contains(t, string(inv.AppendJSON(nil)), `"timeoutMs":1`)
}

func TestInvocationRefuses(t *testing.T) {
	for _, tt := range []struct{ name, in, path string }{
		{"nothing", ``, ""},
		{"an array", `[]`, ""},
		{"no name", `{"event":"x/y","phase":"request","payload":{}}`, "name"},
		{"a name that is a number", `{"name":1,"event":"x/y","phase":"request","payload":{}}`, "name"},
		{"no event", `{"name":"a","phase":"request","payload":{}}`, "event"},
		{"a pattern", `{"name":"a","event":"tools/*","phase":"request","payload":{}}`, "event"},
		{"no phase", `{"name":"a","event":"x/y","payload":{}}`, "phase"},
		{"both phases", `{"name":"a","event":"x/y","phase":"both","payload":{}}`, "phase"},
		{"no payload", `{"name":"a","event":"x/y","phase":"request"}`, "payload"},
		{"a config that is text", `{"name":"a","event":"x/y","phase":"request","payload":{},"config":"x"}`, "config"},
		{"no time", `{"name":"a","event":"x/y","phase":"request","payload":{},"timeoutMs":0}`, "timeoutMs"},
		{"negative time", `{"name":"a","event":"x/y","phase":"request","payload":{},"timeoutMs":-1}`, "timeoutMs"},
		{"half a millisecond", `{"name":"a","event":"x/y","phase":"request","payload":{},"timeoutMs":0.5}`, "timeoutMs"},
		{"a timestamp in words", `{"name":"a","event":"x/y","phase":"request","payload":{},"context":{"timestamp":"now"}}`, "context"},
		{"a principal of no type", `{"name":"a","event":"x/y","phase":"request","payload":{},"context":{"principal":{"id":"x"}}}`, "context"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := abi.ReadInvocation([]byte(tt.in))
			var e *abi.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, abi.ReasonParams, e.Reason)
			require.Equal(t, abi.CodeInvalidParams, e.Code())
			require.Equal(t, tt.path, e.Path)
		})
	}
}

func TestInvocationAcceptsAnyPayloadAndIgnoresTheInvokersWords(t *testing.T) {
	for _, payload := range []string{`null`, `1`, `"x"`, `[]`, `{}`} {
		inv, err := abi.ReadInvocation([]byte(`{"name":"a","event":"x/y","phase":"response","mode":"audit","failOpen":true,"payload":` + payload + `}`))
		require.NoError(t, err)
		require.Equal(t, payload, string(inv.Payload))
	}
}

func TestHugeTimeoutsStayInRange(t *testing.T) {
	inv, err := abi.ReadInvocation([]byte(`{"name":"a","event":"x/y","phase":"request","payload":1,"timeoutMs":9223372036854775807}`))
	require.NoError(t, err)
	require.Positive(t, inv.Timeout)
	require.Positive(t, inv.Timeout+24*time.Hour)
}

func TestListParams(t *testing.T) {
	p, err := abi.ReadListParams(nil)
	require.NoError(t, err)
	require.Equal(t, abi.ListParams{}, p)
	require.Equal(t, `{}`, string(p.AppendJSON(nil)))

	p, err = abi.ReadListParams([]byte(`{"event":"tools/call","cursor":"c","_meta":{}}`))
	require.NoError(t, err)
	require.Equal(t, `{"event":"tools/call","cursor":"c"}`, string(p.AppendJSON(nil)))

	for _, in := range []string{`{"event":"*"}`, `{"event":"tools/*"}`, `{"event":1}`, `{"cursor":{}}`, `[]`} {
		_, err := abi.ReadListParams([]byte(in))
		var e *abi.Error
		require.ErrorAs(t, err, &e, in)
		require.Equal(t, abi.CodeInvalidParams, e.Code())
	}
}

func TestPageSkipsTheBadOneAndKeepsTheRest(t *testing.T) {
	good := `{"name":"%","type":"sink","hooks":[]}`
	in := `{"interceptors":[` + good + `,{"name":"bad","type":"mutation","hooks":[],"priorityHint":1.5},` + good + `,7],"nextCursor":"n"}`
	p, err := abi.ReadPage([]byte(in))
	require.NoError(t, err)
	require.Len(t, p.Interceptors, 2)
	require.Len(t, p.Skipped, 2)
	require.Equal(t, "bad", p.Skipped[0].Name)
	require.Equal(t, 1, p.Skipped[0].Index)
	require.ErrorContains(t, p.Skipped[0].Err, "priorityHint")
	require.Empty(t, p.Skipped[1].Name)
	require.Equal(t, "n", p.NextCursor)

	for _, in := range []string{`{}`, `{"interceptors":null}`, `{"interceptors":{}}`, `[]`, `{"interceptors":[],"nextCursor":1}`, `{"interceptors":[1`} {
		_, err := abi.ReadPage([]byte(in))
		require.Error(t, err, in)
	}
	require.Equal(t, `{"interceptors":[]}`, string(abi.AppendPage(nil, nil, "")))
}

func TestEnvelope(t *testing.T) {
	for _, tt := range []struct {
		in, bare  string
		enveloped bool
	}{
		{`{"method":"tools/call","params":{"name":"x"}}`, `{"name":"x"}`, true},
		{`{"params":{"name":"x"},"method":"tools/call"}`, `{"name":"x"}`, true},
		{`{"method":"tools/call"}`, `{}`, true},
		{`{"method":"tools/list","params":{}}`, `{"method":"tools/list","params":{}}`, false},
		{`{"method":"tools/call","params":{},"id":1}`, `{"method":"tools/call","params":{},"id":1}`, false},
		{`{"method":"tools/call","name":"x"}`, `{"method":"tools/call","name":"x"}`, false},
		{`{"name":"x"}`, `{"name":"x"}`, false},
		{`{"params":{}}`, `{"params":{}}`, false},
		{`{}`, `{}`, false},
		{`[]`, `[]`, false},
	} {
		bare, enveloped := abi.Unwrap("tools/call", json.RawMessage(tt.in))
		require.Equal(t, tt.enveloped, enveloped, tt.in)
		require.Equal(t, tt.bare, string(bare), tt.in)
	}
	bare, enveloped := abi.Unwrap("tools/call", abi.Wrap("tools/call", json.RawMessage(`{"n":1.0}`)))
	require.True(t, enveloped)
	require.Equal(t, `{"n":1.0}`, string(bare))
}

func TestCallFrame(t *testing.T) {
	inv := abi.Invocation{Name: "a", Event: "tools/call", Phase: abi.Response, Payload: json.RawMessage(`{"x":1.0}`),
		Config: json.RawMessage(`{}`), Request: json.RawMessage(`{"name":"t"}`), Context: &abi.Context{SessionID: "s"}}
	frame := abi.AppendCall(nil, &inv)
	require.Equal(t, `{"interceptor":"a","event":"tools/call","phase":"response","payload":{"x":1.0},"config":{},"context":{"sessionId":"s"},"request":{"name":"t"}}`, string(frame))
	back, err := abi.ReadCall(frame)
	require.NoError(t, err)
	require.Equal(t, inv, back)
}

func TestAsError(t *testing.T) {
	require.Nil(t, abi.AsError(nil, "a", abi.Request))
	e := abi.Failed("a", abi.Request, abi.ReasonTrap, errors.New("x"))
	require.Same(t, e, abi.AsError(e, "b", abi.Response))
	require.Equal(t, abi.ReasonUnavailable, abi.AsError(errors.New("reset"), "a", abi.Request).Reason)
}

func FuzzInvocation(f *testing.F) {
	f.Add([]byte(`{"name":"a","event":"x/y","phase":"request","payload":[1],"timeoutMs":5,"context":{"timestamp":"2026-01-02T03:04:05Z"}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		inv, err := abi.ReadInvocation(in)
		if err != nil {
			var e *abi.Error
			require.ErrorAs(t, err, &e)
			return
		}
		out := inv.AppendJSON(nil)
		again, err := abi.ReadInvocation(out)
		require.NoError(t, err, "%s", out)
		require.Equal(t, string(out), string(again.AppendJSON(nil)))
	})
}
