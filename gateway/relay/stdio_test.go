package relay

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStdioOverPipes(t *testing.T) {
	in, w, err := os.Pipe()
	require.NoError(t, err)
	r, out, err := os.Pipe()
	require.NoError(t, err)
	end := Stdio(in, out, 1<<20)
	big := `{"x":"` + strings.Repeat("y", 1<<19) + `"}`
	go io.WriteString(w, big+"\n\r\n \n"+call("1", `{}`))
	got, err := end.Read()
	require.NoError(t, err)
	require.Equal(t, big, string(got))

	go func() { _ = end.Write([]byte(big)) }()
	line, err := bufio.NewReader(r).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, big+"\n", line)

	// Close makes a Read in progress return.
	failed := make(chan error, 1)
	go func() {
		_, err := end.Read()
		failed <- err
	}()
	require.NoError(t, end.Close())
	require.Error(t, <-failed)
	require.NoError(t, end.Close())
	w.Close()
	r.Close()
}

func TestStdioOverAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "in")
	require.NoError(t, os.WriteFile(path, []byte(call("1", `{}`)+"\n"+call("2", `{}`)), 0o600))
	in, err := os.Open(path)
	require.NoError(t, err)
	out, err := os.Create(path + ".out")
	require.NoError(t, err)
	end := Stdio(in, out, 1<<20)
	for _, id := range []string{"1", "2"} {
		got, err := end.Read()
		require.NoError(t, err)
		require.Equal(t, call(id, `{}`), string(got))
	}
	_, err = end.Read()
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, end.Write([]byte("{\n}")))
	require.NoError(t, end.Close())
	written, err := os.ReadFile(path + ".out")
	require.NoError(t, err)
	require.Equal(t, "{}\n", string(written))
	require.NoError(t, in.Close())
}

func TestDetachedReaderEnds(t *testing.T) {
	// A pipe stands for a terminal here: its Read blocks until there is text.
	in, w, err := os.Pipe()
	require.NoError(t, err)
	d := &detachedReader{f: in, next: make(chan struct{}), got: make(chan read), closed: make(chan struct{})}
	go w.WriteString("ab")
	b := make([]byte, 1)
	for _, want := range "ab" {
		_, err := d.Read(b)
		require.NoError(t, err)
		require.Equal(t, string(want), string(b))
	}
	failed := make(chan error, 1)
	go func() {
		_, err := d.Read(b)
		failed <- err
	}()
	require.NoError(t, d.Close())
	require.ErrorIs(t, <-failed, ErrClosed)
	_, err = d.Read(b)
	require.ErrorIs(t, err, ErrClosed)
	w.Close()
	in.Close()
}

func TestShortWriteIsAnError(t *testing.T) {
	end := Lines(io.NopCloser(strings.NewReader("")), shortWriter{}, 10)
	require.ErrorIs(t, end.Write([]byte("{}")), io.ErrShortWrite)
	require.EqualError(t, end.Close(), "c")
}

// Messages are one line each, whatever their size and the line breaks in them, and
// only as many writes as it takes: the line feed goes out with what is before it.
func TestLinesOfAnySize(t *testing.T) {
	for _, size := range []int{2, largeMessage - 1, largeMessage, largeMessage + 1, largeMessage * 3 / 2, 1 << 20} {
		for name, unit := range map[string]string{"compact": "x", "with line breaks": "x\r\n"} {
			message := strings.Repeat(unit, size/len(unit)+1)[:size]
			var out writes
			end := Lines(io.NopCloser(strings.NewReader("")), &out, 10)
			for range 2 {
				require.NoError(t, end.Write([]byte(message)), name)
			}
			line := strings.NewReplacer("\r", "", "\n", "").Replace(message) + "\n"
			require.True(t, string(bytes.Join(out, nil)) == line+line, "%s, %d bytes", name, size)
			require.LessOrEqual(t, len(out), 4)
			for _, w := range out {
				require.NotEqual(t, "\n", string(w))
			}
		}
	}
	end := Lines(io.NopCloser(strings.NewReader("")), shortWriter{}, 10)
	require.ErrorIs(t, end.Write(make([]byte, 1<<20)), io.ErrShortWrite)
}

// writes are copies of what was written.
type writes [][]byte

func (w *writes) Write(p []byte) (int, error) {
	*w = append(*w, bytes.Clone(p))
	return len(p), nil
}

func (w *writes) Close() error { return nil }

type shortWriter struct{}

func (shortWriter) Write(p []byte) (int, error) { return len(p) - 1, nil }
func (shortWriter) Close() error                { return errors.New("c") }
