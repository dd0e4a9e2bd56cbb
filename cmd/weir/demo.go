package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/weir-mcp/weir/gateway"
	"github.com/weir-mcp/weir/gateway/relay"
	"github.com/weir-mcp/weir/internal/config"
	"github.com/weir-mcp/weir/internal/guestbuild"
)

// demoNPM is the backend of the demo where npm is at hand: nobody here wrote
// it.
const demoNPM = "@modelcontextprotocol/server-filesystem@2026.8.31"

// demoConnect bounds how long a backend may take to answer the first message:
// npm may have to fetch it.
const demoConnect = 2 * time.Minute

func newDemo(std streams) *cobra.Command {
	var serveAfter bool
	var addr string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "See the whole thing work, from a fresh clone with only Go installed",
		Long: "demo builds the example modules, starts a second interceptor server, puts the gateway in front of a real MCP server\n" +
			"and sends a few calls through it. It needs a clone of the project and the go command.",
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !serveAfter {
				if cmd.Flags().Changed("http") {
					return usagef("--http is the address of --serve; give both")
				}
				return withDemo(cmd.Context(), std, func(h *demoHouse) error { return h.tour(cmd.Context(), std) })
			}
			file, err := settings("", config.Flags{HTTP: &addr})
			if err != nil {
				return err
			}
			f, err := openFront(newLogger(std.err, slog.LevelInfo), file, nil)
			if err != nil {
				return err
			}
			defer f.close()
			return withDemo(cmd.Context(), std, func(h *demoHouse) error { return h.serve(cmd.Context(), std, file, f) })
		},
	}
	cmd.Flags().BoolVar(&serveAfter, "serve", false, "serve the example modules over HTTP and say how to put a gateway on them")
	cmd.Flags().StringVar(&addr, "http", "127.0.0.1:8414", "the address of --serve")
	return cmd
}

// demoModules are the examples that run in the folder host.
var demoModules = []string{"pii-redactor", "secret-scanner", "audit-trail"}

// demoHouse is the folder that the demo plays in.
type demoHouse struct {
	dir     string
	modules string // the folder of modules
	files   string // the folder that the backend serves
	config  string // weir.yaml
}

// withDemo builds the demo's folder, uses it and takes it away again.
func withDemo(ctx context.Context, std streams, use func(*demoHouse) error) error {
	// Whoever stops reading (weir demo | head) must not leave the folder behind:
	// with this, writing to nobody is an error instead of the end.
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)
	defer signal.Stop(pipes)
	house, err := buildDemo(ctx, std)
	if err != nil {
		return err
	}
	defer house.remove()
	return use(house)
}

// buildDemo builds the examples from source.
func buildDemo(ctx context.Context, std streams) (house *demoHouse, err error) {
	if _, err := exec.LookPath("go"); err != nil {
		return nil, usagef("weir demo builds its interceptors from source and needs the go command: install Go 1.26 from go.dev")
	}
	if err := exec.CommandContext(ctx, "go", "list", guestbuild.Module+"/examples").Run(); err != nil {
		return nil, usagef("weir demo builds its interceptors from source: clone the repository of %s and run it inside the clone", guestbuild.Module)
	}
	dir, err := os.MkdirTemp("", "weir-demo-")
	if err != nil {
		return nil, err
	}
	// Servers resolve links, and the paths of the demo are compared with theirs.
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	h := &demoHouse{dir: dir, modules: filepath.Join(dir, "interceptors"), files: filepath.Join(dir, "files"), config: filepath.Join(dir, "weir.yaml")}
	defer func() {
		if err != nil {
			h.remove()
		}
	}()
	for _, sub := range []string{h.modules, h.files} {
		if err := os.Mkdir(sub, 0o700); err != nil {
			return nil, err
		}
	}
	fmt.Fprintln(std.out, "Building the example modules from source; the first time takes a moment …")
	for _, name := range demoModules {
		wasm, err := guestbuild.Bytes(ctx, guestbuild.Module+"/examples/"+name)
		if err != nil {
			return nil, fmt.Errorf("building examples/%s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(h.modules, name+".wasm"), wasm, 0o600); err != nil {
			return nil, err
		}
		fmt.Fprintf(std.out, "  %s.wasm  %.1f MB\n", name, float64(len(wasm))/1e6)
	}
	native := filepath.Join(dir, "native-host")
	if runtime.GOOS == "windows" {
		native += ".exe"
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", native, guestbuild.Module+"/examples/native-host")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // whatever it says there, a C compiler is not needed
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building examples/native-host: %w\n%s", err, out)
	}
	return h, h.writeConfig(native)
}

func (h *demoHouse) writeConfig(native string) error {
	command, err := json.Marshal(native)
	if err != nil {
		return err
	}
	return os.WriteFile(h.config, fmt.Appendf(nil, `version: 1
hosts:
  - {name: local, modules: ./interceptors}
  - {name: team, command: [%s]}
`, command), 0o600)
}

func (h *demoHouse) remove() { _ = os.RemoveAll(h.dir) }

// tour sends the demo's calls through a gateway and tells what happens.
func (h *demoHouse) tour(ctx context.Context, std streams) error {
	tale := &demoTale{out: std.out, hide: h.files + string(filepath.Separator)}
	file, err := loadConfig(h.config)
	if err != nil {
		return err
	}
	log := newLogger(std.err, slog.LevelWarn)
	a, err := assemble(ctx, std, log, file)
	if err != nil {
		return err
	}
	defer a.close(ctx)
	options := gatewayOptions(slog.New(slog.DiscardHandler), a, file)
	options.Observers = []gateway.Observer{{Decided: tale.decided}}
	g, err := gateway.New(options)
	if err != nil {
		return err
	}
	defer g.Close(context.WithoutCancel(ctx))
	if err := awaitReady(ctx, g); err != nil {
		return err
	}
	session, err := h.connect(ctx, std, g, tale)
	if err != nil {
		return err
	}
	defer session.Close()

	tale.setting(session.InitializeResult().ServerInfo.Name)
	for _, call := range demoCalls {
		if call.before != nil {
			if err := call.before(h.files); err != nil {
				return err
			}
		}
		arguments := map[string]any{}
		for name, value := range call.arguments {
			if name == "path" {
				value = filepath.Join(h.files, value)
			}
			arguments[name] = value
		}
		tale.begin(call.title, call.tool, arguments)
		result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: call.tool, Arguments: arguments})
		tale.end(result, err)
	}
	tale.howToGoOn()
	return nil
}

// demoLoad bounds the first compilation of the modules, on a slow machine too.
const demoLoad = 3 * time.Minute

// awaitReady waits until every host is listed. A gateway that serves would block
// what they guard meanwhile; a demo has time.
func awaitReady(ctx context.Context, g *gateway.Gateway) error {
	ctx, cancel := context.WithTimeout(ctx, demoLoad)
	defer cancel()
	for {
		err := g.Ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
	}
}

// connect starts a backend behind the gateway, npm's where it can be had, and
// connects a client to the gateway's other side.
func (h *demoHouse) connect(ctx context.Context, std streams, g *gateway.Gateway, tale *demoTale) (*mcp.ClientSession, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	embedded := []string{self, "demo-backend", h.files}
	npx, err := exec.LookPath("npx")
	if err != nil {
		fmt.Fprintln(std.out, "npm is not here, so the backend is a small MCP server inside weir.")
		return h.session(ctx, g, tale, embedded)
	}
	session, err := h.session(ctx, g, tale, []string{npx, "-y", demoNPM, h.files})
	if err == nil || ctx.Err() != nil {
		return session, err
	}
	fmt.Fprintf(std.out, "npm is here, but %s does not start (%v), so the backend is a small MCP server inside weir.\n", demoNPM, err)
	return h.session(ctx, g, tale, embedded)
}

// session is a client's session through the gateway to a backend.
func (h *demoHouse) session(ctx context.Context, g *gateway.Gateway, tale *demoTale, command []string) (*mcp.ClientSession, error) {
	backend, err := gateway.Start(gateway.Command{Args: command, Stderr: io.Discard})
	if err != nil {
		return nil, err
	}
	toGateway, fromClient := io.Pipe()
	toClient, fromGateway := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- g.Serve(ctx, relay.Lines(toGateway, fromGateway, gateway.DefaultClientLimit), tale.watch(backend))
	}()
	client := mcp.NewClient(&mcp.Implementation{Name: "weir-demo", Version: buildVersion()}, nil)
	patience, cancel := context.WithTimeout(ctx, demoConnect)
	defer cancel()
	session, err := client.Connect(patience, &mcp.IOTransport{Reader: toClient, Writer: fromClient}, nil)
	if err != nil {
		_ = fromClient.Close()
		return nil, errors.Join(err, <-ended)
	}
	return session, nil
}

// serve leaves the modules running as an interceptor server over HTTP.
func (h *demoHouse) serve(ctx context.Context, std streams, file *config.File, f *front) error {
	fmt.Fprintf(std.out, `
The example modules are served at %s until you press Ctrl-C.
See what they offer:

  weir list %[1]s

Put a gateway that asks them in front of a server, in your MCP client's configuration:

  {"mcpServers": {"governed-files": {"command": "weir", "args": [
    "gateway", "--hosts", "%[1]s", "--",
    "npx", "-y", "@modelcontextprotocol/server-filesystem", "."]}}}

"go install ./cmd/weir" installs weir into "$(go env GOPATH)/bin"; a client that does not have that
in its PATH wants the whole path as its command.

`, f.endpoint())
	return serveFolder(ctx, std, newLogger(std.err, slog.LevelInfo), file, h.modules, f)
}

// demoCall is one call of the tour.
type demoCall struct {
	title     string
	tool      string
	arguments map[string]string
	before    func(files string) error
}

// demoCalls are made up so that each shows one thing. The key and the card are
// the well-known examples of their issuers; the key is put together here so
// that nobody's scanner takes this file for a leak.
var demoCalls = []demoCall{
	{
		title: "A payment card and an e-mail address on their way to a file: redacted before the server sees them",
		tool:  "write_file",
		arguments: map[string]string{
			"path": "order.txt", "content": "Card 4111 1111 1111 1111, receipt to ann@example.com",
		},
	},
	{
		title: "A cloud key on its way out: refused before the server sees anything",
		tool:  "write_file",
		arguments: map[string]string{
			"path": "deploy.txt", "content": "aws_access_key_id = " + strings.Join([]string{"AKIA", "IOSFODNN7", "EXAMPLE"}, ""),
		},
	},
	{
		title:     "A file that holds an e-mail address: read as ever, and it comes back without it",
		tool:      "read_text_file",
		arguments: map[string]string{"path": "contacts.txt"},
		before: func(files string) error {
			return os.WriteFile(filepath.Join(files, "contacts.txt"), []byte("Bob, bob@example.org, room 12"), 0o600)
		},
	},
	{
		title:     "A script that the other team's interceptor server denies",
		tool:      "write_file",
		arguments: map[string]string{"path": "clean.sh", "content": "rm -rf /"},
	},
}
