// Package readme holds a README to its word: every command in its "console"
// blocks runs as it stands, in a POSIX shell at the root of the clone, and prints
// what stands under it.
//
//	```console
//	$ go run ./examples/server -http 127.0.0.1:8420 &
//	$ go run ./cmd/weir list http://127.0.0.1:8420/mcp
//	no-deletes 1.0.0: validation, active, fails closed
//	  …
//	```
//
// A command that ends in "&" goes on until the README is done; the next one waits
// until it says "serving". Where it listens is a free port in place of the one that
// the page names. Standard output is what is compared, without what differs from
// run to run: times, references, hashes of sessions. It is for tests only, and for
// pages whose commands need Go alone, or a server from npm.
package readme

import (
	"bufio"
	"context"
	"io"
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

	"github.com/weir-mcp/weir/internal/need"
	"github.com/weir-mcp/weir/internal/processgroup"
)

// patience bounds one command. The first builds weir.
const patience = 4 * time.Minute

// command is one command of a page and what it prints.
type command struct{ line, shown string }

// Run runs the commands of dir/README.md at root, the root of the clone.
func Run(t *testing.T, root, dir string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		need.Missing(t, "a POSIX shell, whose the commands are", "run it elsewhere than on Windows")
	}
	r := runner{
		shell: need.Command(t, "sh", "install a POSIX shell"),
		root:  root,
		npx:   map[string]string{},
		ports: map[string]string{},
	}
	page, err := os.ReadFile(filepath.Join(dir, "README.md"))
	require.NoError(t, err)
	shown := 0
	for _, block := range blocks(string(page), "console") {
		commands := read(block)
		require.NotEmpty(t, commands, "a console block without a command: %s", block)
		t.Run(strings.Fields(commands[0].line)[0], func(t *testing.T) {
			r.find(t, commands)
			for _, c := range commands {
				r.run(t, c)
			}
		})
		for _, c := range commands {
			if c.shown != "" {
				shown++
			}
		}
		if t.Failed() {
			break // what follows builds on it
		}
	}
	r.stop(t)
	require.Positive(t, shown, "the page shows no output")
}

// blocks gives the fenced blocks of a language.
func blocks(page, language string) (found []string) {
	for _, part := range strings.Split(page, "```"+language+"\n")[1:] {
		block, _, _ := strings.Cut(part, "```")
		found = append(found, block)
	}
	return found
}

// read takes a block apart. A command goes on in the next line after a backslash;
// a shell takes it as it is.
func read(block string) (commands []command) {
	goesOn := false
	for line := range strings.Lines(block) {
		text, isCommand := strings.CutPrefix(line, "$ ")
		switch last := len(commands) - 1; {
		case isCommand:
			commands = append(commands, command{line: text})
		case goesOn:
			commands[last].line += line
		case last >= 0:
			commands[last].shown += line
		}
		goesOn = (isCommand || goesOn) && strings.HasSuffix(line, "\\\n")
	}
	for i := range commands {
		commands[i].line = strings.TrimSpace(commands[i].line)
	}
	return commands
}

// runner runs the commands of one page.
type runner struct {
	shell, root string
	npx         map[string]string // command of npx → what is installed
	ports       map[string]string // address on the page → one that is free
	background  []*background
}

type background struct {
	group *processgroup.Group
	read  sync.WaitGroup
}

var npxCommand = regexp.MustCompile(`npx -y @modelcontextprotocol/(server-[a-z]+)`)

// find looks for what commands need beyond Go, and skips the test without it.
func (r *runner) find(t *testing.T, commands []command) {
	t.Helper()
	for _, c := range commands {
		for _, m := range npxCommand.FindAllStringSubmatch(c.line, -1) {
			r.npx[m[0]] = strings.Join(need.NPM(t, "mcp-"+m[1]), " ")
		}
	}
}

var address = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// here is a command for this machine: free ports in place of the page's, and the
// npm packages of the tests.
func (r *runner) here(t *testing.T, line string) string {
	line = address.ReplaceAllStringFunc(line, func(a string) string {
		if r.ports[a] == "" {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			r.ports[a] = l.Addr().String()
			require.NoError(t, l.Close())
		}
		return r.ports[a]
	})
	return npxCommand.ReplaceAllStringFunc(line, func(npx string) string { return r.npx[npx] })
}

func (r *runner) run(t *testing.T, c command) {
	t.Helper()
	line := r.here(t, c.line)
	if line, ok := strings.CutSuffix(line, "&"); ok {
		r.start(t, line)
		return
	}
	var out, errs string
	for try := 1; ; try++ {
		out, errs = r.output(t, line)
		if try == tries || !tooBusy.MatchString(out) {
			break
		}
		t.Logf("once more, for this machine is busy: %s", out)
	}
	if c.shown != "" {
		require.Equal(t, lasting(r.here(t, c.shown)), lasting(out), "%s\n%s", line, errs)
	}
}

// tooBusy is what a gateway says when the deadline of a plan passes, or its modules
// are not there by then, which no page shows: on a machine that has other tests to
// run it says nothing about the command, which gets another try.
var tooBusy = regexp.MustCompile(`"reason":"(timeout|discovery_failed)"|^blocked because an interceptor `)

const tries = 4

// output is what a command prints.
func (r *runner) output(t *testing.T, line string) (out, errs string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, r.shell, "-c", line)
	cmd.Dir = r.root
	var said strings.Builder
	cmd.Stderr = &said
	printed, err := cmd.Output()
	require.NoError(t, err, "%s\n%s", line, said.String())
	return string(printed), said.String()
}

// start starts a server and waits until it serves.
func (r *runner) start(t *testing.T, line string) {
	t.Helper()
	cmd := exec.Command(r.shell, "-c", line)
	cmd.Dir = r.root
	logs, logging, err := os.Pipe()
	require.NoError(t, err)
	cmd.Stdout, cmd.Stderr = logging, logging
	group, err := processgroup.Start(cmd, time.Second)
	require.NoError(t, err)
	require.NoError(t, logging.Close())
	b := &background{group: group}
	r.background = append(r.background, b)
	serving := make(chan struct{})
	var said strings.Builder // before it serves
	b.read.Go(func() {
		defer logs.Close()
		lines := bufio.NewReader(logs)
		for {
			text, err := lines.ReadString('\n')
			said.WriteString(text)
			if err != nil {
				close(serving)
				return
			}
			if strings.Contains(text, "serving") {
				close(serving)
				_, _ = io.Copy(io.Discard, lines)
				return
			}
		}
	})
	select {
	case <-serving:
		require.Contains(t, said.String(), "serving", line)
	case <-time.After(patience):
		t.Fatalf("%s does not serve", line)
	}
}

// stop ends what goes on, the last one first.
func (r *runner) stop(t *testing.T) {
	t.Helper()
	for i := len(r.background) - 1; i >= 0; i-- {
		b := r.background[i]
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		b.group.Stop(ctx, nil, 0, 10*time.Second)
		cancel()
		b.read.Wait()
	}
}

// passing is what differs from run to run.
var passing = []struct {
	is   *regexp.Regexp
	then string
}{
	{regexp.MustCompile(`"(durationMs|ms)":[\d.]+`), `"$1":0`},
	{regexp.MustCompile(`(reference":"|reference )[A-Z2-7]{26}`), `$1…`},
	{regexp.MustCompile(`"session":"[0-9a-f]+"`), `"session":"…"`},
	{regexp.MustCompile(`"time":"[^"]+"`), `"time":"…"`},
	{regexp.MustCompile(`([bB]ytes\\?":)\d+`), `${1}0`}, // what go-sdk says in _meta is counted, too
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), `127.0.0.1:0`},
}

// lasting is a text without what differs from run to run.
func lasting(text string) string {
	for _, p := range passing {
		text = p.is.ReplaceAllString(text, p.then)
	}
	return text
}
