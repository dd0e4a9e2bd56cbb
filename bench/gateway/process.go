package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"github.com/weir-mcp/weir/bench/guests"
	"github.com/weir-mcp/weir/internal/processgroup"
)

// bench is what all rows share.
type bench struct {
	ctx context.Context
	// self is this program and weir the one that is measured.
	self, weir string
	env        []string
	// modules are the folders of the modules, by the names of their hosts.
	modules map[string]string
	// httpBackend is the URL of the backend that all rows over HTTP share.
	httpBackend string
	ends        []func()
}

func newBench(ctx context.Context, dir string, s size) (*bench, error) {
	b := &bench{ctx: ctx, weir: s.binary, modules: map[string]string{}}
	if err := b.prepare(dir); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

// prepare builds what is measured, and starts the backend that all share.
func (b *bench) prepare(dir string) (err error) {
	if b.self, err = os.Executable(); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "weir-bench-gateway-")
	if err != nil {
		return err
	}
	b.atEnd(func() { _ = os.RemoveAll(tmp) })
	// What weir compiles is kept for the other rows, and not beyond.
	b.env = append(os.Environ(), "XDG_CACHE_HOME="+filepath.Join(tmp, "cache"), "HOME="+tmp)
	if b.weir == "" {
		b.weir = filepath.Join(tmp, "weir")
		build := exec.CommandContext(b.ctx, "go", "build", "-o", b.weir, "./cmd/weir")
		build.Dir = filepath.Join(dir, "..")
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("building weir: %w\n%s", err, out)
		}
	}
	built, err := guests.Build(b.ctx, dir, guests.GoSDK, guests.GoBytes, guests.Rust, guests.C)
	if err != nil {
		return err
	}
	for i, g := range built {
		folder := filepath.Join(tmp, hosts[i])
		if err := os.Mkdir(folder, 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, "redact.wasm"), g.Weir, 0o600); err != nil {
			return err
		}
		b.modules[hosts[i]] = folder
	}
	b.httpBackend, err = b.serve(b.self, "role:http-backend")
	return err
}

// hosts are the hosts of the modules, in the order in which these are built. They
// all bear the same name, and so cannot be in one folder.
var hosts = []string{"sdk", "go", "rust", "c"}

func (b *bench) atEnd(f func()) { b.ends = append(b.ends, f) }

func (b *bench) close() {
	for i := len(b.ends) - 1; i >= 0; i-- {
		b.ends[i]()
	}
}

// pipe starts a process that speaks on its standard input and output.
func (b *bench) pipe(command ...string) (caller, error) {
	in, out, _, err := b.start(command)
	if err != nil {
		return nil, err
	}
	return &stdioCaller{in: in, lines: &lines{r: out}}, nil
}

// serve starts a process that serves HTTP and gives its URL, once it says so.
func (b *bench) serve(command ...string) (string, error) {
	_, _, said, err := b.start(command)
	if err != nil {
		return "", err
	}
	select {
	case url := <-said.url:
		return url, nil
	case <-time.After(time.Minute):
		return "", fmt.Errorf("%q does not say where it serves: %s", command, said)
	case <-b.ctx.Done():
		return "", b.ctx.Err()
	}
}

func (b *bench) start(command []string) (in, out *os.File, said *stderr, err error) {
	cmd := exec.Command(command[0], command[1:]...)
	said = &stderr{url: make(chan string, 1)}
	cmd.Env, cmd.Stderr, cmd.WaitDelay = b.env, said, time.Second
	theirs, in, err := os.Pipe()
	if err != nil {
		return nil, nil, nil, err
	}
	defer theirs.Close()
	out, their, err := os.Pipe()
	if err != nil {
		in.Close()
		return nil, nil, nil, err
	}
	defer their.Close()
	cmd.Stdin, cmd.Stdout = theirs, their
	group, err := processgroup.Start(cmd, 0)
	if err != nil {
		in.Close()
		out.Close()
		return nil, nil, nil, err
	}
	b.atEnd(func() {
		group.Stop(context.Background(), in.Close, 200*time.Millisecond, 2*time.Second)
		out.Close()
	})
	return in, out, said, nil
}

// stderr keeps what a process says first, and looks for where it serves.
type stderr struct {
	url  chan string
	mu   sync.Mutex
	text []byte
	done bool
}

var serving = regexp.MustCompile(`http://127\.0\.0\.1:\d+/mcp`)

// keptText is how much of what a process says is kept.
const keptText = 16 << 10

func (s *stderr) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = append(s.text, p[:min(len(p), keptText-len(s.text))]...)
	if url := serving.Find(s.text); url != nil && !s.done && bytes.Contains(s.text, []byte("serving")) {
		s.url <- string(url)
		s.done = true
	}
	return len(p), nil
}

func (s *stderr) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.text)
}
