//go:build unix

package processgroup_test

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/internal/processgroup"
)

const outer = 20 * time.Second // an outer bound, never a measure

// running is a shell script under a group, with its output as a pipe of our own
// and its first line read: it is known to run.
type running struct {
	*processgroup.Group
	cmd   *exec.Cmd
	stdin io.Closer
	out   *bufio.Reader
	first string
}

func start(t *testing.T, linger time.Duration, script string) *running {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { r.Close() })
	cmd.Stdout = w
	g, err := processgroup.Start(cmd, linger)
	require.NoError(t, w.Close())
	require.NoError(t, err)
	t.Cleanup(func() { g.Stop(context.Background(), nil, 0, 0) })
	require.NoError(t, r.SetReadDeadline(time.Now().Add(outer)))
	run := &running{Group: g, cmd: cmd, stdin: stdin, out: bufio.NewReader(r)}
	line, err := run.out.ReadString('\n')
	require.NoError(t, err)
	run.first = strings.TrimSpace(line)
	return run
}

// rest is what comes until nobody holds the output open any more: until the
// whole group is dead.
func (r *running) rest(t *testing.T) string {
	t.Helper()
	text, err := io.ReadAll(r.out)
	require.NoError(t, err)
	return string(text)
}

func within(t *testing.T, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(outer):
		t.Fatal("it does not end")
	}
}

func TestStop(t *testing.T) {
	for name, c := range map[string]struct {
		script          string
		leave, patience time.Duration
		want            string
	}{
		"it goes when its input ends":             {"echo up; cat; exit 3", outer, outer, "exit status 3"},
		"it goes when it is asked":                {"echo up; sleep 3600", time.Millisecond, outer, "signal: terminated"},
		"it is asked at once without leave":       {"echo up; sleep 3600", 0, outer, "signal: terminated"},
		"it hears nothing":                        {"trap '' TERM; echo up; while :; do sleep 3600; done", 0, time.Millisecond, "signal: killed"},
		"it leaves children behind that held out": {"trap '' TERM; sleep 3600 & echo up; cat; exit 4", outer, outer, "exit status 4"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, time.Hour, c.script)
			r.Stop(context.Background(), r.stdin.Close, c.leave, c.patience)
			within(t, r.Exited())
			within(t, r.Gone())
			require.EqualError(t, r.Err(), c.want)
			require.Empty(t, r.rest(t), "the group died whole")
			r.Stop(context.Background(), nil, outer, outer) // again
		})
	}
	t.Run("the end of the context cuts the waits short", func(t *testing.T) {
		t.Parallel()
		r := start(t, time.Hour, "trap '' TERM; echo up; while :; do sleep 3600; done")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r.Stop(ctx, nil, time.Hour, time.Hour)
		require.EqualError(t, r.Err(), "signal: killed")
	})
}

// What a command leaves behind is heard for a while and killed then, though
// nobody stops the group.
func TestLinger(t *testing.T) {
	t.Run("is heard", func(t *testing.T) {
		t.Parallel()
		r := start(t, outer, "exec 3<&0; echo up; (read word <&3; echo $word) & exit 0")
		within(t, r.Exited())
		_, err := io.WriteString(r.stdin.(io.Writer), "late\n")
		require.NoError(t, err)
		require.Equal(t, "late\n", r.rest(t))
		select {
		case <-r.Gone():
			t.Fatal("reaped before its time")
		default:
		}
		r.Stop(context.Background(), nil, 0, 0)
		require.NoError(t, r.Err())
	})
	t.Run("and no longer", func(t *testing.T) {
		t.Parallel()
		r := start(t, time.Millisecond, "sleep 3600 & echo up; exit 0")
		within(t, r.Gone())
		require.Empty(t, r.rest(t))
	})
}

// The command's id stays its own until its group has been killed, and is given
// back then: no zombie stays.
func TestReapedLast(t *testing.T) {
	r := start(t, outer, "echo $$; exit 0")
	within(t, r.Exited())
	pid := r.cmd.Process.Pid
	require.Nil(t, r.cmd.ProcessState)
	require.NoError(t, syscall.Kill(pid, 0), "a zombie holds the id")
	r.Stop(context.Background(), nil, 0, 0)
	require.NotNil(t, r.cmd.ProcessState)
	require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH, "reaped")
	r.Stop(context.Background(), nil, 0, 0) // reaches nobody
}

func TestStartFails(t *testing.T) {
	_, err := processgroup.Start(exec.Command("./no-such-program"), 0)
	require.Error(t, err)
}
