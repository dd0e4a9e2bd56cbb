package hosts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/weir-mcp/weir/internal/processgroup"
	"github.com/weir-mcp/weir/internal/wire"
)

// Process is an interceptor server that is run as a command and spoken to over
// its standard input and output.
type Process struct {
	// Command is the program and its arguments; not empty.
	Command []string
	// Dir is where it runs; empty is the current folder.
	Dir string
	// Env is its whole environment, NAME=value each; see [Environment].
	Env []string
}

// Environment is what a host's command gets: PATH, HOME, LANG and TMPDIR of this
// process, and what the host's own configuration sets, which wins (config.md).
func Environment(own map[string]string) []string {
	var env []string
	for _, name := range []string{"PATH", "HOME", "LANG", "TMPDIR"} {
		if value, ok := os.LookupEnv(name); ok {
			if _, set := own[name]; !set {
				env = append(env, name+"="+value)
			}
		}
	}
	for name, value := range own {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return env
}

// Stdio is a host that is run as a command. The command starts with the first
// discovery, in a process group of its own that ends with the connection, and
// is started again when it has died and somebody asks. What it writes to its
// standard error is logged, within bounds.
func Stdio(name string, p Process, o Options) *Host {
	h := newHost(name, o)
	r := newRemote(h, o, "run its command by itself to see why")
	r.dial = func(ctx context.Context) (*connection, error) {
		run, err := h.start(p)
		if err != nil {
			return nil, err
		}
		c, err := h.open(ctx, &mcp.IOTransport{Reader: run.answers, Writer: run.stdin, MaxLineLength: -1}, run.stop)
		if err != nil {
			return nil, fmt.Errorf("%s does not answer as an MCP server: %w", p.Command[0], err)
		}
		c.stream = true
		go func() {
			select {
			case <-run.ended: // even if something that left the group holds the pipes
				c.lose()
			case <-c.lost:
			}
		}()
		return c, nil
	}
	h.source = r
	return h
}

// process is a running command.
type process struct {
	group   *processgroup.Group
	grace   time.Duration
	stdin   io.WriteCloser
	answers io.ReadCloser
	ended   chan struct{} // closed when it is gone and all that it wrote was read
}

// lastWords is how long what a command wrote may take to be read once its group
// is gone. Its pipes end then by themselves, unless something that left the
// group holds them.
const lastWords = 250 * time.Millisecond

func (h *Host) start(p Process) (*process, error) {
	if len(p.Command) == 0 {
		return nil, errors.New("has no command")
	}
	cmd := exec.Command(p.Command[0], p.Command[1:]...)
	cmd.Dir, cmd.Env = p.Dir, p.Env
	if cmd.Env == nil {
		cmd.Env = []string{} // nil would be everything
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	// Pipes of our own: those of cmd are closed when the process ends, with its
	// last answer unread.
	stdout, out, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, stdin.Close())
	}
	stderr, errOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, stdin.Close(), stdout.Close(), out.Close())
	}
	cmd.Stdout, cmd.Stderr = out, errOut
	group, err := processgroup.Start(cmd, 0)
	_ = out.Close()
	_ = errOut.Close()
	if err != nil {
		_ = stdout.Close() // a command that does not start has closed its own end
		_ = stderr.Close()
		return nil, fmt.Errorf("the command does not start: %w", err)
	}
	run := &process{group: group, grace: h.grace, stdin: stdin, ended: make(chan struct{}),
		answers: &answers{lines: wire.NewLineReader(stdout, MaxAnswer+envelopeBytes), closer: stdout, log: h.log}}
	read := make(chan struct{})
	go func() {
		logLines(h.log, stderr)
		close(read)
	}()
	go func() {
		err := group.Err()
		select {
		case <-read:
		case <-time.After(lastWords):
		}
		_ = stderr.Close()
		h.log.Debug("the command ended", "command", p.Command[0], "error", err)
		close(run.ended)
	}()
	return run, nil
}

// stop ends the process: its input ends, then it is asked to go, then it and
// all it started are killed. It returns when the process is gone.
func (p *process) stop(ctx context.Context, _ <-chan struct{}) {
	p.group.Stop(ctx, p.stdin.Close, p.grace/4, p.grace/4)
	<-p.ended
	_ = p.answers.Close()
}
