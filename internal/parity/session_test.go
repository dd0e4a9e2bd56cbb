package parity

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/internal/sse"
	"github.com/weir-mcp/weir/internal/wire"
)

// session is a client in raw frames: it says what it is told to, byte by byte,
// and writes down what comes back. It decodes nothing but what it needs to know
// which answer it waits for.
type session struct {
	t testing.TB
	// write sends one frame.
	write func(frame []byte, m *wire.Message)
	// frames are those that come back.
	frames chan []byte
	// replies are what is answered to requests of the server, by method.
	replies map[string]string
	asks    int // requests of the server that were answered
	sent    int
	seen    []string
}

// talk begins a session with a server that target leads to, a URL or a command.
func talk(t testing.TB, target []string, replies map[string]string) *session {
	t.Helper()
	s := &session{t: t, frames: make(chan []byte, 1024), replies: replies}
	if strings.HasPrefix(target[0], "http://") {
		s.overHTTP(target[0])
	} else {
		s.overStdio(target)
	}
	return s
}

func (s *session) overStdio(command []string) {
	s.t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	in, err := cmd.StdinPipe()
	require.NoError(s.t, err)
	out, outWriter := io.Pipe()
	cmd.Stdout = outWriter
	r := start(s.t, cmd)
	s.t.Cleanup(func() { // before the program is killed: it is to end by itself
		in.Close()
		select {
		case <-r.gone:
		case <-time.After(patience / 2):
		}
		outWriter.Close()
	})
	go func() {
		lines := bufio.NewReader(out)
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return
			}
			s.frames <- bytes.TrimSuffix(line, []byte("\n"))
		}
	}()
	s.write = func(frame []byte, _ *wire.Message) {
		_, err := in.Write(append(frame, '\n'))
		require.NoError(s.t, err)
	}
}

func (s *session) overHTTP(url string) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	client := &http.Client{Transport: &http.Transport{}}
	var streams sync.WaitGroup
	headers := http.Header{"Accept": {"application/json, text/event-stream"}}
	s.t.Cleanup(func() {
		if headers.Get("Mcp-Session-Id") != "" {
			req, err := http.NewRequestWithContext(ctx, http.MethodDelete, url, nil)
			if err == nil {
				req.Header = headers
				if res, err := client.Do(req); err == nil {
					res.Body.Close()
				}
			}
		}
		cancel()
		streams.Wait()
		client.CloseIdleConnections()
	})
	do := func(method string, body []byte) *http.Response {
		req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
		require.NoError(s.t, err)
		req.Header = headers.Clone()
		if body != nil {
			req.Header.Set("Content-Type", "application/json")
		}
		res, err := client.Do(req)
		require.NoError(s.t, err)
		return res
	}
	read := func(res *http.Response) {
		streams.Go(func() {
			defer res.Body.Close()
			if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
				if b, err := io.ReadAll(res.Body); err == nil && len(b) > 0 {
					s.frames <- b
				}
				return
			}
			events := sse.NewReader(res.Body, sse.Limits{})
			for {
				e, err := events.Next()
				if err != nil {
					return
				}
				if len(e.Data) > 0 {
					s.frames <- e.Data
				}
			}
		})
	}
	s.write = func(frame []byte, m *wire.Message) {
		res := do(http.MethodPost, frame)
		if m.Kind != wire.Request {
			require.Equal(s.t, http.StatusAccepted, res.StatusCode, "%s", frame)
			res.Body.Close()
			if m.Method == "notifications/initialized" {
				stream := do(http.MethodGet, nil)
				require.Equal(s.t, http.StatusOK, stream.StatusCode)
				read(stream)
			}
			return
		}
		if id := res.Header.Get("Mcp-Session-Id"); m.Method == "initialize" {
			require.NotEmpty(s.t, id)
			headers.Set("Mcp-Session-Id", id)
			headers.Set("Mcp-Protocol-Version", "2025-11-25")
		}
		read(res)
	}
}

// send sends one frame as it is.
func (s *session) send(frame string) {
	s.t.Helper()
	m, err := wire.Read([]byte(frame))
	require.NoError(s.t, err, frame)
	s.sent++
	s.write([]byte(frame), &m)
}

// next is the next frame, which is written down.
func (s *session) next() wire.Message {
	s.t.Helper()
	select {
	case frame := <-s.frames:
		s.seen = append(s.seen, string(frame))
		m, err := wire.Read(frame)
		require.NoError(s.t, err, "%s", frame)
		return m
	case <-time.After(patience):
		s.t.Fatalf("nothing in %v; so far %q", patience, s.seen)
		panic("unreachable")
	}
}

// until takes frames until one is it, answering what the server asks.
func (s *session) until(is func(*wire.Message) bool) string {
	s.t.Helper()
	for {
		m := s.next()
		if m.Kind == wire.Request {
			reply, ok := s.replies[m.Method]
			require.True(s.t, ok, "the server asks for %s", m.Method)
			s.asks++
			s.send(string(wire.AppendResult(nil, m.ID.Raw(), []byte(reply))))
		}
		if is(&m) {
			return string(m.Raw)
		}
	}
}

// call sends a request and gives its answer.
func (s *session) call(id, method, params string) string {
	s.t.Helper()
	frame := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q}`, id, method)
	if params != "" {
		frame = fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params)
	}
	s.send(frame)
	return s.until(func(m *wire.Message) bool {
		answer := m.Kind == wire.Response || m.Kind == wire.Failure
		if answer {
			require.Equal(s.t, id, string(m.ID.Raw()), "%s", m.Raw)
		}
		return answer
	})
}

// has waits for a request or notification of the server.
func (s *session) has(method string) string {
	s.t.Helper()
	return s.until(func(m *wire.Message) bool { return m.Method == method })
}

var (
	times = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?|\d\d?:\d\d:\d\d( [AP]M)?`)
	uuids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32}`)
)

// masked is what was seen without times and ids that differ between two direct
// runs, too: notifications in alphabetical order, as they may come on another
// stream, and all else in its order.
func (s *session) masked() (notes, others []string) {
	for _, frame := range s.seen {
		m, err := wire.Read([]byte(frame))
		require.NoError(s.t, err)
		frame = uuids.ReplaceAllString(times.ReplaceAllString(frame, "TIME"), "ID")
		if m.Kind == wire.Notification {
			notes = append(notes, frame)
		} else {
			others = append(others, frame)
		}
	}
	slices.Sort(notes)
	return notes, others
}
