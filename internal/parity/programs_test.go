package parity

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/internal/guestbuild"
)

// patience is the outer bound of everything that is waited for.
const patience = time.Minute

var built struct {
	dir string
	mu  sync.Mutex
	of  map[string]string
}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "weir-parity-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	built.dir, built.of = dir, map[string]string{}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// program builds a main package, once, and gives the binary.
func program(t testing.TB, pkg string) string {
	t.Helper()
	built.mu.Lock()
	defer built.mu.Unlock()
	if path := built.of[pkg]; path != "" {
		return path
	}
	path := filepath.Join(built.dir, filepath.Base(pkg))
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	out, err := exec.Command("go", "build", "-o", path, pkg).CombinedOutput()
	require.NoError(t, err, "%s", out)
	built.of[pkg] = path
	return path
}

func weir(t testing.TB) string { return program(t, "github.com/weir-mcp/weir/cmd/weir") }

// everything is the conformance server of the go-sdk, which speaks stdio, or
// HTTP with -http.
func everything(t testing.TB) string {
	return program(t, "github.com/modelcontextprotocol/go-sdk/conformance/everything-server")
}

// running is a program that was started and is killed with its test.
type running struct {
	cmd  *exec.Cmd
	errs *buffer
	gone chan struct{}
}

func start(t testing.TB, cmd *exec.Cmd) *running {
	t.Helper()
	r := &running{cmd: cmd, errs: &buffer{}, gone: make(chan struct{})}
	cmd.Stderr = r.errs
	require.NoError(t, cmd.Start())
	go func() {
		defer close(r.gone)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		r.kill()
		if t.Failed() {
			t.Logf("stderr of %v:\n%.20000s", cmd.Args, r.errs)
		}
	})
	return r
}

// kill ends the program. A gateway is asked first, as it has processes of its
// own to end.
func (r *running) kill() {
	_ = r.cmd.Process.Signal(os.Interrupt)
	select {
	case <-r.gone:
	case <-time.After(patience / 2):
	}
	_ = r.cmd.Process.Kill()
	<-r.gone
}

// listening starts a program that is told its address and gives that, once
// something listens there.
func listening(t testing.TB, command func(host, port string) *exec.Cmd) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address = l.Addr().String()
	require.NoError(t, l.Close())
	host, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	r := start(t, command(host, port))
	eventually(t, fmt.Sprintf("%v listens", r.cmd.Args), func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return address
}

// everythingOverHTTP gives the URL of an everything-server of the go-sdk.
func everythingOverHTTP(t testing.TB, more ...string) string {
	t.Helper()
	return "http://" + listening(t, func(host, port string) *exec.Cmd {
		return exec.Command(everything(t), append([]string{"-http", net.JoinHostPort(host, port)}, more...)...)
	})
}

// A chain is a part of weir.yaml, empty for none.
type chain string

// allowing is the chain that sees everything and changes nothing.
func allowing(t testing.TB) chain {
	t.Helper()
	return chain("hosts:\n  - {name: local, modules: " + quoted(folder(t, "internal/parity/allowing")) + "}\n")
}

// denying is the one that refuses calls of a tool.
func denying(t testing.TB, tool string) chain {
	t.Helper()
	return chain("hosts:\n  - {name: local, modules: " + quoted(folder(t, "guest/internal/denytools")) + "}\n" +
		"interceptors:\n  - {interceptor: deny-tools, config: {deny: [" + quoted(tool) + "]}}\n")
}

func quoted(s string) string { return fmt.Sprintf("%q", s) }

var compiled sync.Map // of package paths whose modules are in weir's cache

// folder builds a guest of this repository and gives a folder with it alone. It
// has it compiled once, into weir's cache: a governed message waits for modules
// that are loading, but not for as long as compiling may take on a busy machine.
func folder(t testing.TB, pkg string) string {
	t.Helper()
	dir := t.TempDir()
	_, err := guestbuild.Copy(t.Context(), "github.com/weir-mcp/weir/"+pkg, filepath.Join(dir, "guest.wasm"))
	require.NoError(t, err)
	once, _ := compiled.LoadOrStore(pkg, &sync.Once{})
	once.(*sync.Once).Do(func() {
		out, err := exec.Command(weir(t), "list", dir).CombinedOutput()
		require.NoError(t, err, "%s", out)
	})
	return dir
}

// gateway is the command of a gateway on stdio; backend is a URL, or a command.
func gateway(t testing.TB, c chain, backend ...string) []string {
	t.Helper()
	command := []string{weir(t), "gateway"}
	if c != "" {
		conf := filepath.Join(t.TempDir(), "weir.yaml")
		require.NoError(t, os.WriteFile(conf, []byte("version: 1\n"+string(c)), 0o600))
		command = append(command, "--config", conf)
	}
	if len(backend) == 1 && strings.HasPrefix(backend[0], "http://") {
		return append(command, "--backend", backend[0])
	}
	return append(append(command, "--"), backend...)
}

var servesAt = regexp.MustCompile(`http://127\.0\.0\.1:\d+/mcp`)

// gatewayOverHTTP starts one and gives its URL.
func gatewayOverHTTP(t testing.TB, c chain, backend ...string) (url string, r *running) {
	t.Helper()
	command := gateway(t, c, backend...)
	command = append([]string{command[0], command[1], "--http", "127.0.0.1:0"}, command[2:]...)
	r = start(t, exec.Command(command[0], command[1:]...))
	eventually(t, "the gateway serves", func() bool {
		url = servesAt.FindString(r.errs.String())
		return url != ""
	})
	return url, r
}

// eventually waits for what only polling can see.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in %v: %s", patience, what)
		}
	}
}

// buffer is a strings.Builder that goroutines may share.
type buffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
