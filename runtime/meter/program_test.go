//go:build !race

// To compile this program takes minutes under the race detector; there is nothing
// to be raced for in it.

package meter_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/weir-mcp/weir/runtime/meter"
)

// programSource uses what real guests use: JSON, sorting, strings, maps, regular
// expressions, compression, big numbers, goroutines, panics, the collector.
const programSource = `package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/big"
	"regexp"
	"runtime"
	"sort"
	"strings"
	"sync"
	"text/template"
	"unicode/utf8"
)

type record struct {
	Name  string            ` + "`json:\"name\"`" + `
	Tags  []string          ` + "`json:\"tags\"`" + `
	Extra map[string]any    ` + "`json:\"extra\"`" + `
}

func main() {
	var records []record
	for i := range 50 {
		records = append(records, record{
			Name:  strings.Repeat(string(rune('a'+i%26)), i),
			Tags:  strings.Fields("the quick brown fox jumps over the lazy dog")[i%9:],
			Extra: map[string]any{"n": i, "pi": math.Pi * float64(i), "s": "é<&>"},
		})
	}
	sort.Slice(records, func(i, j int) bool { return len(records[i].Name)%7 < len(records[j].Name)%7 || len(records[i].Name)%7 == len(records[j].Name)%7 && i < j })
	b, err := json.Marshal(records)
	fmt.Println(len(b), err, string(b[:200]))
	var back any
	fmt.Println(json.Unmarshal(b, &back), len(back.([]any)))
	fmt.Println(json.Unmarshal([]byte("{\"a\":[1,2,}"), &back))

	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	w.Write(bytes.Repeat(b, 20))
	w.Close()
	r, _ := gzip.NewReader(&z)
	plain, _ := io.ReadAll(r)
	fmt.Printf("%x\n", sha256.Sum256(plain))

	f := new(big.Int).MulRange(1, 300)
	fmt.Println(f.String()[:40], new(big.Int).Exp(big.NewInt(7), f, big.NewInt(1_000_003)))
	fmt.Println(regexp.MustCompile("(a+)(b|c)*").ReplaceAllString("xaabcbay", "<$1>"))
	template.Must(template.New("t").Parse("{{range .}}{{.Name | len}} {{end}}\n")).Execute(writer{}, records)
	fmt.Println(utf8.RuneCountInString(strings.ToUpper("straße")), strings.Map(func(r rune) rune { return r + 1 }, "hal"))

	var mu sync.Mutex
	var wg sync.WaitGroup
	total := 0
	for i := range 20 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			runtime.Gosched()
			mu.Lock()
			defer mu.Unlock()
			total += i * i
		}()
	}
	wg.Wait()
	fmt.Println(total)

	var keep [][]byte
	for i := range 200 {
		keep = append(keep, make([]byte, 10_000+i))
		if i%50 == 0 {
			runtime.GC()
			keep = keep[len(keep)/2:]
		}
	}
	func() {
		defer func() { fmt.Println("recovered:", recover()) }()
		var none []int
		fmt.Println(none[len(keep)])
	}()
}

type writer struct{}

func (writer) Write(b []byte) (int, error) { fmt.Print(string(b)); return len(b), nil }
`

// native runs a program of one file on this machine and gives what it prints.
func native(t *testing.T, source string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "main.go")
	require.NoError(t, os.WriteFile(file, []byte(source), 0o600))
	out, err := exec.Command("go", "run", file).Output()
	require.NoError(t, err)
	return string(out)
}

// TestAProgramOfTheStandardLibrary prints the same metered as on this machine,
// and with -meter.long the same as not metered.
func TestAProgramOfTheStandardLibrary(t *testing.T) {
	b, err := goBuild(programSource)
	require.NoError(t, err)
	m, err := meter.Parse(b)
	require.NoError(t, err)
	r, _ := rewritten(t, b, generous)
	require.True(t, r.Restorable())

	run := func(b []byte) string {
		e := engine(t, wazero.NewRuntimeConfig())
		ctx, tank := fueled(unlimited, 1<<20)
		wasi_snapshot_preview1.MustInstantiate(ctx, e)
		var out bytes.Buffer
		_, err := e.InstantiateWithConfig(ctx, b, wazero.NewModuleConfig().WithStdout(&out).WithStderr(&out).WithArgs("program"))
		if err != nil {
			require.ErrorContains(t, err, "exit_code(0)", "%s", out.String())
		}
		t.Logf("%d bytes, fuel %d", len(b), tank.spent)
		return out.String()
	}
	want := native(t, programSource)
	require.Contains(t, want, "recovered: runtime error: index out of range")
	require.Equal(t, want, run(r.Binary))
	if *long {
		require.Equal(t, want, run(m.Stripped()))
	}
}

// guestEngine is an engine that the guest of these tests runs on; input is what
// it reads, the result what it wrote last.
func guestEngine(tb testing.TB, input []byte) (wazero.Runtime, *[]byte) {
	tb.Helper()
	e := engine(tb, wazero.NewRuntimeConfig())
	ctx := context.Background()
	wasi_snapshot_preview1.MustInstantiate(ctx, e)
	out := new([]byte)
	i32 := api.ValueTypeI32
	_, err := e.NewHostModuleBuilder("weir").
		NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, m api.Module, stack []uint64) {
		m.Memory().Write(uint32(stack[0]), input)
	}), []api.ValueType{i32}, nil).Export("input").
		NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, m api.Module, stack []uint64) {
		b, _ := m.Memory().Read(uint32(stack[0]), uint32(stack[1]))
		*out = append((*out)[:0], b...)
	}), []api.ValueType{i32, i32}, nil).Export("output").
		Instantiate(ctx)
	require.NoError(tb, err)
	return e, out
}

// document is JSON of about the given size.
func document(size int) []byte {
	b := []byte(`{"method":"tools/call","params":{"name":"search","arguments":{"a":[1,2.5,true,null],"items":[`)
	for i := 0; len(b) < size; i++ {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"mail":"somebody@example.org","text":"lorem ipsum dolor sit amet"}`...)
	}
	return append(b, `]}}}`...)
}

// BenchmarkGuest calls the Go guest, which decodes and encodes JSON, metered and
// not. The two run in turn, so that they see the same machine.
func BenchmarkGuest(b *testing.B) {
	for _, size := range []int{1 << 10, 100 << 10} {
		input := document(size)
		m, err := meter.Parse(guest(b))
		require.NoError(b, err)
		r, err := m.Rewrite(generous)
		require.NoError(b, err)
		pair(b, map[bool]string{true: "1KB", false: "100KB"}[size == 1<<10], m.Stripped(), r.Binary, func(binary []byte) func() {
			e, out := guestEngine(b, input)
			ctx, _ := fueled(unlimited, 1<<20)
			i, err := e.InstantiateWithConfig(ctx, binary, wazero.NewModuleConfig().WithStartFunctions("_initialize"))
			require.NoError(b, err)
			invoke := i.ExportedFunction("weir_invoke")
			return func() {
				results, err := invoke.Call(ctx, uint64(len(input)))
				if err != nil || results[0] != 0 || len(*out) == 0 {
					b.Fatal(err, results)
				}
			}
		})
	}
}

// BenchmarkTight runs small loops and recursions, metered and not.
func BenchmarkTight(b *testing.B) {
	// Adds up the bytes of a page, x*31+byte.
	sum := bodyWithLocals(vec(cat(2, i32)), byte(0x03), byte(0x40),
		byte(0x20), 1, byte(0x41), s(31), byte(0x6c), byte(0x20), 0, byte(0x2d), 0, 0, byte(0x6a), byte(0x21), 1,
		byte(0x20), 0, byte(0x41), 1, byte(0x6a), byte(0x22), 0, byte(0x41), s(65536), byte(0x48), byte(0x0d), 0, end)
	// Nothing but counting.
	empty := bodyWithLocals(vec(cat(1, i32)), byte(0x03), byte(0x40),
		byte(0x20), 0, byte(0x41), 1, byte(0x6a), byte(0x22), 0, byte(0x41), s(65536), byte(0x48), byte(0x0d), 0, end)
	// fib(20), its argument and result in the global.
	fib := body(
		byte(0x23), 0, byte(0x42), 2, byte(0x53), byte(0x45), byte(0x04), byte(0x40),
		byte(0x23), 0, byte(0x42), 1, byte(0x7d), byte(0x24), 0, byte(0x10), 0,
		byte(0x23), 0, byte(0x42), 1, byte(0x7d), byte(0x24), 0, byte(0x10), 0, end)
	fibs := body(byte(0x42), 30, byte(0x24), 0, byte(0x10), 0)
	for name, module := range map[string][]byte{
		"an empty loop":       work(empty),
		"a loop over a page":  work(sum),
		"calls of themselves": work(fib, fibs),
	} {
		m, err := meter.Parse(module)
		require.NoError(b, err)
		r, err := m.Rewrite(generous)
		require.NoError(b, err)
		pair(b, name, m.Stripped(), r.Binary, func(binary []byte) func() {
			ctx, _ := fueled(unlimited, 1<<20)
			i, err := engine(b, wazero.NewRuntimeConfig()).InstantiateWithConfig(ctx, binary, wazero.NewModuleConfig())
			require.NoError(b, err)
			run := i.ExportedFunction("run")
			return func() {
				if _, err := run.Call(ctx); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
