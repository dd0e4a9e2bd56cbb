package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-mcp/weir/gateway/relay"
	"github.com/weir-mcp/weir/internal/processgroup"
)

// Command is a backend to run over stdio.
type Command struct {
	// Args is the program and its arguments; not empty.
	Args []string
	// Dir is where it runs; empty is the current folder.
	Dir string
	// Hide are the names of environment variables that it does not inherit
	// (config.md: those that the configuration expands or names).
	Hide []string
	// Env is set on top of what it inherits, and wins over Hide.
	Env map[string]string
	// Stderr takes its standard error. Nil is this process's own.
	Stderr io.Writer
	// Limit bounds a message of the backend, in bytes. 0 means
	// [DefaultBackendLimit].
	Limit int
	// Patience is how long the backend gets between SIGTERM and SIGKILL. 0 means
	// 2 s.
	Patience time.Duration
}

// linger is how long processes that a backend leaves behind keep its output
// open, once it has ended.
const linger = time.Second

// Backend is a running backend. It is the [relay.End] that leads to it. It runs
// in a process group of its own, which ends with it: Ctrl-C on a terminal does
// not reach it, but drains the gateway first.
type Backend struct {
	*relay.LineEnd
	args     []string
	cmd      *exec.Cmd
	group    *processgroup.Group
	patience time.Duration
	stop     sync.Once
	stopErr  error
}

// Start runs the command. The error names it.
func Start(c Command) (*Backend, error) {
	if len(c.Args) == 0 {
		return nil, errors.New("the backend's command is empty")
	}
	if c.Limit <= 0 {
		c.Limit = DefaultBackendLimit
	}
	if c.Patience <= 0 {
		c.Patience = 2 * time.Second
	}
	if c.Stderr == nil {
		c.Stderr = os.Stderr
	}
	b := &Backend{args: c.Args, patience: c.Patience}
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	cmd.Dir, cmd.Stderr, cmd.Env, cmd.WaitDelay = c.Dir, c.Stderr, environment(os.Environ(), c.Hide, c.Env), linger

	stdin, ours, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("backend %s: %w", b, err)
	}
	out, stdout, err := os.Pipe()
	if err != nil {
		stdin.Close()
		ours.Close()
		return nil, fmt.Errorf("backend %s: %w", b, err)
	}
	cmd.Stdin, cmd.Stdout = stdin, stdout
	b.group, err = processgroup.Start(cmd, linger/2)
	stdin.Close()
	stdout.Close()
	if err != nil {
		ours.Close()
		out.Close()
		return nil, fmt.Errorf("backend %s does not start: %w", b, err)
	}
	b.cmd = cmd
	b.LineEnd = relay.Lines(&output{File: out, exited: b.group.Exited()}, ours, c.Limit)
	go func() {
		<-b.group.Exited()
		// A reader that waits now gets what is still to come, but not for ever.
		_ = out.SetReadDeadline(time.Now().Add(linger))
	}()
	return b, nil
}

// environment is env without the hidden names, and with what is set on top.
func environment(env, hide []string, own map[string]string) []string {
	hidden := make(map[string]bool, len(hide)+len(own))
	for _, name := range hide {
		hidden[foldName(name)] = true
	}
	for name := range own {
		hidden[foldName(name)] = true
	}
	kept := make([]string, 0, len(env)+len(own))
	for _, entry := range env {
		name, _, _ := strings.Cut(entry, "=")
		if !hidden[foldName(name)] {
			kept = append(kept, entry)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(own)) {
		kept = append(kept, name+"="+own[name])
	}
	return kept
}

func foldName(name string) string {
	if runtime.GOOS == "windows" {
		return strings.ToUpper(name)
	}
	return name
}

// String is the command for messages.
func (b *Backend) String() string { return fmt.Sprintf("%q", strings.Join(b.args, " ")) }

// output is the backend's standard output. Once the backend has ended it ends
// where nothing more comes, even if somebody else still holds it open.
type output struct {
	*os.File
	exited <-chan struct{}
}

func (o *output) Read(p []byte) (int, error) {
	select {
	case <-o.exited:
		_ = o.SetReadDeadline(time.Now().Add(linger))
	default:
	}
	n, err := o.File.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = io.EOF
	}
	return n, err
}

// status says how the process ended, or that it has not.
func (b *Backend) status() string {
	select {
	case <-b.group.Gone():
		return b.cmd.ProcessState.String()
	case <-time.After(linger):
		return "still running"
	}
}

// Close ends the backend and all that it started: its input is closed, then it
// is told to terminate, then it is killed. It returns when it has ended.
func (b *Backend) Close() error {
	b.stop.Do(func() {
		b.group.Stop(context.Background(), b.CloseWrite, 0, b.patience)
		b.stopErr = b.LineEnd.Close()
	})
	return b.stopErr
}

var _ relay.End = (*Backend)(nil)
