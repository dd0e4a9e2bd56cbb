package runtime_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	wt "github.com/weir-mcp/weir/internal/wasmtest"
	"github.com/weir-mcp/weir/runtime"
)

// load loads a module that must load.
func load(t testing.TB, r *runtime.Runtime, wasm []byte, change ...func(*runtime.ModuleOptions)) *runtime.Module {
	t.Helper()
	m, err := tryLoad(r, wasm, change...)
	require.NoError(t, err)
	return m
}

func tryLoad(r *runtime.Runtime, wasm []byte, change ...func(*runtime.ModuleOptions)) (*runtime.Module, error) {
	o := runtime.ModuleOptions{Name: "guest.wasm"}
	o.Limits.CallTime = time.Minute // unless the test is about it
	o.Limits.LoadTime = time.Minute
	o.Limits.CompileTime = time.Hour
	for _, f := range change {
		f(&o)
	}
	return r.Load(context.Background(), wasm, o)
}

// limited changes the limits of a module.
func limited(f func(l *runtime.Limits)) func(*runtime.ModuleOptions) {
	return func(o *runtime.ModuleOptions) { f(&o.Limits) }
}

// logged sends what the guest logs to a buffer.
func logged(to *logBuffer) func(*runtime.ModuleOptions) {
	return func(o *runtime.ModuleOptions) {
		o.Logger = slog.New(slog.NewJSONHandler(to, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
}

type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// records returns what was logged.
func (l *logBuffer) records(t *testing.T) (list []map[string]any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.b.String()) {
		record := map[string]any{}
		require.NoError(t, json.Unmarshal([]byte(line), &record))
		list = append(list, record)
	}
	return list
}

// call is an invocation of the interceptor "guard" with a payload.
func call(payload string) abi.Invocation {
	return abi.Invocation{Name: "guard", Event: abi.ToolsCall, Phase: abi.Request, Payload: json.RawMessage(payload)}
}

func invoke(m *runtime.Module, payload string) (abi.Result, error) {
	return m.Invoke(context.Background(), call(payload))
}

// requireReason checks the reason of an error, which must be an *abi.Error.
func requireReason(t *testing.T, reason abi.Reason, err error) *abi.Error {
	t.Helper()
	var e *abi.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, reason, e.Reason, "%v", err)
	return e
}

// requireWorks checks that a call succeeds.
func requireWorks(t *testing.T, m *runtime.Module, payload string) {
	t.Helper()
	result, err := invoke(m, payload)
	require.NoError(t, err)
	require.True(t, result.Valid)
}

// takeInput reads the input to wt.InputAt.
func takeInput(r *wt.Reactor) []byte { return wt.Seq(wt.I32(wt.InputAt), wt.Call(r.Input)) }

// The input of call(payload) begins with a fixed frame; this is where the first
// byte of the payload's string lies, for payloads such as `"x"`.
var switchAt = uint32(wt.InputAt + len(`{"interceptor":"guard","event":"tools/call","phase":"request","payload":"`))

// when runs the instructions for a call whose payload is a string that begins
// with the letter. The input must have been taken.
func when(letter byte, body ...[]byte) []byte {
	return wt.Seq(wt.I32(0), wt.Load8(switchAt), wt.I32(int32(letter)), wt.I32Eq, wt.If(body...))
}

// guard is a module whose interceptor "guard" passes every payload but `"x"`,
// for which it does what the test wants first.
func guard(misbehave func(r *wt.Reactor) []byte, imports ...func(m *wt.Module)) []byte {
	var add func(m *wt.Module)
	if len(imports) > 0 {
		add = imports[0]
	}
	r := wt.NewReactorWith(add, wt.Validator("guard"))
	bad := misbehave(r)
	r.Invoke("iI", takeInput(r), when('x', bad), r.Answer(`{"result":{"valid":true}}`))
	return r.Bytes()
}

// noLeaks checks at the end of the test that it left no goroutines behind.
func noLeaks(t *testing.T) {
	before := goruntime.NumGoroutine()
	t.Cleanup(func() {
		for patience := time.Now().Add(10 * time.Second); goruntime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
			require.True(t, time.Now().Before(patience), "goroutines were left behind")
		}
	})
}
