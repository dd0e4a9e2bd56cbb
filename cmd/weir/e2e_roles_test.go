//lint:file-ignore SA1019 sampling, roots and logging are deprecated, and governed for as long as peers use them

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/guest"
	"github.com/weir-mcp/weir/runtime/library"
	"github.com/weir-mcp/weir/runtime/server"
)

// roles are the other programs that the end-to-end tests need, all played by
// this test binary: "cmd.test e2e:ROLE ARG…".
var roles = map[string]func(args []string) int{
	"host":    playHost,
	"tap":     playTap,
	"backend": playBackend,
	"exit":    func([]string) int { fmt.Fprintln(os.Stderr, "no licence for this server"); return 3 },
}

func roleAsked(args []string) (play func([]string) int, rest []string) {
	if len(args) < 2 {
		return nil, nil
	}
	name, asked := strings.CutPrefix(args[1], "e2e:")
	if !asked {
		return nil, nil
	}
	return roles[name], args[2:]
}

// role is the command that plays a role.
func role(t testing.TB, name string, args ...string) []string {
	t.Helper()
	require.Contains(t, roles, name)
	self, err := os.Executable()
	require.NoError(t, err)
	return append([]string{self, "e2e:" + name}, args...)
}

// A test interceptor of an [interceptorHost]. Hooks are both phases of Events.
type testInterceptor struct {
	Name     string   `json:"name"`
	Type     abi.Type `json:"type"`
	Events   []string `json:"events"`
	Priority int32    `json:"priority,omitempty"`
	// Do is what it does: a mutator's "same" answers that nothing is modified,
	// "replace" gives the same bytes back as a replacement, and "trace" appends
	// its name and host to the text at _meta, trace; a validator's "deny" says no
	// and anything else yes.
	Do string `json:"do,omitempty"`
}

// interceptorHost is an interceptor server with native interceptors, which
// writes down every call in Record, a file of [recordedCall]s.
type interceptorHost struct {
	Name         string            `json:"name"`
	HTTP         string            `json:"http,omitempty"` // an address instead of stdio
	Record       string            `json:"record,omitempty"`
	PIDFile      string            `json:"pidFile,omitempty"` // where it says which process it is
	Interceptors []testInterceptor `json:"interceptors"`
}

type recordedCall struct {
	Host, Interceptor, Event, Phase string
	Payload                         json.RawMessage
	Trace                           string
	Request                         json.RawMessage `json:",omitempty"`
}

// command plays the host.
func (h interceptorHost) command(t testing.TB) []string {
	t.Helper()
	b, err := json.Marshal(h)
	require.NoError(t, err)
	return role(t, "host", string(b))
}

func playHost(args []string) int {
	var h interceptorHost
	if err := json.Unmarshal([]byte(args[0]), &h); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	if h.PIDFile != "" {
		if err := os.WriteFile(h.PIDFile, []byte(fmt.Sprint(os.Getpid())), 0o600); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	lib := library.New(library.Options{})
	defer lib.Close(context.WithoutCancel(ctx))
	for _, i := range h.Interceptors {
		if err := lib.Register(h.native(i)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	s := server.New(lib, server.Options{Name: h.Name})
	var err error
	if h.HTTP == "" {
		err = s.ServeStdio(ctx, os.Stdin, os.Stdout)
	} else {
		mux := http.NewServeMux()
		mux.Handle("/mcp", s.Handler())
		err = http.ListenAndServe(h.HTTP, mux)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// native makes one interceptor, which writes down its calls.
func (h interceptorHost) native(i testInterceptor) library.Native {
	hooks := abi.OnBoth(i.Events...)
	switch i.Type {
	case abi.Validation:
		return library.Validator(i.Name, hooks, func(_ context.Context, inv *abi.Invocation) (library.Verdict, error) {
			if err := h.record(inv); err != nil {
				return library.Verdict{}, err
			}
			if i.Do == "deny" {
				return library.Deny("not today"), nil
			}
			return library.Allow(), nil
		})
	case abi.Sink:
		return library.Sink(i.Name, hooks, func(_ context.Context, inv *abi.Invocation) error { return h.record(inv) })
	}
	n := library.Mutator(i.Name, hooks, func(_ context.Context, inv *abi.Invocation) (json.RawMessage, error) {
		if err := h.record(inv); err != nil {
			return nil, err
		}
		switch i.Do {
		case "replace":
			return inv.Payload, nil
		case "trace":
			trace, _ := guest.GetText(inv.Payload, "_meta", "trace")
			return guest.Set(inv.Payload, guest.AppendText(nil, trace+" "+i.Name+"@"+h.Name), "_meta", "trace")
		}
		return nil, nil
	})
	n.Priority = &i.Priority
	return n
}

var recording sync.Mutex

func (h interceptorHost) record(inv *abi.Invocation) error {
	if h.Record == "" {
		return nil
	}
	recording.Lock()
	defer recording.Unlock()
	file, err := os.OpenFile(h.Record, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	trace, _ := guest.GetText(inv.Payload, "_meta", "trace")
	enc := json.NewEncoder(file)
	enc.SetEscapeHTML(false)
	return enc.Encode(recordedCall{h.Name, inv.Name, inv.Event, string(inv.Phase), inv.Payload, trace, inv.Request})
}

// recorded reads what hosts wrote down, in that order.
func recorded(t testing.TB, file string) []recordedCall {
	t.Helper()
	f, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	require.NoError(t, err)
	defer f.Close()
	var calls []recordedCall
	for dec := json.NewDecoder(f); ; {
		var c recordedCall
		err := dec.Decode(&c)
		if errors.Is(err, io.EOF) {
			return calls
		}
		require.NoError(t, err)
		calls = append(calls, c)
	}
}

// playTap runs a server, args[2:], and copies what goes in to the file args[0]
// and what comes out to args[1], byte by byte.
func playTap(args []string) int {
	in, err := os.Create(args[0])
	if err != nil {
		return 1
	}
	out, err := os.Create(args[1])
	if err != nil {
		return 1
	}
	cmd := exec.Command(args[2], args[3:]...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return 1
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return 1
	}
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	go func() {
		_, _ = io.Copy(io.MultiWriter(in, stdin), os.Stdin)
		stdin.Close()
	}()
	_, _ = io.Copy(io.MultiWriter(out, os.Stdout), stdout)
	_ = cmd.Wait()
	return 0
}

// playBackend is a small MCP server with what the others lack: a tool that runs
// until it is cancelled and says so in the file args[0], one that ends the
// process, and one that tells which process it is.
func playBackend(args []string) int {
	s := mcp.NewServer(&mcp.Implementation{Name: "e2e-backend", Version: "1"}, nil)
	text := func(s string) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
	}
	note := func(line string) {
		f, err := os.OpenFile(args[0], os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return
		}
		defer f.Close()
		fmt.Fprintln(f, line)
	}
	mcp.AddTool(s, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in struct {
		Text string `json:"text"`
	}) (*mcp.CallToolResult, any, error) {
		note("echo " + in.Text)
		return text(in.Text), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "wait"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ any) (*mcp.CallToolResult, any, error) {
		note("waiting")
		select {
		case <-ctx.Done():
			note("cancelled")
		case <-time.After(time.Minute):
			note("timeout")
		}
		return text("waited"), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "until"}, func(_ context.Context, _ *mcp.CallToolRequest, in struct {
		File string `json:"file"`
	}) (*mcp.CallToolResult, any, error) {
		note("waiting")
		for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			if _, err := os.Stat(in.File); err == nil {
				return text("it is there"), nil, nil
			}
		}
		return text("it never came"), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "roots"}, func(ctx context.Context, req *mcp.CallToolRequest, _ any) (*mcp.CallToolResult, any, error) {
		roots, err := req.Session.ListRoots(ctx, nil) //nolint:staticcheck // deprecated in 2026-07-28, in use before
		if err != nil {
			return nil, nil, err
		}
		var uris []string
		for _, root := range roots.Roots {
			uris = append(uris, root.URI)
		}
		return text(strings.Join(uris, " ")), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "pid"}, func(context.Context, *mcp.CallToolRequest, any) (*mcp.CallToolResult, any, error) {
		return text(fmt.Sprint(os.Getpid())), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "die"}, func(context.Context, *mcp.CallToolRequest, any) (*mcp.CallToolResult, any, error) {
		os.Exit(4)
		return nil, nil, nil
	})
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		return 1
	}
	return 0
}

// fileLines are the lines of a file, with their ends.
func fileLines(t testing.TB, path string) []string {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	var lines []string
	for r := bufio.NewReader(f); ; {
		line, err := r.ReadString('\n')
		if line != "" {
			lines = append(lines, line)
		}
		if err != nil {
			return lines
		}
	}
}
