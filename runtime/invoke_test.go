package runtime_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	wt "github.com/weir-mcp/weir/internal/wasmtest"
	"github.com/weir-mcp/weir/runtime"
)

func TestInvoke(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, r *runtime.Runtime) {
		m := load(t, r, wt.Allowing("guard", "second"))
		require.Equal(t, []string{"guard", "second"}, []string{m.Descriptors()[0].Name, m.Descriptors()[1].Name})
		require.Equal(t, runtime.Reactor, m.Flavour())
		require.Equal(t, "guest.wasm", m.Name())
		require.Len(t, m.Digest(), 64)

		result, err := invoke(m, `{}`)
		require.NoError(t, err)
		require.Equal(t, abi.Validation, result.Type)
		require.Equal(t, "guard", result.Interceptor)
		require.Equal(t, abi.Request, result.Phase)
		require.NotNil(t, result.DurationMs)
		require.Equal(t, float64(int64(*result.DurationMs)), *result.DurationMs, "whole milliseconds")
	})
}

func TestInvokeOfAnUnknownName(t *testing.T) {
	m := load(t, newRuntime(t, on{}), wt.Allowing("guard"))
	_, err := m.Invoke(context.Background(), abi.Invocation{Name: "nobody", Event: abi.ToolsCall, Phase: abi.Request})
	require.True(t, requireReason(t, abi.ReasonParams, err).Unknown)
}

// An interceptor that answers with its own input shows what a guest is given.
func echo() []byte {
	r := wt.NewReactor(wt.Mutator("guard"))
	head := r.Text(`{"result":{"modified":true,"payload":`)
	// The head is copied before the input, by the guest's own loop, so that both
	// go out in one piece: input at InputAt, head right before it.
	headLen := int32(len(`{"result":{"modified":true,"payload":`))
	at := int32(wt.InputAt) - headLen
	r.Invoke("i",
		takeInput(r),
		wt.Loop( // memory[at+i] = head[i]
			wt.Get(1), wt.I32(at), wt.I32Add,
			wt.Get(1), wt.Seq(head[:len(head)-len(wt.I32(headLen))]), wt.I32Add, wt.Load8(0),
			wt.Store8(0),
			wt.Get(1), wt.I32(1), wt.I32Add, wt.Set(1),
			wt.Get(1), wt.I32(headLen), wt.I32Ne, wt.BrIf(0),
		),
		wt.Get(0), wt.I32(int32('}'+'}'<<8)), wt.Store(wt.InputAt), // closes both objects
		wt.I32(at), wt.Get(0), wt.I32(headLen+2), wt.I32Add, wt.Call(r.Output),
		wt.I32(0))
	return r.Bytes()
}

func TestWhatAGuestIsGiven(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, r *runtime.Runtime) {
		m := load(t, r, echo(), limited(func(l *runtime.Limits) { l.InputBytes = 64 }))
		inv := abi.Invocation{
			Name: "guard", Event: abi.ToolsCall, Phase: abi.Response,
			Payload: json.RawMessage(`{"n":9007199254740993,"f":1.0,"s":"<&>\ud83d\ude00"}`),
			Config:  json.RawMessage(`{"deny":["x"]}`),
			Request: json.RawMessage(`{"name":"tool"}`),
			Timeout: time.Minute,
			Context: &abi.Context{TraceID: "t", Principal: &abi.Principal{Type: abi.PrincipalUser, ID: "u"}},
		}
		result, err := m.Invoke(context.Background(), inv)
		require.NoError(t, err)
		require.Equal(t, `{"interceptor":"guard","event":"tools/call","phase":"response",`+
			`"payload":{"n":9007199254740993,"f":1.0,"s":"<&>\ud83d\ude00"},"config":{"deny":["x"]},`+
			`"context":{"principal":{"type":"user","id":"u"},"traceId":"t"},"request":{"name":"tool"}}`, string(result.Payload),
			"every token of the payload is spelled as it came")

		inv.Request = json.RawMessage(`{"name":"` + string(make([]byte, 64)) + `"}`)
		result, err = m.Invoke(context.Background(), inv)
		require.NoError(t, err)
		require.NotContains(t, string(result.Payload), `"request":{`, "a request over the input limit is left out")
	})
}

func TestTheLastOutputWins(t *testing.T) {
	r := newRuntime(t, on{})
	g := wt.NewReactor(wt.Validator("guard"))
	g.Invoke("", g.Answer(`{"result":{"valid":true}}`), wt.Drop, g.Answer(`{"result":{"valid":false}}`))
	m := load(t, r, g.Bytes())
	result, err := invoke(m, `{}`)
	require.NoError(t, err)
	require.False(t, result.Valid)
}

// The answer is copied when it is handed over, not when the call ends.
func TestOutputIsCopiedAtOnce(t *testing.T) {
	r := newRuntime(t, on{})
	g := wt.NewReactor(wt.Validator("guard"))
	answer := g.Text(`{"result":{"valid":true}}`)
	g.Export(abi.ExportWarmup, g.Func(":i", "", wt.I32(0))) // which would leave the text destroyed
	g.Invoke("", answer, wt.Call(g.Output), wt.I32(1024), wt.I32(0), wt.Store(0), wt.I32(0))
	requireWorks(t, load(t, r, g.Bytes()), `{}`)
}

func TestWhatTheStartOfAnInstanceOutputsIsNoAnswer(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, r *runtime.Runtime) {
		g := wt.NewReactor(wt.Validator("guard"))
		early := g.Func("", "", g.Answer(`{"result":{"valid":true}}`), wt.Drop)
		g.Start(early)
		g.Export(abi.ExportInitialize, early)
		g.Export(abi.ExportReseed, g.Func("I:", "", wt.Call(early)))
		g.Invoke("", wt.I32(0))
		_, err := invoke(load(t, r, g.Bytes()), `{}`)
		requireReason(t, abi.ReasonBadOutput, err)
	})
}

// In describe and before it there is no input.
func TestInputWritesNothingInDescribe(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, r *runtime.Runtime) {
		g := wt.NewReactor()
		look := g.Func("", "",
			wt.I32(-1), wt.Call(g.Input), // an address outside memory, even
			wt.I32(wt.InputAt), wt.Call(g.Input),
			wt.I32(wt.InputAt), wt.Load(0), wt.If(wt.Unreachable))
		g.Start(look)
		g.Export(abi.ExportInitialize, look)
		describe := g.Answer(string(abi.AppendPage(nil, []abi.Descriptor{wt.Validator("guard")}, "")))
		g.Memory(4)
		g.Export(abi.ExportMarker, g.Func("", ""))
		g.Export(abi.ExportDescribe, g.Func(":i", "", wt.Call(look), describe))
		g.Export(abi.ExportInvoke, g.Func("i:i", "", g.Answer(`{"result":{"valid":true}}`)))
		requireWorks(t, load(t, r, g.Bytes()), `{}`)
	})
}

// weir_reseed is called before each invocation, with another seed each time.
func TestReseed(t *testing.T) {
	r := newRuntime(t, on{})
	g := wt.NewReactor(wt.Validator("guard"))
	g.Export(abi.ExportReseed, g.Func("I:", "", wt.I32(0), wt.Get(0), wt.Store64(512), wt.I32(1), wt.I32(512), wt.I32(8), wt.Call(g.Log)))
	g.Invoke("", g.Answer(`{"result":{"valid":true}}`))
	var logs logBuffer
	m := load(t, r, g.Bytes(), logged(&logs))
	require.Empty(t, logs.records(t), "not called in describe")
	seeds := map[any]bool{}
	for range 20 {
		requireWorks(t, m, `{}`)
	}
	for _, record := range logs.records(t) {
		seeds[record["msg"]] = true
	}
	require.Greater(t, len(seeds), 10)
}

func TestReseedThatTraps(t *testing.T) {
	g := wt.NewReactor(wt.Validator("guard"))
	g.Export(abi.ExportReseed, g.Func("I:", "", wt.Unreachable))
	g.Invoke("", g.Answer(`{"result":{"valid":true}}`))
	_, err := invoke(load(t, newRuntime(t, on{}), g.Bytes()), `{}`)
	requireReason(t, abi.ReasonTrap, err)
}

// Answers that make no sense, each a failure and none a verdict.
func TestAnswersThatAreNone(t *testing.T) {
	r := newRuntime(t, on{})
	for answer, reason := range map[string]abi.Reason{
		`{"result":{"type":"mutation","modified":false}}`: abi.ReasonBadOutput,
		`{"result":{"interceptor":"other","valid":true}}`: abi.ReasonBadOutput,
		`{"result":{"phase":"response","valid":true}}`:    abi.ReasonBadOutput,
		`{"result":{}}`:   abi.ReasonBadOutput,
		`{"result":null}`: abi.ReasonBadOutput,
		`{}`:              abi.ReasonBadOutput,
		`null`:            abi.ReasonBadOutput,
		`[]`:              abi.ReasonBadOutput,
		`not JSON`:        abi.ReasonBadOutput,
		``:                abi.ReasonBadOutput,
		"{\"result\":{\"valid\":true,\"info\":\"\xff\"}}":                   abi.ReasonBadOutput,
		`{"result":{"valid":false,"valid":true}}`:                           abi.ReasonBadOutput,
		`{"result":{"valid":true,"info":{"a":1,"a":2}}}`:                    abi.ReasonBadOutput,
		`{"result":{"valid":true}}{"result":{"valid":true}}`:                abi.ReasonBadOutput,
		`{"result":{"valid":true},"error":{"message":"both"}}`:              abi.ReasonBadOutput,
		`{"error":{"message":"I give up","data":{"secret":"not for you"}}}`: abi.ReasonGuest,
	} {
		g := wt.NewReactor(wt.Validator("guard"))
		g.Invoke("", g.Answer(answer))
		_, err := invoke(load(t, r, g.Bytes()), `{}`)
		e := requireReason(t, reason, err)
		require.NotContains(t, e.Message(), "I give up", "a guest's own words stay inside")
		require.NotContains(t, string(e.AppendData(nil)), "secret")
	}
}
