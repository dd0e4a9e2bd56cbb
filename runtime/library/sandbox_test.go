package library_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/logbook"
	"github.com/weir-mcp/weir/internal/wasmtest"
	"github.com/weir-mcp/weir/runtime"
	"github.com/weir-mcp/weir/runtime/library"
	"github.com/weir-mcp/weir/runtime/wazero"
)

// realLoader is the sandbox itself.
func realLoader(t testing.TB, limits runtime.Limits) library.Loader {
	t.Helper()
	engine, err := wazero.New(wazero.Options{})
	require.NoError(t, err)
	rt := runtime.New(engine)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(t, rt.Close(ctx))
	})
	return library.Sandbox(rt, func(string) runtime.ModuleOptions { return runtime.ModuleOptions{Limits: limits} })
}

// initializing is a module that runs the instructions in _initialize.
func initializing(name string, body ...[]byte) []byte {
	r := wasmtest.NewReactor(wasmtest.Validator(name))
	r.Export(abi.ExportInitialize, r.Func("", "", body...))
	r.Invoke("", r.Answer(`{"result":{"valid":true}}`))
	return r.Bytes()
}

func hundredAtOnce(t *testing.T) {
	dir := t.TempDir()
	limits := runtime.DefaultLimits()
	limits.LoadTime = 2 * time.Second // what the one that loops gets
	o := quick(realLoader(t, limits))
	l := openFolder(t, dir, o)
	for i := range 98 {
		put(t, dir, fmt.Sprintf("m%02d.wasm", i), string(wasmtest.Allowing(fmt.Sprint("i", i))))
	}
	put(t, dir, "loops.wasm", string(initializing("loops", wasmtest.Loop(wasmtest.Br(0)))))
	put(t, dir, "traps.wasm", string(initializing("traps", wasmtest.Unreachable)))
	rescan(t, l)
	require.Len(t, l.List(), 98)
	refused := problems(l)
	require.Len(t, refused, 2)
	require.Contains(t, refused["loops.wasm"], "did not end")
	require.Contains(t, refused["traps.wasm"], "trap")
	for _, name := range names(l) {
		r, err := l.Invoke(t.Context(), call(name))
		require.NoError(t, err)
		require.True(t, r.Valid)
	}
}

func realModuleHalfCopied(t *testing.T) {
	dir, book := t.TempDir(), &logbook.Book{}
	o := quick(realLoader(t, runtime.DefaultLimits()))
	o.Logger = book.Text()
	l := openFolder(t, dir, o)
	whole := wasmtest.Allowing("slow")
	path := filepath.Join(dir, "slow.wasm")
	file, err := os.Create(path)
	require.NoError(t, err)
	for i := 0; i < len(whole); i += 7 {
		require.Empty(t, l.List())
		_, err = file.Write(whole[i:min(i+7, len(whole))])
		require.NoError(t, err)
		rescan(t, l)
	}
	require.NoError(t, file.Close())
	require.Equal(t, []string{"slow"}, names(l))
	require.Equal(t, 1, book.Count("level=ERROR"), book)
	require.NoError(t, os.Truncate(path, 20))
	rescan(t, l)
	require.Equal(t, []string{"slow"}, names(l), "the last good version stays")
	require.Contains(t, problems(l), "slow.wasm")
}

// What is wrong with a file is said with its name.
func TestFilesThatAreNoModules(t *testing.T) {
	dir := t.TempDir()
	bad := map[string]string{
		"text.wasm":      "hello",
		"empty.wasm":     "",
		"truncated.wasm": string(wasmtest.Allowing("x")[:40]),
		"component.wasm": "\x00asm\x0d\x00\x01\x00",
		"bare.wasm":      "\x00asm\x01\x00\x00\x00",
	}
	hint := wasmtest.NewReactor()
	hint.Describe(`{"interceptors":[{"name":"fine","type":"sink","hooks":[]},{"name":"x","type":"mutation","hooks":[],"priorityHint":1.5}]}`)
	hint.Invoke("", wasmtest.I32(0))
	bad["hint.wasm"] = string(hint.Bytes()) // field case bad_hint_one_descriptor
	for name, text := range bad {
		put(t, dir, name, text)
	}
	put(t, dir, "good.wasm", string(wasmtest.Allowing("good")))
	l := openFolder(t, dir, quick(realLoader(t, runtime.DefaultLimits())))
	require.Equal(t, []string{"good"}, names(l))
	refused := problems(l)
	require.Len(t, refused, len(bad))
	for name, complaint := range refused {
		require.Contains(t, complaint, name)
	}
	require.Contains(t, refused["hint.wasm"], "priorityHint")
}
