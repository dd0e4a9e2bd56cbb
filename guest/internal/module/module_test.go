package module

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
)

// wrapping is a module that puts the payload it was given into an object.
func wrapping(t testing.TB) *Module {
	t.Helper()
	t.Cleanup(CaptureLog(func(Level, string) {}))
	var m Module
	m.Register(Interceptor{
		Descriptor: abi.Descriptor{Name: "wrap", Type: abi.Mutation, Hooks: abi.OnBoth("*")},
		Run: func(inv *abi.Invocation) (abi.Result, error) {
			if string(inv.Payload) == "[]" {
				panic("empty")
			}
			return abi.Result{Modified: true, Payload: json.RawMessage(`{"was":` + string(inv.Payload) + `}`)}, nil
		},
	})
	return &m
}

func TestInvokeAnswersInTheShapeItWasAskedIn(t *testing.T) {
	m := wrapping(t)
	for _, c := range []struct{ name, payload, want string }{
		{"bare", `{"name":"t"}`, `{"was":{"name":"t"}}`},
		{"envelope", `{"method":"tools/call","params":{"name":"t"}}`, `{"method":"tools/call","params":{"was":{"name":"t"}}}`},
		{"envelope the other way round", `{"params":{},"method":"tools/call"}`, `{"method":"tools/call","params":{"was":{}}}`},
		{"envelope spelled with escapes", ` { "\u006dethod":"tools/call","params":{}}`, `{"method":"tools/call","params":{"was":{}}}`},
		{"envelope without params", `{"method":"tools/call"}`, `{"method":"tools/call","params":{"was":{}}}`},
		{"params that name another method", `{"method":"tools/list"}`, `{"was":{"method":"tools/list"}}`},
		{"params with a third member", `{"method":"tools/call","params":{},"x":1}`, `{"was":{"method":"tools/call","params":{},"x":1}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			answer := m.Invoke([]byte(`{"interceptor":"wrap","event":"tools/call","phase":"request","payload":` + c.payload + `}`))
			require.Equal(t, `{"result":{"type":"mutation","interceptor":"wrap","phase":"request","modified":true,"payload":`+c.want+`}}`, string(answer))
		})
	}
}

func FuzzMayBeEnvelope(f *testing.F) {
	f.Add([]byte(`{"method":"a/b","params":{}}`))
	f.Add([]byte(` { "\u0070arams" : 1, "method":"a/b"}`))
	f.Add([]byte(`{"name":"method"}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		if _, enveloped := abi.Unwrap("a/b", payload); enveloped {
			require.True(t, mayBeEnvelope(payload))
		}
	})
}

func TestEveryFailureIsAnAnswer(t *testing.T) {
	m := wrapping(t)
	for in, want := range map[string]string{
		``: "malformed params", `[]`: "malformed params", `{}`: "malformed params",
		`{"interceptor":"x","event":"a/b","phase":"request","payload":1}`:        `no interceptor \"x\"`,
		`{"interceptor":"wrap","event":"ping","phase":"request","payload":1}`:    `does not hook the request of \"ping\"`,
		`{"interceptor":"wrap","event":"a/b","phase":"request","payload":[]}`:    "panic: empty",
		`{"interceptor":"wrap","event":"a/b","phase":"neither","payload":[]}`:    "malformed params",
		`{"interceptor":"wrap","event":"a/b","phase":"request","config":1}`:      "malformed params",
		`{"interceptor":"wrap","event":"tools/*","phase":"request","payload":1}`: "malformed params",
	} {
		answer := string(m.Invoke([]byte(in)))
		require.Contains(t, answer, `{"error":{"message":`, in)
		require.Contains(t, answer, want, in)
	}
}

func FuzzInvoke(f *testing.F) {
	m := wrapping(f)
	f.Add([]byte(`{"interceptor":"wrap","event":"a/b","phase":"request","payload":{"method":"a/b"},"request":{},"config":{},"context":{"principal":{"type":"user"}}}`))
	f.Add([]byte(`{`))
	f.Fuzz(func(t *testing.T, input []byte) {
		answer := m.Invoke(input)
		if json.Valid(input) {
			require.True(t, json.Valid(answer), "%q", answer)
		}
		require.NotEmpty(t, answer)
	})
}
