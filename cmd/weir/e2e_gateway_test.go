package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/wasmtest"
)

// patience is the outer bound of everything that is waited for.
const patience = time.Minute

// eventually waits for something that only polling can see, such as a file or
// a process.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in %v: %s", patience, what)
		}
	}
}

// write makes a file in a new folder, or in dir, and returns its path.
func write(t testing.TB, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// hostEntry is a host of a weir.yaml, as YAML flow.
func hostEntry(name string, command []string, more string) string {
	b, _ := json.Marshal(command)
	return fmt.Sprintf("  - {name: %s, command: %s%s}\n", name, b, more)
}

// modulesEntry is a folder host.
func modulesEntry(name, dir string) string {
	return fmt.Sprintf("  - {name: %s, modules: %q}\n", name, dir)
}

// gatewayCommand is the built gateway with a configuration (none when empty) in
// front of a backend.
func gatewayCommand(t testing.TB, conf string, backend []string) []string {
	t.Helper()
	command := []string{weirBinary(t), "gateway"}
	if conf != "" {
		command = append(command, "--config", write(t, t.TempDir(), "weir.yaml", "version: 1\n"+conf))
	}
	return append(append(command, "--"), backend...)
}

// everything is the hooks of both phases of all events.
var everything = abi.OnBoth("*")

// onlyAllowing is the modules of a folder that let everything pass as it is: a
// validator, a mutator that says so, and a sink.
func onlyAllowing(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	answers := map[abi.Type]string{
		abi.Validation: `{"result":{"valid":true}}`,
		abi.Mutation:   `{"result":{"modified":false}}`,
		abi.Sink:       `{"result":{"recorded":true}}`,
	}
	for typ, answer := range answers {
		writeModule(t, dir, "allowing-"+string(typ), abi.Descriptor{Name: "wasm-" + string(typ), Type: typ, Hooks: everything}, answer)
	}
	return dir
}

// writeModule assembles a module that always gives one answer. It is put into
// place in one step, as a careful operator does.
func writeModule(t testing.TB, dir, name string, d abi.Descriptor, answer string) string {
	t.Helper()
	return placeModule(t, dir, name, answering(d, answer))
}

func answering(d abi.Descriptor, answer string) []byte {
	r := wasmtest.NewReactor(d)
	r.Invoke("", r.Answer(answer))
	return r.Bytes()
}

func placeModule(t testing.TB, dir, name string, wasm []byte) string {
	t.Helper()
	path := filepath.Join(dir, name+".wasm")
	fresh := filepath.Join(dir, "."+name+".new")
	require.NoError(t, os.WriteFile(fresh, wasm, 0o600))
	require.NoError(t, os.Rename(fresh, path))
	return path
}

// params is the params of a tools/call as JSON.
func toolParams(tool, arguments string) string {
	return fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, arguments)
}

// rpc is a request.
func rpc(id any, method, params string) string {
	if params == "" {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"method":%q}`, id, method)
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"method":%q,"params":%s}`, id, method, params)
}

// initialized is what a client with all capabilities says first.
func initialize(version string) string {
	return rpc(0, "initialize", `{"protocolVersion":"`+version+`","capabilities":{"roots":{"listChanged":true},"sampling":{},"elicitation":{"form":{},"url":{}}},"clientInfo":{"name":"raw","version":"0"}}`)
}

const initializedNote = `{"jsonrpc":"2.0","method":"notifications/initialized"}`

// long is a string of JSON's text that needs no escape, longer than any buffer.
func long(n int) string { return strings.Repeat("weir ", n/5+1) }
