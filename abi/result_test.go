package abi_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
)

func TestResultRoundTrip(t *testing.T) {
	for _, in := range []string{
		`{"type":"validation","interceptor":"a","phase":"request","valid":true}`,
		`{"type":"validation","interceptor":"a","phase":"request","durationMs":3,"info":{"k":1.0},"valid":false,"severity":"error","messages":[{"path":"$.x","message":"no <b>","severity":"error"}],"suggestions":[{"path":"$.x","value":9007199254740993}]}`,
		`{"type":"mutation","interceptor":"a","phase":"response","modified":true,"payload":{"b":1e400,"a":"\u00e9"}}`,
		`{"type":"mutation","interceptor":"a","phase":"response","modified":false}`,
		`{"type":"sink","interceptor":"a","phase":"request","recorded":true,"metrics":{"bytes":12,"ratio":0.5}}`,
	} {
		r, err := abi.ReadResult([]byte(in))
		require.NoError(t, err)
		require.Equal(t, in, string(r.AppendJSON(nil)))
	}
}

func TestResultRefuses(t *testing.T) {
	for _, tt := range []struct{ in, says string }{
		{`null`, "not a JSON object"},
		{`{"interceptor":"a","phase":"request","valid":true}`, `"type" is missing`},
		{`{"type":"validation","phase":"request","valid":true}`, `"interceptor" is missing`},
		{`{"type":"validation","interceptor":"a","valid":true}`, `"phase" is missing`},
		{`{"type":"gate","interceptor":"a","phase":"request","valid":true}`, `type "gate"`},
		{`{"type":"validation","interceptor":"a","phase":"request"}`, `"valid" is missing`},
		{`{"type":"validation","interceptor":"a","phase":"request","valid":1}`, "not a boolean"},
		{`{"type":"validation","interceptor":"a","phase":"request","valid":null}`, `"valid" is missing`},
		{`{"type":"validation","interceptor":"a","phase":"request","valid":false,"messages":{}}`, "not an array"},
		{`{"type":"mutation","interceptor":"a","phase":"request"}`, `"modified" is missing`},
		{`{"type":"sink","interceptor":"a","phase":"request"}`, `"recorded" is missing`},
		{`{"type":"sink","interceptor":"a","phase":"request","recorded":true,"metrics":{"a":"b"}}`, "not a number"},
		{`{"type":"sink","interceptor":"a","phase":"request","recorded":true,"durationMs":-1}`, "durationMs"},
		{`{"type":"sink","interceptor":"a","phase":"request","recorded":true,"durationMs":1e999}`, "durationMs"},
		{`{"type":"sink","type":"sink","interceptor":"a","phase":"request","recorded":true}`, "two members"},
	} {
		_, err := abi.ReadResult([]byte(tt.in))
		require.ErrorContains(t, err, tt.says, tt.in)
	}
}

// protocol.md §5: the severity of the result decides, and what is not known
// blocks (C4, C5, C7, C8, C9).
func TestBlocks(t *testing.T) {
	for _, tt := range []struct {
		result string
		want   bool
	}{
		{`"valid":false,"severity":"error"`, true},
		{`"valid":false`, true},
		{`"valid":false,"severity":null`, true},
		{`"valid":false,"severity":"critical"`, true},
		{`"valid":false,"severity":"Warn"`, true},
		{`"valid":false,"severity":"warn"`, false},
		{`"valid":false,"severity":"warn","messages":[{"message":"x","severity":"error"}]`, false},
		{`"valid":false,"severity":"info"`, false},
		{`"valid":true,"severity":"error"`, false},
		{`"valid":true`, false},
	} {
		r, err := abi.ReadResult([]byte(`{"type":"validation","interceptor":"a","phase":"request",` + tt.result + `}`))
		require.NoError(t, err)
		require.Equal(t, tt.want, r.Blocks(), tt.result)
	}
}

func TestReadAnswer(t *testing.T) {
	d := &abi.Descriptor{Name: "a", Type: abi.Mutation}
	r, err := abi.ReadAnswer([]byte(`{"result":{"modified":true,"payload":{"x":1.0}}}`), d, abi.Request)
	require.NoError(t, err)
	require.Equal(t, abi.Result{Type: abi.Mutation, Interceptor: "a", Phase: abi.Request, Modified: true, Payload: json.RawMessage(`{"x":1.0}`)}, r)

	r, err = abi.ReadAnswer([]byte(`{"result":{"type":"mutation","interceptor":"a","phase":"request","modified":true,"payload":null}}`), d, abi.Request)
	require.NoError(t, err)
	require.Equal(t, `null`, string(r.Payload), "a payload of null is there, for the chain to refuse")

	for _, in := range []string{
		``, `null`, `{}`, `{"result":null}`, `{"result":[]}`, `{"result":{}}`, `{"result":{"modified":false},"error":{"message":"x"}}`,
		`{"result":{"interceptor":"b","modified":false}}`,
		`{"result":{"type":"validation","valid":true}}`,
		`{"result":{"phase":"response","modified":false}}`,
		`{"error":{"message":1}}`, `{"error":"x"}`,
	} {
		_, err := abi.ReadAnswer([]byte(in), d, abi.Request)
		require.Error(t, err, in)
		var g *abi.GuestError
		require.False(t, errors.As(err, &g), "%s is nonsense, not a guest's failure", in)
	}

	_, err = abi.ReadAnswer(abi.AppendFailure(nil, "no rules", json.RawMessage(`{"k":1}`)), d, abi.Request)
	var g *abi.GuestError
	require.ErrorAs(t, err, &g)
	require.Equal(t, "no rules", g.Message)
	require.JSONEq(t, `{"k":1}`, string(g.Data))

	require.Equal(t, `{"result":{"type":"sink","recorded":true}}`, string(abi.AppendAnswer(nil, &abi.Result{Type: abi.Sink, Recorded: true})))
}

// protocol.md §3, the table of errors: code and data, row by row.
func TestErrorTable(t *testing.T) {
	d := &abi.Descriptor{Name: "a", Hooks: abi.On(abi.Request, "tools/call")}
	secret := errors.New("the guest's own words")
	for _, tt := range []struct {
		name string
		err  *abi.Error
		code int
		data string
	}{
		{"unknown name", abi.UnknownName("a"), -32602, `{"name":"a"}`},
		{"not hooked", abi.NotHooked(d, "prompts/get", abi.Response), -32602,
			`{"name":"a","event":"prompts/get","phase":"response","advertisedHooks":[{"events":["tools/call"],"phase":"request"}]}`},
		{"malformed params", abi.BadParams("", "event", secret), -32602, `{"reason":"params","path":"event"}`},
		{"config", abi.BadConfig("a", "/deny/0", secret), -32602, `{"name":"a","reason":"config","path":"/deny/0"}`},
		{"execution failed", abi.Failed("a", abi.Request, abi.ReasonTrap, secret), -32603, `{"interceptor":"a","reason":"trap","phase":"request"}`},
		{"timeout", abi.TimedOut("a", abi.Response, 50*time.Millisecond, secret), -32000, `{"interceptor":"a","reason":"timeout","timeoutMs":50,"phase":"response"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.code, tt.err.Code())
			require.Equal(t, tt.data, string(tt.err.AppendData(nil)))
			require.NotContains(t, tt.err.Message(), "own words", "nothing of the guest's goes out")
			if tt.err.Cause != nil {
				require.ErrorContains(t, tt.err, "own words", "and all of it goes to the log")
				require.ErrorIs(t, tt.err, secret)
			}
		})
	}
}

func TestReadError(t *testing.T) {
	for _, tt := range []struct {
		name string
		code int
		data string
		want abi.Reason
	}{
		{"a timeout under its own code", -32000, `{"reason":"timeout","timeoutMs":50}`, abi.ReasonTimeout},
		{"a timeout under the later draft's code", -32603, `{"reason":"timeout","timeoutMs":50}`, abi.ReasonTimeout},
		{"a trap", -32603, `{"reason":"trap"}`, abi.ReasonTrap},
		{"params", -32602, `{"reason":"params"}`, abi.ReasonParams},
		{"config", -32602, `{"reason":"config","path":"/a"}`, abi.ReasonConfig},
		{"unknown name", -32602, `{"name":"a"}`, abi.ReasonParams},
		{"a reason nobody knows", -32603, `{"reason":"moon"}`, abi.ReasonUnavailable},
		{"no data", -32603, ``, abi.ReasonUnavailable},
		{"data that is no object", -32603, `[1]`, abi.ReasonUnavailable},
		{"params under another code", -32603, `{"reason":"params"}`, abi.ReasonUnavailable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := abi.ReadError("a", abi.Request, tt.code, "words", []byte(tt.data))
			require.Equal(t, tt.want, e.Reason)
			if tt.want == abi.ReasonTimeout {
				require.Equal(t, 50*time.Millisecond, e.Limit)
			}
			require.NotContains(t, e.Message(), "words")
		})
	}
}

// Both rows without a reason come back as what they were.
func TestReadErrorKnowsNamesAndHooks(t *testing.T) {
	e := abi.ReadError("a", abi.Request, -32602, "", abi.UnknownName("a").AppendData(nil))
	require.True(t, e.Unknown)
	require.Equal(t, `{"name":"a"}`, string(e.AppendData(nil)))

	d := &abi.Descriptor{Name: "a", Hooks: abi.On(abi.Request, "tools/call")}
	sent := abi.NotHooked(d, "prompts/get", abi.Response)
	e = abi.ReadError("a", abi.Response, -32602, "", sent.AppendData(nil))
	require.True(t, e.Unhooked)
	require.Equal(t, string(sent.AppendData(nil)), string(e.AppendData(nil)))

	e = abi.ReadError("a", abi.Request, -32602, "", []byte(`{"name":"a","why":"who knows"}`))
	require.False(t, e.Unknown || e.Unhooked)
}

func FuzzResult(f *testing.F) {
	f.Add([]byte(`{"type":"validation","interceptor":"a","phase":"request","valid":false,"messages":[{"message":"m"}],"suggestions":[{"path":"p","value":[1]}]}`))
	f.Add([]byte(`{"type":"mutation","interceptor":"a","phase":"request","modified":true,"payload":{"a":[1,{"b":null}]}}`))
	f.Add([]byte(`{"type":"sink","interceptor":"a","phase":"request","recorded":true,"metrics":{"a":1}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		r, err := abi.ReadResult(in)
		if err != nil {
			return
		}
		out := r.AppendJSON(nil)
		again, err := abi.ReadResult(out)
		require.NoError(t, err, "%s", out)
		require.Equal(t, string(out), string(again.AppendJSON(nil)))
	})
}

func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"result":{"modified":false}}`))
	f.Add([]byte(`{"error":{"message":"x","data":1}}`))
	d := &abi.Descriptor{Name: "a", Type: abi.Mutation}
	f.Fuzz(func(t *testing.T, in []byte) {
		r, err := abi.ReadAnswer(in, d, abi.Request)
		if err == nil {
			require.NoError(t, r.Echoes("a", abi.Mutation, abi.Request))
		}
	})
}
