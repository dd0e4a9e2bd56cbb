package meter_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/runtime/meter"
)

// guestSource is a reactor as abi.md describes it, with enough of the standard
// library to have the size and the shapes of a real one.
const guestSource = `package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"unsafe"
)

//go:wasmimport weir input
func input(p unsafe.Pointer)

//go:wasmimport weir output
func output(p unsafe.Pointer, n uint32)

var word = regexp.MustCompile("[a-z]+")

//go:wasmexport weir_abi_v1
func abi() {}

//go:wasmexport weir_describe
func describe() int32 { return 0 }

//go:wasmexport weir_invoke
func invoke(n int32) int32 {
	b := make([]byte, n)
	input(unsafe.Pointer(&b[0]))
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		fmt.Println(err)
		return 1
	}
	out, _ := json.Marshal(word.FindAllString(fmt.Sprint(v), -1))
	output(unsafe.Pointer(&out[0]), uint32(len(out)))
	return 0
}

func main() {}
`

// buildGuest compiles guestSource once per test process.
var buildGuest = sync.OnceValues(func() ([]byte, error) { return goBuild(guestSource, "-buildmode=c-shared") })

// goBuild compiles a program of one file for WASI preview 1.
func goBuild(source string, flags ...string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "meter-guest")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	files := map[string]string{"main.go": source, "go.mod": "module guest\n\ngo 1.26\n"}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	out := filepath.Join(dir, "guest.wasm")
	cmd := exec.Command("go", append(append([]string{"build", "-trimpath"}, flags...), "-o", out, ".")...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=", "GOWORK=off")
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, &buildError{err, text}
	}
	return os.ReadFile(out)
}

// buildError is a failed go build with what it printed.
type buildError struct {
	err    error
	output []byte
}

func (e *buildError) Error() string { return e.err.Error() + "\n" + string(e.output) }

func guest(tb testing.TB) []byte {
	tb.Helper()
	b, err := buildGuest()
	require.NoError(tb, err)
	return b
}

func TestAGuestThatGoBuilds(t *testing.T) {
	b := guest(t)
	m, err := meter.Parse(b)
	require.NoError(t, err)

	exports := map[string]string{}
	for _, e := range m.Exports {
		exports[e.Name] = e.Kind.String() + " " + e.Type.String()
	}
	require.Equal(t, map[string]string{
		"memory":        "memory () -> ()",
		"_initialize":   "func () -> ()",
		"weir_abi_v1":   "func () -> ()",
		"weir_describe": "func () -> i32",
		"weir_invoke":   "func (i32) -> i32",
	}, exports)
	require.Contains(t, m.Imports, meter.Import{
		Module: "weir", Name: "output", Kind: meter.KindFunc,
		Index: importIndex(m, "output"), Type: meter.FuncType{Params: []meter.ValueType{meter.I32, meter.I32}},
	})
	require.Contains(t, m.Custom, "name")
	require.Less(t, len(m.Stripped()), len(b))
	t.Logf("%d bytes, %d functions, largest body %d, %d data segments", len(b), len(m.Functions), m.LargestBody, m.DataSegments)
}

func importIndex(m *meter.Module, name string) uint32 {
	for _, i := range m.Imports {
		if i.Name == name {
			return i.Index
		}
	}
	return ^uint32(0)
}

func BenchmarkParse(b *testing.B) {
	module := guest(b)
	b.SetBytes(int64(len(module)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := meter.Parse(module); err != nil {
			b.Fatal(err)
		}
	}
}
