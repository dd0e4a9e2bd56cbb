package runtime_test

import (
	"cmp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	wt "github.com/weir-mcp/weir/internal/wasmtest"
	"github.com/weir-mcp/weir/runtime"
)

// command is a WASI command that is an interceptor module: it tells describe
// from invoke by the first letter of its second argument, and passes every
// payload but `"x"`, for which it does what the test wants first.
func command(misbehave func(m *wt.Module, f commandFuncs) []byte) []byte {
	const (
		describeAt, answerAt, vectorAt, argvAt, argBytesAt = 2048, 4096, 16, 256, 512
		describe                                           = `{"interceptors":[` + guardJSON + `]}` + "\n"
		answer                                             = `{"result":{"valid":true}}` + "\n"
	)
	m := &wt.Module{}
	f := commandFuncs{
		args:  m.Import("wasi_snapshot_preview1", "args_get", "ii:i"),
		read:  m.Import("wasi_snapshot_preview1", "fd_read", "iiii:i"),
		write: m.Import("wasi_snapshot_preview1", "fd_write", "iiii:i"),
		exit:  m.Import("wasi_snapshot_preview1", "proc_exit", "i:"),
	}
	m.Memory(4)
	m.Data(describeAt, []byte(describe))
	m.Data(answerAt, []byte(answer))
	vector := func(at, size int32) []byte {
		return wt.Seq(wt.I32(vectorAt), wt.I32(at), wt.Store(0), wt.I32(vectorAt), wt.I32(size), wt.Store(4))
	}
	f.put = func(fd, at, size int32) []byte {
		return wt.Seq(vector(at, size), wt.I32(fd), wt.I32(vectorAt), wt.I32(1), wt.I32(8), wt.Call(f.write), wt.Drop)
	}
	m.Export("_start", m.Func("", "",
		wt.I32(argvAt), wt.I32(argBytesAt), wt.Call(f.args), wt.Drop,
		wt.I32(0), wt.Load(argvAt+4), wt.Load8(0), wt.I32('d'), wt.I32Eq,
		wt.If(f.put(1, describeAt, int32(len(describe))), wt.Return),
		vector(wt.InputAt, 64<<10), wt.I32(0), wt.I32(vectorAt), wt.I32(1), wt.I32(8), wt.Call(f.read), wt.Drop,
		when('x', misbehave(m, f)),
		f.put(1, answerAt, int32(len(answer)))))
	return m.Bytes()
}

type commandFuncs struct {
	args, read, write, exit wt.Func
	// put returns instructions that write bytes to a descriptor.
	put func(fd, at, size int32) []byte
}

func TestCommand(t *testing.T) {
	for name, c := range map[string]struct {
		misbehave func(m *wt.Module, f commandFuncs) []byte
		limit     func(l *runtime.Limits)
		reason    abi.Reason
		payload   string // misbehave, if it is empty
	}{
		"exit 1":           {misbehave: func(_ *wt.Module, f commandFuncs) []byte { return wt.Seq(wt.I32(1), wt.Call(f.exit)) }, reason: abi.ReasonExit},
		"exit 0, silently": {misbehave: func(_ *wt.Module, f commandFuncs) []byte { return wt.Seq(wt.I32(0), wt.Call(f.exit)) }, reason: abi.ReasonBadOutput},
		"trap":             {misbehave: func(*wt.Module, commandFuncs) []byte { return wt.Unreachable }, reason: abi.ReasonTrap},
		"endless": {
			misbehave: func(*wt.Module, commandFuncs) []byte { return endless },
			limit:     func(l *runtime.Limits) { l.CallTime = stopAfter }, reason: abi.ReasonTimeout,
		},
		"endless output": {
			misbehave: func(_ *wt.Module, f commandFuncs) []byte { return wt.Loop(f.put(1, 0, 4096), wt.Br(0)) },
			limit:     func(l *runtime.Limits) { l.OutputBytes = 1 << 20 }, reason: abi.ReasonOutputTooLarge,
		},
		"endless, with a budget": {
			misbehave: func(*wt.Module, commandFuncs) []byte { return endless },
			limit:     func(l *runtime.Limits) { l.Fuel = 100_000 }, reason: abi.ReasonFuel,
		},
		"endless words on stderr": {
			misbehave: func(_ *wt.Module, f commandFuncs) []byte { return wt.Loop(f.put(2, 0, 4096), wt.Br(0)) },
			limit:     func(l *runtime.Limits) { l.CallTime = stopAfter }, reason: abi.ReasonTimeout,
		},
		"memory": {
			misbehave: func(*wt.Module, commandFuncs) []byte { return tooMuchMemory(wt.Unreachable)(nil) },
			limit:     func(l *runtime.Limits) { l.Memory = 1 << 20 }, reason: abi.ReasonMemory,
		},
		"table": {
			misbehave: func(m *wt.Module, _ commandFuncs) []byte {
				m.Table(1)
				return wt.Seq(wt.RefNullFunc, wt.I32(100), wt.TableGrow0, wt.I32(-1), wt.I32Eq, wt.If(wt.Unreachable))
			},
			limit: func(l *runtime.Limits) { l.TableElements = 10 }, reason: abi.ReasonMemory,
		},
		"recursion": {
			misbehave: func(m *wt.Module, _ commandFuncs) []byte {
				self := m.NextFunc()
				m.Func("I:I", "", wt.Get(0), wt.Get(0), wt.Call(self), wt.I64Add)
				return wt.Seq(wt.I64(1), wt.Call(self), wt.Drop)
			},
			reason: abi.ReasonStack,
		},
		"a payload that is too large": {
			misbehave: func(*wt.Module, commandFuncs) []byte { return wt.Unreachable },
			limit:     func(l *runtime.Limits) { l.InputBytes = 6 }, reason: abi.ReasonPayloadTooLarge,
			payload: `"xxxxxxx"`,
		},
		"something before the answer": {misbehave: func(_ *wt.Module, f commandFuncs) []byte { return f.put(1, 4096, 3) }, reason: abi.ReasonBadOutput},
	} {
		t.Run(name, func(t *testing.T) {
			onEveryEngine(t, func(t *testing.T, r *runtime.Runtime) {
				m := load(t, r, command(c.misbehave), limited(func(l *runtime.Limits) {
					if c.limit != nil {
						c.limit(l)
					}
				}))
				require.Equal(t, runtime.Command, m.Flavour())
				requireWorks(t, m, `"fine"`)
				_, err := invoke(m, cmp.Or(c.payload, misbehave))
				requireReason(t, c.reason, err)
				requireWorks(t, m, `"fine"`)
			})
		})
	}
}

func TestACommandEndsByExitZeroToo(t *testing.T) {
	m := load(t, newRuntime(t, on{}), command(func(m *wt.Module, f commandFuncs) []byte {
		return wt.Seq(f.put(1, 4096, 26), wt.I32(0), wt.Call(f.exit))
	}))
	requireWorks(t, m, misbehave)
}

func TestACommandsStderrIsLogged(t *testing.T) {
	var logs logBuffer
	m := load(t, newRuntime(t, on{}), command(func(m *wt.Module, f commandFuncs) []byte {
		m.Data(8192, []byte("to stderr\n"))
		return f.put(2, 8192, 10)
	}), logged(&logs))
	requireWorks(t, m, misbehave)
	require.Len(t, logs.records(t), 1)
	record := logs.records(t)[0]
	require.Equal(t, "to stderr", record["msg"])
	require.Equal(t, "stderr", record["source"])
	require.Equal(t, "guest.wasm", record["module"])
	require.Equal(t, "guard", record["interceptor"])
}
