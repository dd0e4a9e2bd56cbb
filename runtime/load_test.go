package runtime_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	wt "github.com/weir-mcp/weir/internal/wasmtest"
	"github.com/weir-mcp/weir/runtime"
	"github.com/weir-mcp/weir/runtime/memory"
	"github.com/weir-mcp/weir/runtime/meter"
)

// with assembles a module of the given parts and a working rest.
func with(f func(r *wt.Reactor)) []byte {
	r := wt.NewReactor(wt.Validator("guard"))
	f(r)
	r.Invoke("", r.Answer(`{"result":{"valid":true}}`))
	return r.Bytes()
}

func withImports(f func(m *wt.Module)) []byte {
	r := wt.NewReactorWith(f, wt.Validator("guard"))
	r.Invoke("", r.Answer(`{"result":{"valid":true}}`))
	return r.Bytes()
}

func describing(answer string) []byte {
	return with(func(r *wt.Reactor) { r.Describe(answer) })
}

// bare assembles a module from nothing.
func bare(f func(m *wt.Module)) []byte {
	m := &wt.Module{}
	f(m)
	return m.Bytes()
}

// Whatever is wrong with a module is said, with the file's name and what to do.
func TestModulesThatAreRefused(t *testing.T) {
	component := append([]byte("\x00asm"), 0x0d, 0, 1, 0)
	for name, c := range map[string]struct {
		wasm  []byte
		limit func(l *runtime.Limits)
		says  []string
	}{
		"empty":      {wasm: nil, says: []string{"truncated", "the file has 0 bytes"}},
		"text":       {wasm: []byte("package main"), says: []string{"not a WebAssembly module", "compile it first"}},
		"truncated":  {wasm: wt.Allowing("guard")[:200], says: []string{"truncated", "copy it again"}},
		"component":  {wasm: component, says: []string{"component", "preview 1"}},
		"18 bytes":   {wasm: []byte("\x00asm\x01\x00\x00\x00\x01\x06\xff\xff\xff\xff\x0f\x00"), says: []string{"type"}},
		"over limit": {wasm: wt.Allowing("guard"), limit: func(l *runtime.Limits) { l.ModuleBytes = 100 }, says: []string{"the limit (module file) is 100"}},

		"invalid code": {
			wasm: with(func(r *wt.Reactor) { r.Func(":i", "") }),
			says: []string{"the engine refused the module"},
		},
		"nothing exported": {
			wasm: bare(func(m *wt.Module) { m.Memory(1) }),
			says: []string{"exports neither weir_abi_v1", "_start", "-buildmode=c-shared"},
		},
		"another ABI version": {
			wasm: bare(func(m *wt.Module) { m.Memory(1); m.Export("weir_abi_v2", m.Func("", "")) }),
			says: []string{"ABI version 2; this weir speaks 1"},
		},
		"another ABI version, beside _start": {
			wasm: bare(func(m *wt.Module) {
				m.Memory(1)
				f := m.Func("", "")
				m.Export("weir_abi_v7", f)
				m.Export("_start", f)
			}),
			says: []string{"ABI version 7"},
		},
		"exports missing": {
			wasm: bare(func(m *wt.Module) { m.Export("weir_abi_v1", m.Func("", "")) }),
			says: []string{"memory is missing", "weir_describe () -> i32 is missing", "weir_invoke (i32) -> i32 is missing"},
		},
		"exports mistyped": {
			wasm: bare(func(m *wt.Module) {
				m.ExportAs("memory", 0, 0)
				m.Export("weir_abi_v1", m.Func("i:", ""))
				m.Export("weir_describe", m.Func("", ""))
				m.ExportAs("weir_invoke", 3, m.Global(0))
				m.Export("_initialize", m.Func("i:", ""))
				m.Export("weir_warmup", m.Func("", ""))
				m.Export("weir_reseed", m.Func("i:", ""))
			}),
			says: []string{
				"memory is a func, it must be the linear memory",
				"weir_abi_v1 has the type (i32) -> (), it must be () -> ()",
				"weir_describe has the type () -> (), it must be () -> i32",
				"weir_invoke is a global, it must be a function (i32) -> i32",
				"_initialize has the type (i32) -> ()", "weir_warmup has the type () -> ()", "weir_reseed has the type (i32) -> ()",
			},
		},
		"a command mistyped": {
			wasm: bare(func(m *wt.Module) { m.Memory(1); m.Export("_start", m.Func("i:", "")) }),
			says: []string{"exports of a command module are wrong", "_start has the type (i32) -> ()"},
		},

		"grants": {
			wasm: withImports(func(m *wt.Module) {
				m.Import("weir", "kv_get", "iiii:i")
				m.Import("weir", "kv_set", "iiiiI:i")
				m.Import("weir", "http", "iiii:i")
			}),
			says: []string{
				"weir.kv_get needs the grant kv, which the line files: {guest.wasm: {grants: {kv: {scope: principal}}}} of its host in weir.yaml gives it",
				"weir.kv_set needs the grant kv",
				"weir.http needs the grant http, which this version of weir does not offer yet", "files: {guest.wasm: {grants: {http: [",
			},
		},
		"imports that do not exist": {
			wasm: withImports(func(m *wt.Module) {
				m.Import("weir", "exec", "")
				m.Import("wasi_snapshot_preview1", "path_exec", "")
				m.Import("wasi_unstable", "fd_write", "iiii:i")
				m.Import("wasi:cli/stdout@0.2.0", "get-stdout", ":i")
				m.Import("env", "emscripten\nlog\x1b[31m", "i:")
			}),
			says: []string{
				"weir.exec does not exist in ABI version 1", "wasi_snapshot_preview1.path_exec does not exist in WASI preview 1",
				"wasi_unstable.fd_write is of an older WASI", "wasi:cli/stdout@0.2.0.get-stdout is of WASI preview 2",
				`env."emscripten\nlog\x1b[31m" is of a module that weir does not have`,
			},
		},
		"imports mistyped": {
			wasm: withImports(func(m *wt.Module) {
				m.Import("weir", "output", "iii:")
				m.Import("wasi_snapshot_preview1", "fd_write", "iiiI:i")
			}),
			says: []string{
				"weir.output has the type (i32, i32, i32) -> (), it must be (i32, i32) -> ()",
				"wasi_snapshot_preview1.fd_write has the type (i32, i32, i32, i64) -> i32, it must be",
			},
		},
		"imported memory": {
			wasm: bare(func(m *wt.Module) {
				m.ImportOther("env", "memory", 2, 0, 1)
				m.ExportAs("memory", 2, 0)
				m.Export("_start", m.Func("", ""))
			}),
			says: []string{"env.memory is a memory: a module may import functions only"},
		},
		"imported table": {
			wasm: withImports(func(m *wt.Module) { m.ImportOther("weir", "table", 1, 0x70, 0, 1) }),
			says: []string{"weir.table is a table: a module may import functions only"},
		},
		"very many wrong imports": {
			wasm: withImports(func(m *wt.Module) {
				for i := range 100 {
					m.Import("env", string(rune('a'+i%26))+string(rune('a'+i/26)), "")
				}
			}),
			says: []string{"env.aa", "and 80 more"},
		},

		"memory": {
			wasm:  with(func(r *wt.Reactor) { r.Memory(17) }),
			limit: func(l *runtime.Limits) { l.Memory = 1 << 20 },
			says:  []string{"declares 1114112 bytes of memory, its limit (memory) is 1048576"},
		},
		"table": {
			wasm: with(func(r *wt.Reactor) { r.Table(100_001) }),
			says: []string{"declares tables of 100001 elements, its limit (table elements) is 100000"},
		},
		"tables together": {
			wasm: with(func(r *wt.Reactor) {
				for range 3 {
					r.Table(40_000)
				}
			}),
			says: []string{"declares tables of 120000 elements"},
		},

		"start traps": {
			wasm: with(func(r *wt.Reactor) { r.Start(r.Func("", "", wt.Unreachable)) }),
			says: []string{"guest.wasm: the start function failed (trap): ", "unreachable"},
		},
		"_initialize traps": {
			wasm: with(func(r *wt.Reactor) { r.Export("_initialize", r.Func("", "", wt.Unreachable)) }),
			says: []string{"guest.wasm: _initialize failed (trap): ", "unreachable"},
		},
		"start never ends": {
			wasm:  with(func(r *wt.Reactor) { r.Start(r.Func("", "", endless)) }),
			limit: func(l *runtime.Limits) { l.LoadTime = 30 * time.Millisecond },
			says:  []string{"the start function did not end within 30ms, the limit for loading"},
		},
		"_initialize never ends": {
			wasm:  with(func(r *wt.Reactor) { r.Export("_initialize", r.Func("", "", endless)) }),
			limit: func(l *runtime.Limits) { l.LoadTime = 30 * time.Millisecond },
			says:  []string{"_initialize did not end within 30ms, the limit for loading"},
		},
		"_initialize exits": {
			wasm: func() []byte {
				r := wt.NewReactorWith(func(m *wt.Module) { m.Import("wasi_snapshot_preview1", "proc_exit", "i:") })
				r.Export("_initialize", r.Func("", "", wt.I32(0), wt.Call(3)))
				r.Invoke("", wt.I32(0))
				return r.Bytes()
			}(),
			says: []string{"_initialize failed (exit): the guest called proc_exit(0)"},
		},
		"data outside memory": {
			wasm: with(func(r *wt.Reactor) { r.Data(4*64<<10, []byte("x")) }),
			says: []string{"making an instance failed (trap)"},
		},

		"describes nothing":    {wasm: describing(`{"interceptors":[]}`), says: []string{"registers no interceptor", "in init"}},
		"describes in no JSON": {wasm: describing(`interceptors`), says: []string{"bad JSON"}},
		"describes twice":      {wasm: describing(`{"interceptors":[],"interceptors":[]}`), says: []string{"bad JSON"}},
		"describes a number":   {wasm: describing(`{"interceptors":1}`), says: []string{"something else than descriptors"}},
		"describes in pages":   {wasm: describing(`{"interceptors":[` + guardJSON + `],"nextCursor":"2"}`), says: []string{"nextCursor"}},
		"one bad descriptor of two": {
			wasm: describing(`{"interceptors":[` + guardJSON + `,{"name":"other","type":"mutation","priorityHint":1.5,"hooks":[]}]}`),
			says: []string{`bad descriptor: number 2: "other": priorityHint: is not an integer`},
		},
		"duplicate names": {
			wasm: describing(`{"interceptors":[` + guardJSON + `,` + guardJSON + `]}`),
			says: []string{`two interceptors named "guard"`},
		},
		"describe hands over nothing": {
			wasm: bare(func(m *wt.Module) {
				m.Memory(1)
				m.Export("weir_abi_v1", m.Func("", ""))
				m.Export("weir_describe", m.Func(":i", "", wt.I32(0)))
				m.Export("weir_invoke", m.Func("i:i", "", wt.I32(0)))
			}),
			says: []string{"describe handed over nothing"},
		},
		"describe returns 3": {
			wasm: bare(func(m *wt.Module) {
				m.Memory(1)
				m.Export("weir_abi_v1", m.Func("", ""))
				m.Export("weir_describe", m.Func(":i", "", wt.I32(3)))
				m.Export("weir_invoke", m.Func("i:i", "", wt.I32(0)))
			}),
			says: []string{"guest.wasm: weir_describe failed (guest): weir_describe returned 3"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			onEveryEngine(t, func(t *testing.T, r *runtime.Runtime) {
				m, err := tryLoad(r, c.wasm, limited(func(l *runtime.Limits) {
					if c.limit != nil {
						c.limit(l)
					}
				}))
				require.Nil(t, m)
				var refused *runtime.LoadError
				require.ErrorAs(t, err, &refused)
				require.Equal(t, "guest.wasm", refused.File)
				require.ErrorContains(t, err, "guest.wasm: ")
				require.NotContains(t, err.Error(), "\n")
				for _, s := range c.says {
					require.ErrorContains(t, err, s)
				}
			})
		})
	}
}

const guardJSON = `{"name":"guard","type":"validation","hooks":[{"events":["tools/call"],"phase":"request"}]}`

func TestTheKindOfRefusalIsKept(t *testing.T) {
	_, err := tryLoad(newRuntime(t, on{}), []byte("hello"))
	require.ErrorIs(t, err, meter.ErrNotWasm)
}

func TestAMarkerMakesAReactorEvenBesideStart(t *testing.T) {
	m := load(t, newRuntime(t, on{}), with(func(r *wt.Reactor) {
		f := r.Func("", "", wt.Unreachable)
		r.Export("_start", f)
		r.Export("weir_abi_v2", f)
	}))
	require.Equal(t, runtime.Reactor, m.Flavour())
	requireWorks(t, m, `{}`)
}

// The engine knows exactly the features that the parser accepts.
func TestAcceptedFeatures(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, r *runtime.Runtime) {
		m := load(t, r, with(func(r *wt.Reactor) {
			r.GlobalOf(wt.Seq(wt.I32(1), wt.I32(2), wt.I32Add)) // extended const
			f := r.Func(":i", "", wt.I32(1))
			r.Func(":i", "", wt.ReturnCall(f))                                       // tail call
			r.Data(8, []byte("bulk memory"))                                         //
			r.Func("", "", wt.I32(0), wt.I32(0), wt.I32(0), []byte{0xfc, 11, 0})     // memory.fill
			r.Func("", "", wt.I32(300), []byte{0xc0}, wt.Drop)                       // i32.extend8_s
			r.Func(":ii", "", wt.I32(1), wt.I32(2))                                  // multi-value
			r.Func("", "", []byte{0x43, 0, 0, 0, 0, 0xfc, 0}, wt.Drop)               // i32.trunc_sat_f32_s
			r.Func("", "", wt.I32(1), []byte{0xfd, 17}, []byte{0xfd, 0x53}, wt.Drop) // i32x4.splat, v128.any_true
		}))
		requireWorks(t, m, `{}`)
	})
}

func TestCustomSectionsNeverReachTheEngine(t *testing.T) {
	m := load(t, newRuntime(t, on{}), with(func(r *wt.Reactor) {
		r.Custom("name", []byte{1, 0xff, 0xff, 0xff, 0xff, 0x0f}) // asks for gigabytes
		r.Custom(".debug_info", []byte("nonsense"))
	}))
	requireWorks(t, m, `{}`)
}

func TestLoadIsCancelled(t *testing.T) {
	r := newRuntime(t, on{})
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(20*time.Millisecond, cancel)
	_, err := r.Load(ctx, with(func(r *wt.Reactor) { r.Start(r.Func("", "", endless)) }), runtime.ModuleOptions{Name: "guest.wasm"})
	require.ErrorIs(t, err, context.Canceled)
	_, err = r.Load(ctx, wt.Allowing("guard"), runtime.ModuleOptions{})
	require.ErrorIs(t, err, context.Canceled)
	load(t, r, wt.Allowing("guard"))
}

func TestSameModuleTwice(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, r *runtime.Runtime) {
		a, b := load(t, r, wt.Allowing("guard")), load(t, r, wt.Allowing("guard"))
		require.Equal(t, a.Digest(), b.Digest())
		require.NoError(t, a.Close(context.Background()))
		requireWorks(t, b, `{}`)
		require.NoError(t, b.Close(context.Background()))
		requireWorks(t, load(t, r, wt.Allowing("guard")), `{}`)
	})
}

func TestLoadErrorWithoutAFile(t *testing.T) {
	require.EqualError(t, &runtime.LoadError{Err: errors.New("why")}, "why")
}

func TestEnvironmentThatCannotBe(t *testing.T) {
	_, err := tryLoad(newRuntime(t, on{}), wt.Allowing("guard"), func(o *runtime.ModuleOptions) {
		o.Grants.Env = map[string]string{"A=B": "c"}
	})
	require.ErrorContains(t, err, `grant env: "A=B" cannot be an environment variable`)
}

func TestInspect(t *testing.T) {
	wasm := withImports(func(m *wt.Module) {
		m.Import("weir", "http", "iiii:i")
		m.Import("wasi_snapshot_preview1", "random_get", "ii:i")
	})
	f, err := runtime.Inspect(wasm)
	require.NoError(t, err)
	require.Equal(t, runtime.Reactor, f.Flavour)
	require.Equal(t, int64(len(wasm)), f.Size)
	require.Len(t, f.Digest, 64)
	require.Equal(t, int64(4*64<<10), f.MemoryMin)
	require.Zero(t, f.MemoryMax)
	require.Equal(t, memory.Best().String(), f.Reset)
	require.ErrorContains(t, f.Refused, "http")
	require.Equal(t, []string{"", "", "", "http", ""}, grantsOf(f))
	require.Empty(t, f.Imports[0].Problem)
	require.Contains(t, f.Imports[3].Problem, "needs the grant http")
	require.Equal(t, "(i32, i32) -> i32", f.Imports[4].Type)
	require.Contains(t, f.Exports, runtime.ExportFact{Name: "memory", Type: "memory"})
	require.Contains(t, f.Exports, runtime.ExportFact{Name: abi.ExportInvoke, Type: "(i32) -> i32"})

	f, err = runtime.Inspect(wt.Allowing("guard"))
	require.NoError(t, err)
	require.NoError(t, f.Refused)

	_, err = runtime.Inspect([]byte("no"))
	require.ErrorIs(t, err, meter.ErrNotWasm)
}

func grantsOf(f runtime.Facts) (grants []string) {
	for _, i := range f.Imports {
		grants = append(grants, i.Grant)
	}
	return grants
}

// A Go program that is built as one, and not as a library, has a main that
// nobody calls: the error says which flag it lacks.
func TestAGoModuleBuiltAsAProgram(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module guest\n\ngo 1.26\n",
		"main.go": `package main

//go:wasmexport weir_abi_v1
func marker() {}

//go:wasmexport weir_describe
func describe() int32 { return 0 }

//go:wasmexport weir_invoke
func invoke(int32) int32 { return 0 }

func main() {}
`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	build := func(flags ...string) []byte {
		out := filepath.Join(dir, "guest.wasm")
		cmd := exec.Command("go", append(append([]string{"build"}, flags...), "-o", out, ".")...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=", "GOWORK=off")
		text, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", text)
		wasm, err := os.ReadFile(out)
		require.NoError(t, err)
		return wasm
	}
	r := newRuntime(t, on{})
	_, err := tryLoad(r, build())
	require.ErrorContains(t, err, "guest.wasm: weir_describe failed (trap): ")
	require.ErrorContains(t, err, "called before runtime initialization")
	require.ErrorContains(t, err, "exports _start and no _initialize, so nothing has initialized it: in Go, build with -buildmode=c-shared")
	require.NotContains(t, err.Error(), "\n")

	_, err = tryLoad(r, build("-buildmode=c-shared"))
	require.ErrorContains(t, err, "describe handed over nothing")
	require.NotContains(t, err.Error(), "buildmode")
}

// What fails in the start of an instance that a call needs is told so, and not
// of the interceptor.
func TestFailuresNameTheirStage(t *testing.T) {
	reseed := with(func(r *wt.Reactor) { r.Export(abi.ExportReseed, r.Func("I:", "", wt.Unreachable)) })
	// Fresh for each call, since it writes to a table, and as likely as not to trap.
	r := wt.NewReactorWith(func(m *wt.Module) { m.Import("wasi_snapshot_preview1", "random_get", "ii:i") }, wt.Validator("guard"))
	r.Table(1)
	r.Export(abi.ExportInitialize, r.Func("", "", wt.I32(0), wt.I32(1), wt.Call(3), wt.Drop,
		wt.I32(0), wt.Load8(0), wt.I32(128), wt.I32DivU, wt.If(wt.Unreachable)))
	r.Invoke("", wt.I32(0), wt.RefNullFunc, wt.TableSet0, r.Answer(`{"result":{"valid":true}}`))
	unsteady := r.Bytes()

	for stage, wasm := range map[string][]byte{abi.ExportReseed: reseed, abi.ExportInitialize: unsteady} {
		t.Run(stage, func(t *testing.T) {
			onEveryEngine(t, func(t *testing.T, r *runtime.Runtime) {
				m, err := tryLoad(r, wasm)
				for range 100 {
					if err == nil {
						break
					}
					m, err = tryLoad(r, wasm)
				}
				require.NoError(t, err)
				for range 100 {
					if _, err = invoke(m, `{}`); err != nil {
						break
					}
				}
				e := requireReason(t, abi.ReasonTrap, err)
				require.ErrorContains(t, e.Cause, stage+": ")
				require.NotContains(t, e.Cause.Error(), "\n")
				require.NotContains(t, e.Message(), stage)
			})
		})
	}
}
