package streamable

import (
	"bufio"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/gateway/relay"
)

// patience is how long a test waits for what must come.
const patience = 20 * time.Second

// quick is the pace of tests.
var quick = pace{retry: time.Millisecond, maxRetry: 20 * time.Millisecond, accept: patience, linger: 50 * time.Millisecond, overtake: patience, farewell: patience}

// far is the test's side of a stdio client.
type far struct {
	t     *testing.T
	w     io.WriteCloser
	lines chan string
	done  chan error
}

// stdioTo runs a relay between a client in the test's hand and a backend.
func stdioTo(t *testing.T, backend relay.End, o relay.Options) *far {
	t.Helper()
	f, end := newFar(t)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { f.done <- relay.Run(ctx, end, backend, o) }()
	t.Cleanup(func() {
		f.w.Close()
		select {
		case err := <-f.done:
			f.done <- err
		case <-time.After(patience):
			require.FailNow(t, "the relay does not end")
		}
		cancel()
	})
	return f
}

func newFar(t *testing.T) (*far, relay.End) {
	toRelay, fromFar := io.Pipe()
	toFar, fromRelay := io.Pipe()
	f := &far{t: t, w: fromFar, lines: make(chan string, 10_000), done: make(chan error, 1)}
	go func() {
		defer close(f.lines)
		r := bufio.NewReader(toFar)
		for {
			line, err := r.ReadString('\n')
			if line != "" {
				f.lines <- strings.TrimSuffix(line, "\n")
			}
			if err != nil {
				return
			}
		}
	}()
	return f, relay.Lines(toRelay, fromRelay, 1<<20)
}

func (f *far) send(messages ...string) {
	f.t.Helper()
	for _, m := range messages {
		_, err := io.WriteString(f.w, m+"\n")
		require.NoError(f.t, err)
	}
}

func (f *far) next() string {
	f.t.Helper()
	select {
	case line, ok := <-f.lines:
		require.True(f.t, ok, "the relay closed the end")
		return line
	case <-time.After(patience):
		require.FailNow(f.t, "nothing arrived")
		return ""
	}
}

// gets demands exactly these messages next, byte for byte.
func (f *far) gets(messages ...string) {
	f.t.Helper()
	for _, m := range messages {
		require.Equal(f.t, m, f.next())
	}
}

// ends waits for the relay to end.
func (f *far) ends() error {
	f.t.Helper()
	select {
	case err := <-f.done:
		f.done <- err
		return err
	case <-time.After(patience):
		require.FailNow(f.t, "the relay does not end")
		return nil
	}
}

// sdkOver connects a client of go-sdk over stdio to a backend.
func sdkOver(t *testing.T, backend relay.End, o *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	toRelay, fromClient := io.Pipe()
	toClient, fromRelay := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- relay.Run(context.Background(), relay.Lines(toRelay, fromRelay, 16<<20), backend, relay.Options{})
	}()
	client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, o)
	session, err := client.Connect(t.Context(), &mcp.IOTransport{Reader: toClient, Writer: fromClient}, nil)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = session.Close()
		fromClient.Close()
		select {
		case <-done:
		case <-time.After(patience):
			require.FailNow(t, "the relay does not end")
		}
	})
	return session
}
