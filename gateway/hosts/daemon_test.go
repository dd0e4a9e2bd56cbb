//go:build unix

package hosts

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/internal/leak"
	"github.com/weir-mcp/weir/internal/logbook"
)

func init() { beforeServing["daemon"] = startDaemon }

// startDaemon leaves something behind that has left the group and holds on to
// all that the server wrote to.
func startDaemon() {
	daemon := exec.Command(os.Args[0])
	daemon.Env = append(os.Environ(), "WEIR_TEST_SERVER=deaf")
	daemon.Stdout, daemon.Stderr = os.Stdout, os.Stderr
	daemon.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	must(daemon.Start())
	_, _ = os.Stderr.WriteString("daemon " + strconv.Itoa(daemon.Process.Pid) + "\n")
}

var daemonLine = regexp.MustCompile(`daemon (\d+)`)

// A daemon that left its group and holds the pipes neither keeps a dead host
// alive nor holds up the end of its set.
func TestStdio_aDaemonHoldsUpNothing(t *testing.T) {
	leak.Goroutines(t, "gateway/hosts.(*Host).", "gateway/hosts.(*remote).", "gateway/hosts.Stdio.", "gateway/hosts.logLines(")
	leak.Descriptors(t)
	var log logbook.Book
	h := stdioHost(t, "daemon", Options{Logger: log.Text()})
	s := NewSet([]*Host{h}, SetOptions{})
	l, _ := s.Listings(t.Context())
	require.NoError(t, l[0].Err)
	t.Cleanup(func() {
		for _, found := range daemonLine.FindAllStringSubmatch(log.String(), -1) {
			pid, err := strconv.Atoi(found[1])
			require.NoError(t, err)
			require.NoError(t, syscall.Kill(pid, syscall.SIGKILL)) // it lives still
		}
	})
	r, err := h.Invoke(t.Context(), invocation(`{}`))
	require.NoError(t, err)
	pid, err := strconv.Atoi(string(r.Info))
	require.NoError(t, err)
	before := h.source.(*remote).current()
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	select {
	case <-before.lost:
	case <-time.After(soon):
		t.Fatal("nobody noticed that the process died")
	}
	recovered(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	require.NoError(t, s.Close(ctx))
}

// No process outlives its set, whatever state it is in.
func TestStdio_closeLeavesNoProcess(t *testing.T) {
	h := stdioHost(t, "dies", Options{})
	s := NewSet([]*Host{h}, SetOptions{})
	s.Listings(t.Context())
	r, err := h.Invoke(t.Context(), invocation(`{}`))
	require.NoError(t, err)
	pid, err := strconv.Atoi(string(r.Info))
	require.NoError(t, err)
	require.NoError(t, s.Close(t.Context()))
	require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH)
}
