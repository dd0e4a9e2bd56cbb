package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway"
	"github.com/weir-mcp/weir/gateway/hosts"
	"github.com/weir-mcp/weir/gateway/relay"
	"github.com/weir-mcp/weir/internal/wasmtest"
	"github.com/weir-mcp/weir/runtime"
	"github.com/weir-mcp/weir/runtime/library"
	"github.com/weir-mcp/weir/runtime/wazero"
)

// The processes of BenchmarkStdio, chosen by an environment variable.

// echoBackend answers every line with a result of the size of the line.
func echoBackend() {
	in := relay.Stdio(os.Stdin, os.Stdout, 1<<20)
	for {
		line, err := in.Read()
		if err != nil {
			return
		}
		if err := in.Write([]byte(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"` + strings.Repeat("x", max(1, len(line)-100)) + `"}]}}`)); err != nil {
			return
		}
	}
}

func childBackend() *gateway.Backend {
	os.Setenv(role, "echo")
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	b, err := gateway.Start(gateway.Command{Args: []string{self}})
	if err != nil {
		panic(err)
	}
	return b
}

// bareRelay copies lines between the client and an echo backend and looks at
// nothing.
func bareRelay() {
	os.Setenv(role, "echo")
	self, _ := os.Executable()
	cmd := exec.Command(self)
	childIn, in, _ := os.Pipe()
	out, childOut, _ := os.Pipe()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = childIn, childOut, os.Stderr
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	childIn.Close()
	childOut.Close()
	stdin, _ := relay.Pollable(os.Stdin)
	stdout, _ := relay.Pollable(os.Stdout)
	go func() {
		copyLines(stdin, in)
		in.Close()
	}()
	copyLines(out, stdout)
	_ = cmd.Wait()
}

func copyLines(in io.Reader, out io.Writer) {
	r := bufio.NewReaderSize(in, 64<<10)
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if err == bufio.ErrBufferFull {
			continue
		}
		if err != nil {
			return
		}
		if _, err := out.Write(line); err != nil {
			return
		}
		line = line[:0]
	}
}

func gatewayProcess(list ...*hosts.Host) {
	g, err := gateway.New(gateway.Options{ChainOptions: gateway.ChainOptions{Hosts: hosts.NewSet(list, hosts.SetOptions{}), Logger: slog.New(slog.DiscardHandler)}})
	if err != nil {
		panic(err)
	}
	if err := g.Serve(context.Background(), relay.Stdio(os.Stdin, os.Stdout, gateway.DefaultClientLimit), childBackend()); err != nil {
		panic(err)
	}
}

// governedProcess is a gateway with a folder of two small modules, a mutator
// that finds nothing to change and a validator that finds nothing wrong, on
// both phases.
func governedProcess() {
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	dir, err := os.MkdirTemp("", "weir-bench-")
	must(err)
	defer os.RemoveAll(dir)
	for typ, answer := range map[abi.Type]string{
		abi.Mutation: `{"result":{"modified":false}}`, abi.Validation: `{"result":{"valid":true}}`,
	} {
		r := wasmtest.NewReactor(abi.Descriptor{Name: string(typ), Type: typ, Hooks: abi.OnBoth(abi.ToolsCall)})
		r.Memory(4)
		r.Invoke("", wasmtest.I32(wasmtest.InputAt), wasmtest.Call(r.Input), r.Answer(answer))
		must(os.WriteFile(filepath.Join(dir, string(typ)+".wasm"), r.Bytes(), 0o600))
	}
	engine, err := wazero.New(wazero.Options{})
	must(err)
	sandbox := runtime.New(engine)
	lib, err := library.OpenFolder(context.Background(), dir, library.Options{
		Loader: library.LoaderFunc(func(ctx context.Context, name string, wasm []byte) (library.Module, error) {
			return sandbox.Load(ctx, wasm, runtime.ModuleOptions{Name: name})
		}),
	})
	must(err)
	must(lib.Ready(context.Background()))
	if n := len(lib.List()); n != 2 {
		panic(fmt.Sprintf("%d modules serve, not 2", n))
	}
	gatewayProcess(hosts.InProcess("local", lib, hosts.Options{}))
	must(lib.Close(context.Background()))
}

// BenchmarkStdio is one tools/call to an echo backend in a process of its own:
// direct, through a bare line relay, through a gateway without interceptors, and
// governed: through one with a mutator and a validator in the sandbox on both
// phases, four calls of modules in all. Each is a process too. To reach: within
// 1.5 of the bare relay without interceptors.
func BenchmarkStdio(b *testing.B) {
	for _, size := range []int{1 << 10, 64 << 10} {
		for _, as := range []struct{ name, role string }{{"direct", "echo"}, {"bare", "bare"}, {"gateway", "gateway"}, {"governed", "governed"}} {
			b.Run(fmt.Sprintf("%dKiB/%s", size>>10, as.name), func(b *testing.B) {
				b.Setenv(role, as.role)
				self, err := os.Executable()
				require.NoError(b, err)
				p, err := gateway.Start(gateway.Command{Args: []string{self}})
				require.NoError(b, err)
				request := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"` + strings.Repeat("x", size) + `"}}}`)
				b.SetBytes(int64(2 * size))
				for b.Loop() {
					require.NoError(b, p.Write(request))
					_, err := p.Read()
					require.NoError(b, err)
				}
				require.NoError(b, p.CloseWrite())
				_, err = p.Read()
				require.ErrorIs(b, err, io.EOF)
				require.NoError(b, p.Close())
			})
		}
	}
}
