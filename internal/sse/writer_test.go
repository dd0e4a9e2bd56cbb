package sse

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAppendEvent(t *testing.T) {
	for _, c := range []struct {
		name  string
		event Event
		want  string
		err   error
	}{
		{"data", Event{Data: []byte(`{}`), HasData: true}, "data: {}\n\n", nil},
		{"all fields", Event{Name: "message", ID: "1", HasID: true, Retry: "05", Data: []byte("x"), HasData: true}, "event: message\nid: 1\nretry: 05\ndata: x\n\n", nil},
		{"a priming event", Event{ID: "1", HasID: true, HasData: true}, "id: 1\ndata: \n\n", nil},
		{"an id that resets", Event{HasID: true}, "id: \n\n", nil},
		{"a comment as spelled", Event{IsComment: true, Comment: " ping "}, ": ping \n\n", nil},
		{"what begins with a space", Event{Data: []byte(" x"), HasData: true}, "data:  x\n\n", nil},
		{"LF in data", Event{Data: []byte("{}\n{}"), HasData: true}, "", ErrBreak},
		{"CR in data", Event{Data: []byte("{}\r"), HasData: true}, "", ErrBreak},
		{"LF in an id", Event{ID: "1\ndata: x", HasID: true}, "", ErrBreak},
		{"CR in an id", Event{ID: "1\r", HasID: true}, "", ErrBreak},
		{"NUL in an id", Event{ID: "\x00", HasID: true}, "", ErrBreak},
		{"LF in a name", Event{Name: "a\ndata: x"}, "", ErrBreak},
		{"NUL in a name", Event{Name: "\x00"}, "", ErrBreak},
		{"LF in a comment", Event{IsComment: true, Comment: "\ndata: x"}, "", ErrBreak},
		{"CR in a comment", Event{IsComment: true, Comment: "\r"}, "", ErrBreak},
		{"a retry that is no number", Event{Retry: "1\n"}, "", ErrRetry},
		{"nothing", Event{}, "", ErrEmpty},
		{"data that are not said to be there", Event{Data: []byte("\n")}, "", ErrEmpty},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := AppendEvent([]byte("before:"), &c.event)
			require.Equal(t, c.err, err)
			require.Equal(t, "before:"+c.want, string(out))
			if err == nil {
				sameAgain(t, &c.event)
			}
		})
	}
}

func TestWriterWritesAnEventAtOnce(t *testing.T) {
	var calls []string
	w := NewWriter(writerFunc(func(p []byte) (int, error) {
		calls = append(calls, string(p))
		return len(p), nil
	}), func() error {
		calls = append(calls, "flush")
		return nil
	})
	require.NoError(t, w.Write(&Event{Name: "message", Data: []byte("1"), HasData: true}))
	require.ErrorIs(t, w.Write(&Event{Name: "\n"}), ErrBreak)
	require.NoError(t, w.Write(&Event{IsComment: true, Comment: "c"}))
	require.Equal(t, []string{"event: message\ndata: 1\n\n", "flush", ":c\n\n", "flush"}, calls)
}

func TestWriterKeepsNoLargeBuffer(t *testing.T) {
	w := NewWriter(&bytes.Buffer{}, nil)
	require.NoError(t, w.Write(&Event{Data: bytes.Repeat([]byte("x"), 2*keptBuffer), HasData: true}))
	require.Nil(t, w.buf)
	event := &Event{Data: bytes.Repeat([]byte("x"), 1<<10), HasData: true}
	w = NewWriter(writerFunc(func(p []byte) (int, error) { return len(p), nil }), nil)
	require.NoError(t, w.Write(event))
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = w.Write(event) }))
}

func TestWriterErrors(t *testing.T) {
	event := &Event{Data: []byte("1"), HasData: true}
	broken := errors.New("broken")
	require.Equal(t, broken, NewWriter(writerFunc(func([]byte) (int, error) { return 0, broken }), nil).Write(event))
	require.ErrorContains(t, NewWriter(writerFunc(func(p []byte) (int, error) { return 1, nil }), nil).Write(event), "short write")
	require.Equal(t, broken, NewWriter(&bytes.Buffer{}, func() error { return broken }).Write(event))
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// FuzzWriter: whatever the fields hold, they are refused or read as they were.
func FuzzWriter(f *testing.F) {
	f.Add("message", "1", true, "10", []byte(`{"a":1}`), true, false)
	f.Add("", "\n", true, "", []byte("a\r\n\r\ndata: x"), true, false)
	f.Add(" comment", "", false, "x", []byte(nil), false, true)
	f.Fuzz(func(t *testing.T, name, id string, hasID bool, retry string, data []byte, hasData, comment bool) {
		e := &Event{Name: name, ID: id, HasID: hasID, Retry: retry, Data: data, HasData: hasData}
		if comment {
			e = &Event{IsComment: true, Comment: name}
		}
		if !hasID {
			e.ID = ""
		}
		if !hasData {
			e.Data = nil
		}
		if len(name) > 60_000 || len(id) > 1<<10 || len(retry) > 60_000 {
			return
		}
		out, err := AppendEvent(nil, e)
		if err != nil {
			require.Empty(t, out)
			return
		}
		sameAgain(t, e)
		require.True(t, strings.HasSuffix(string(out), "\n\n"))
	})
}
