package guest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/guest/guesttest"
	"github.com/weir-mcp/weir/internal/guestbuild"
)

// host is the smallest host that keeps to abi.md, Flavour 1.
type host struct {
	t       testing.TB
	runtime wazero.Runtime
	module  wazero.CompiledModule
	input   []byte
	output  []byte
	logged  []string
}

func newHost(t testing.TB, pkg string) *host {
	t.Helper()
	ctx := context.Background()
	wasm, err := guestbuild.Bytes(ctx, pkg)
	require.NoError(t, err)
	t.Logf("%s is %d bytes", pkg, len(wasm))
	h := &host{t: t, runtime: wazero.NewRuntime(ctx)}
	t.Cleanup(func() { require.NoError(t, h.runtime.Close(ctx)) })
	wasi_snapshot_preview1.MustInstantiate(ctx, h.runtime)
	_, err = h.runtime.NewHostModuleBuilder(abi.ImportModule).
		NewFunctionBuilder().WithFunc(func(_ context.Context, m api.Module, at uint32) {
		require.True(t, m.Memory().Write(at, h.input))
	}).Export(abi.ImportInput).
		NewFunctionBuilder().WithFunc(func(_ context.Context, m api.Module, at, length uint32) {
		b, ok := m.Memory().Read(at, length)
		require.True(t, ok)
		h.output = append([]byte(nil), b...)
	}).Export(abi.ImportOutput).
		NewFunctionBuilder().WithFunc(func(_ context.Context, m api.Module, level int32, at, length uint32) {
		b, ok := m.Memory().Read(at, length)
		require.True(t, ok)
		h.logged = append(h.logged, string(rune('0'+level))+" "+string(b))
	}).Export(abi.ImportLog).
		Instantiate(ctx)
	require.NoError(t, err)
	h.module, err = h.runtime.CompileModule(ctx, wasm)
	require.NoError(t, err)
	return h
}

// instance is a module in the state that follows _initialize.
func (h *host) instance() api.Module {
	m, err := h.runtime.InstantiateModule(context.Background(), h.module, wazero.NewModuleConfig().WithName("").WithStartFunctions(abi.ExportInitialize))
	require.NoError(h.t, err)
	h.t.Cleanup(func() { _ = m.Close(context.Background()) })
	return m
}

func (h *host) call(m api.Module, export string, params ...uint64) []uint64 {
	results, err := m.ExportedFunction(export).Call(context.Background(), params...)
	require.NoError(h.t, err)
	return results
}

func (h *host) describe(m api.Module) []abi.Descriptor {
	h.output = nil
	require.Equal(h.t, []uint64{0}, h.call(m, abi.ExportDescribe))
	page, err := abi.ReadPage(h.output)
	require.NoError(h.t, err)
	require.Empty(h.t, page.Skipped)
	return page.Interceptors
}

func (h *host) invoke(m api.Module, inv abi.Invocation) (abi.Result, error) {
	for _, d := range h.describe(m) {
		if d.Name != inv.Name {
			continue
		}
		h.input, h.output = abi.AppendCall(nil, &inv), nil
		require.Equal(h.t, []uint64{0}, h.call(m, abi.ExportInvoke, uint64(len(h.input))))
		return abi.ReadAnswer(h.output, &d, inv.Phase)
	}
	return abi.Result{}, errors.New("no such interceptor")
}

func TestBorder(t *testing.T) {
	h := newHost(t, "./internal/fixture")

	t.Run("the answers are those that the same cases get natively", func(t *testing.T) {
		cases, err := guesttest.ReadCases("internal/fixture/testdata")
		require.NoError(t, err)
		m := h.instance()
		for _, c := range cases {
			inv, err := c.Invocation()
			require.NoError(t, err)
			require.NoError(t, c.Check(h.invoke(m, inv)), c.Name)
		}
	})

	t.Run("the exports are those of a reactor", func(t *testing.T) {
		i32, i64 := api.ValueTypeI32, api.ValueTypeI64
		for name, want := range map[string][2][]api.ValueType{
			abi.ExportMarker:     {nil, nil},
			abi.ExportInitialize: {nil, nil},
			abi.ExportDescribe:   {nil, {i32}},
			abi.ExportInvoke:     {{i32}, {i32}},
			abi.ExportReseed:     {{i64}, nil},
		} {
			f := h.module.ExportedFunctions()[name]
			require.NotNil(t, f, name)
			require.ElementsMatch(t, want[0], f.ParamTypes(), name)
			require.ElementsMatch(t, want[1], f.ResultTypes(), name)
		}
		require.Contains(t, h.module.ExportedMemories(), abi.ExportMemory)
		require.NotContains(t, h.module.ExportedFunctions(), abi.ExportStart)
	})

	t.Run("the imports are weir's three and WASI", func(t *testing.T) {
		for _, f := range h.module.ImportedFunctions() {
			module, name, _ := f.Import()
			if module == abi.ImportModule {
				require.Contains(t, []string{abi.ImportInput, abi.ImportOutput, abi.ImportLog}, name)
			} else {
				require.Equal(t, "wasi_snapshot_preview1", module)
			}
		}
	})

	t.Run("describe lists what init registered, in that order", func(t *testing.T) {
		list := h.describe(h.instance())
		var names []string
		for _, d := range list {
			names = append(names, d.Name)
		}
		require.Equal(t, []string{"replace", "texts", "prompts", "meter", "faulty", "dice"}, names)
		require.Equal(t, abi.Mutation, list[0].Type)
		require.Equal(t, "1.2.3", list[0].Version)
		require.Equal(t, abi.Priority(-5), list[0].PriorityHint)
		require.JSONEq(t, `{"type":"object","additionalProperties":false,"properties":{
			"from":{"type":"string","description":"what to look for in every string"},
			"to":{"type":"string","description":"what to put there"},
			"names":{"type":"boolean","description":"look in the names of members too"}}}`, string(list[0].ConfigSchema))
		require.Nil(t, list[1].ConfigSchema)
		require.True(t, list[3].FailOpen)
	})

	t.Run("an envelope is answered with one", func(t *testing.T) {
		r, err := h.invoke(h.instance(), abi.Invocation{
			Name: "replace", Event: "tools/call", Phase: abi.Request, Config: []byte(`{"from":"b"}`),
			Payload: []byte(`{"method":"tools/call","params":{"name":"b"}}`),
		})
		require.NoError(t, err)
		require.Equal(t, `{"method":"tools/call","params":{"name":"***"}}`, string(r.Payload))
	})

	t.Run("log lines arrive with their level", func(t *testing.T) {
		h.logged = nil
		_, err := h.invoke(h.instance(), abi.Invocation{Name: "meter", Event: "tools/list", Phase: abi.Response, Payload: []byte(`{"tools":[]}`)})
		require.NoError(t, err)
		require.Equal(t, []string{"1 response of tools/list, 12 bytes, <&> é"}, h.logged)
	})

	t.Run("a panic is logged with its stack, cut to 4 KiB, and the instance lives", func(t *testing.T) {
		h.logged = nil
		m := h.instance()
		_, err := h.invoke(m, abi.Invocation{Name: "faulty", Event: "test/x", Phase: abi.Request, Config: []byte(`{"how":"panic"}`)})
		var guestError *abi.GuestError
		require.ErrorAs(t, err, &guestError)
		require.Len(t, h.logged, 1)
		require.True(t, strings.HasPrefix(h.logged[0], "3 panic: oh no\n"), h.logged[0])
		require.LessOrEqual(t, len(h.logged[0])-2, 4<<10)
		r, err := h.invoke(m, abi.Invocation{Name: "faulty", Event: "test/x", Phase: abi.Request})
		require.NoError(t, err)
		require.True(t, r.Valid)
	})

	t.Run("input that is no call is a failure, not a trap", func(t *testing.T) {
		m := h.instance()
		require.NotEqual(t, []uint64{0}, h.call(m, abi.ExportInvoke, 0))
		require.NotEqual(t, []uint64{0}, h.call(m, abi.ExportInvoke, uint64(1<<31)))
		for _, input := range []string{"{", "null", `{"interceptor":"nobody","event":"a/b","phase":"request","payload":{}}`} {
			h.input = []byte(input)
			require.Equal(t, []uint64{0}, h.call(m, abi.ExportInvoke, uint64(len(input))))
			_, err := abi.ReadAnswer(h.output, &abi.Descriptor{}, abi.Request)
			var guestError *abi.GuestError
			require.ErrorAs(t, err, &guestError, input)
		}
	})

	t.Run("a seed decides what Rand gives", func(t *testing.T) {
		m := h.instance()
		roll := func(seed uint64) string {
			h.call(m, abi.ExportReseed, seed)
			r, err := h.invoke(m, abi.Invocation{Name: "dice", Event: "test/x", Phase: abi.Request})
			require.NoError(t, err)
			return string(r.Metrics)
		}
		require.Equal(t, roll(7), roll(7))
		require.NotEqual(t, roll(7), roll(8))
	})

	t.Run("memory does not grow with the number of calls", func(t *testing.T) {
		m := h.instance()
		payload := []byte(`{"name":"t","text":"` + strings.Repeat("b ", 50_000) + `"}`)
		inv := abi.Invocation{Name: "replace", Event: "tools/call", Phase: abi.Request, Config: []byte(`{"from":"b"}`), Payload: payload}
		after := func(calls int) uint32 {
			for range calls {
				_, err := h.invoke(m, inv)
				require.NoError(t, err)
			}
			return m.Memory().Size()
		}
		warm := after(20)
		require.LessOrEqual(t, after(40), warm+warm/4)
	})
}

// The size of a module is what an operator ships and a host compiles. This one
// is the README's.
func TestModuleSize(t *testing.T) {
	wasm, err := guestbuild.Bytes(context.Background(), "./internal/denytools")
	require.NoError(t, err)
	require.Less(t, len(wasm), 4<<20)
}

func BenchmarkEditStringsInWasm(b *testing.B) {
	h := newHost(b, "./internal/fixture")
	m := h.instance()
	for _, size := range []int{1 << 10, 100 << 10} {
		inv := abi.Invocation{Name: "replace", Event: "tools/call", Phase: abi.Response, Config: []byte(`{"from":"jane.doe@example.com"}`), Payload: document(size)}
		h.input = abi.AppendCall(nil, &inv)
		b.Run(fmt.Sprintf("%dKB", size>>10), func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				h.call(m, abi.ExportInvoke, uint64(len(h.input)))
			}
		})
	}
}
