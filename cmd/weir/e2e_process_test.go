package main

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/need"
)

func freeAddress(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

func atoi(t testing.TB, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	require.NoError(t, err)
	return n
}

func killProcess(t testing.TB, pid int) {
	t.Helper()
	p, err := os.FindProcess(pid)
	require.NoError(t, err)
	require.NoError(t, p.Kill())
}

// alive says whether a process is there, as a zombie, too.
func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	return err == nil && !errors.Is(p.Signal(syscall.Signal(0)), os.ErrProcessDone)
}

// TestProcessesEnd is process hygiene: however a session ends, the gateway, its
// backend and its command hosts are gone afterwards, and none stays as a zombie
// while it lasts.
func TestProcessesEnd(t *testing.T) {
	if runtime.GOOS == "windows" {
		need.Missing(t, "signals to end a process with", "run it elsewhere than on Windows")
	}
	t.Parallel()
	for _, c := range []struct {
		name string
		end  func(t *testing.T, s *rawSession, backend int)
		code int
	}{
		{"the client closes its output", func(_ *testing.T, s *rawSession, _ int) { s.in.Close() }, 0},
		{"SIGTERM", func(t *testing.T, s *rawSession, _ int) { s.signal(syscall.SIGTERM) }, 0},
		{"SIGINT", func(t *testing.T, s *rawSession, _ int) { s.signal(os.Interrupt) }, 0},
		{"SIGTERM while a call runs", func(t *testing.T, s *rawSession, _ int) {
			s.send(rpc(5, abi.ToolsCall, toolParams("wait", `{}`)))
			s.call(rpc(6, "ping", ""))
			s.signal(syscall.SIGTERM)
		}, 0},
		{"SIGKILL", func(t *testing.T, s *rawSession, _ int) { killProcess(t, s.pid) }, -1},
		{"the backend dies", func(t *testing.T, _ *rawSession, backend int) { killProcess(t, backend) }, 1},
		{"the backend dies in a call", func(_ *testing.T, s *rawSession, _ int) {
			answer := s.call(rpc(5, abi.ToolsCall, toolParams("die", `{}`)))
			require.Contains(s.t, answer, `"error"`, "never an empty success")
		}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			host := interceptorHost{Name: "guard", PIDFile: filepath.Join(dir, "pid"), Interceptors: []testInterceptor{
				{Name: "judge", Type: abi.Validation, Events: []string{"*"}},
			}}
			s := startRaw(t, gatewayCommand(t, "hosts:\n"+hostEntry("guard", host.command(t), ""), role(t, "backend", filepath.Join(dir, "notes"))), clientReplies)
			hello(s, "2025-06-18")
			answer := s.call(rpc(1, abi.ToolsCall, toolParams("pid", `{}`)))
			digits := pidText.FindStringSubmatch(answer)
			require.NotNil(t, digits, answer)
			backend, guard := atoi(t, digits[1]), readPID(t, host.PIDFile)
			require.True(t, alive(backend) && alive(guard))

			c.end(t, s, backend)
			s.wait() // with its input still open, unless that was the end
			require.Equal(t, c.code, s.code, "exit code; stderr: %s", s.errs)
			for what, pid := range map[string]int{"backend": backend, "host": guard} {
				eventually(t, what+" is gone", func() bool { return !alive(pid) })
			}
			if c.code == exitFailed {
				require.Contains(t, s.errs.String(), "backend", "the error names what ended")
			}
		})
	}
}

// TestNoZombies restarts a command host several times within one session: the
// gateway reaps each.
func TestNoZombies(t *testing.T) {
	if runtime.GOOS != "linux" {
		need.Missing(t, "/proc, where zombies are looked for", "run it on Linux")
	}
	t.Parallel()
	dir := t.TempDir()
	host := interceptorHost{Name: "guard", PIDFile: filepath.Join(dir, "pid"), Interceptors: []testInterceptor{
		{Name: "judge", Type: abi.Validation, Events: []string{abi.ToolsCall}},
	}}
	s := startRaw(t, gatewayCommand(t, "hosts:\n"+hostEntry("guard", host.command(t), ""), role(t, "backend", filepath.Join(dir, "notes"))), clientReplies)
	hello(s, "2025-06-18")
	id := 0
	for range 3 {
		eventually(t, "calls work", func() bool {
			id++
			return strings.Contains(s.call(rpc(id, abi.ToolsCall, toolParams("echo", `{"text":"hello"}`))), `"text":"hello"`)
		})
		guard := readPID(t, host.PIDFile)
		killProcess(t, guard)
		eventually(t, "the killed host is reaped", func() bool { return !alive(guard) })
	}
	children, err := os.ReadFile("/proc/" + strconv.Itoa(s.pid) + "/task/" + strconv.Itoa(s.pid) + "/children")
	if err == nil {
		for _, child := range strings.Fields(string(children)) {
			stat, _ := os.ReadFile("/proc/" + child + "/stat")
			require.NotContains(t, string(stat), ") Z ", "a zombie")
		}
	}
}

// TestServeEnds does the same for weir serve over stdio and HTTP.
func TestServeEnds(t *testing.T) {
	if runtime.GOOS == "windows" {
		need.Missing(t, "signals to end a process with", "run it elsewhere than on Windows")
	}
	t.Parallel()
	dir := onlyAllowing(t)
	t.Run("stdio", func(t *testing.T) {
		t.Parallel()
		s := startRaw(t, []string{weirBinary(t), "serve", dir}, nil)
		hello(s, "2025-06-18")
		s.end()
		require.Equal(t, 0, s.code, "%s", s.errs)
		require.Len(t, s.seen, 1, "stdout carries the protocol only")
	})
	t.Run("stdio, SIGTERM", func(t *testing.T) {
		t.Parallel()
		s := startRaw(t, []string{weirBinary(t), "serve", dir}, nil)
		hello(s, "2025-06-18")
		s.signal(syscall.SIGTERM)
		s.wait()
		require.Equal(t, 0, s.code, "%s", s.errs)
	})
	t.Run("HTTP, SIGTERM", func(t *testing.T) {
		t.Parallel()
		s := startRaw(t, []string{weirBinary(t), "serve", dir, "--http", "127.0.0.1:0"}, nil)
		eventually(t, "it serves", func() bool { return strings.Contains(s.errs.String(), `"serving"`) })
		s.signal(syscall.SIGTERM)
		s.wait()
		require.Equal(t, 0, s.code, "%s", s.errs)
		require.Empty(t, s.seen, "stdout stays empty")
	})
}

// runBinary runs the built command line to its end.
func runBinary(t testing.TB, stdin string, args ...string) output {
	t.Helper()
	var out, errs strings.Builder
	cmd := exec.CommandContext(t.Context(), weirBinary(t), args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	err := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		require.NoError(t, err)
	}
	return output{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}
