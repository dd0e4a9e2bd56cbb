package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/internal/wire"
)

// rawSession speaks to an MCP server over its stdio in raw lines and writes
// down every line that comes back, so that two runs can be compared byte by
// byte. What the server asks for is answered from replies, by method.
type rawSession struct {
	t       testing.TB
	cmd     *exec.Cmd
	in      io.WriteCloser
	lines   chan string
	replies map[string]string // method → result, as spelled
	sent    []string
	seen    []string
	errs    *buffer
	pid     int
	code    int // once it has ended
	killed  bool
	ended   sync.Once
}

func startRaw(t testing.TB, command []string, replies map[string]string, env ...string) *rawSession {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), env...)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	s := &rawSession{t: t, cmd: cmd, in: in, lines: make(chan string, 1024), replies: replies, errs: &buffer{}}
	cmd.Stderr = s.errs
	require.NoError(t, cmd.Start())
	s.pid = cmd.Process.Pid
	go func() {
		defer close(s.lines)
		r := bufio.NewReader(out)
		for {
			line, err := r.ReadString('\n')
			if line != "" {
				s.lines <- line
			}
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		if t.Failed() {
			s.kill()
			t.Logf("stderr of %v:\n%.20000s", command, s.errs)
		}
		s.end()
	})
	return s
}

// end closes the input and waits until the process has ended.
func (s *rawSession) end() {
	s.t.Helper()
	s.in.Close()
	s.wait()
}

// wait waits until the process has ended. What it writes to the end is seen.
func (s *rawSession) wait() {
	s.t.Helper()
	s.ended.Do(func() {
		late := time.AfterFunc(patience, func() {
			s.t.Errorf("%v does not end", s.cmd.Args)
			_ = s.cmd.Process.Kill()
		})
		defer late.Stop()
		for line := range s.lines {
			s.seen = append(s.seen, line)
		}
		_ = s.cmd.Wait()
		s.code = s.cmd.ProcessState.ExitCode()
		if !s.killed {
			s.requireProtocolOnly()
		}
	})
}

// requireProtocolOnly says that nothing but messages was written, each as one
// whole line.
func (s *rawSession) requireProtocolOnly() {
	s.t.Helper()
	for _, line := range s.seen {
		if _, err := wire.Read([]byte(line)); err != nil || !strings.HasSuffix(line, "\n") {
			s.t.Errorf("%v wrote %q to its stdout, which is no message: %v", s.cmd.Args, line, err)
		}
	}
}

// kill ends the process the hard way.
func (s *rawSession) kill() {
	s.killed = true
	_ = s.cmd.Process.Kill()
	s.end()
}

func (s *rawSession) signal(sig os.Signal) {
	s.t.Helper()
	require.NoError(s.t, s.cmd.Process.Signal(sig))
}

// send writes one line as it is.
func (s *rawSession) send(line string) {
	s.t.Helper()
	s.sent = append(s.sent, line+"\n")
	_, err := io.WriteString(s.in, line+"\n")
	require.NoError(s.t, err)
}

// call sends a request and waits for its response, answering on the way what
// the server asks. It returns the response.
func (s *rawSession) call(line string) string {
	s.t.Helper()
	request, err := wire.Read([]byte(line))
	require.NoError(s.t, err, line)
	s.send(line)
	for {
		answer := s.next()
		m, err := wire.Read([]byte(answer))
		require.NoError(s.t, err, answer)
		switch m.Kind {
		case wire.Request:
			s.reply(m)
		case wire.Response, wire.Failure:
			require.Equal(s.t, request.ID.Key(), m.ID.Key(), answer)
			return answer
		}
	}
}

// reply answers what the server asks, with a result or, where the reply begins
// with "error:", with the error behind that.
func (s *rawSession) reply(m wire.Message) {
	s.t.Helper()
	result, ok := s.replies[m.Method]
	require.True(s.t, ok, "the server asks for %s", m.Method)
	if failure, ok := strings.CutPrefix(result, "error:"); ok {
		s.send(`{"jsonrpc":"2.0","id":` + string(m.ID.Raw()) + `,"error":` + failure + `}`)
		return
	}
	s.send(string(wire.AppendResult(nil, m.ID.Raw(), []byte(result))))
}

// asked waits until the server asks for the method by itself, and answers.
func (s *rawSession) asked(method string) {
	s.t.Helper()
	for {
		line := s.next()
		m, err := wire.Read([]byte(line))
		require.NoError(s.t, err, line)
		if m.Kind == wire.Request {
			s.reply(m)
			if m.Method == method {
				return
			}
		}
	}
}

// notified waits for a notification of the method.
func (s *rawSession) notified(method string) string {
	s.t.Helper()
	for {
		line := s.next()
		if m, err := wire.Read([]byte(line)); err == nil && m.Kind == wire.Notification && m.Method == method {
			return line
		}
	}
}

// next is the next line, which is written down.
func (s *rawSession) next() string {
	s.t.Helper()
	select {
	case line, ok := <-s.lines:
		require.True(s.t, ok, "the server ended; so far it said %q", s.seen)
		s.seen = append(s.seen, line)
		return line
	case <-time.After(time.Minute):
		s.t.Fatalf("no answer in a minute; so far %q", s.seen)
		return ""
	}
}

var (
	timestamps = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?|\d\d?:\d\d:\d\d( [AP]M)?`)
	uuids      = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32}`)
	pidText    = regexp.MustCompile(`"text":"(\d+)"`)
	taskID     = regexp.MustCompile(`"taskId":"([^"]+)"`)
)

// masked is the lines seen without what differs between two direct runs, too:
// times and the ids of tasks.
func (s *rawSession) masked() []string {
	out := make([]string, len(s.seen))
	for i, line := range s.seen {
		out[i] = mask(line)
	}
	return out
}

func mask(line string) string {
	return uuids.ReplaceAllString(timestamps.ReplaceAllString(line, "TIME"), "ID")
}
