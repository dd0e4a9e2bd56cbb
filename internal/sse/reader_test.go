package sse

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/internal/wire"
)

// all reads to the end and spells what came, an item a line.
func all(r io.Reader, l Limits) (items []string, err error) {
	in := NewReader(r, l)
	for {
		e, err := in.Next()
		var long *wire.TooLong
		if err != nil && !errors.As(err, &long) {
			if _, again := in.Next(); again != err {
				return items, errors.New("the error is not final")
			}
			return items, err
		}
		item := spell(&e)
		if long != nil {
			item += " TOO LONG " + long.Kind.String() + " " + long.ID.String()
		}
		items = append(items, item)
	}
}

func spell(e *Event) string {
	if e.IsComment {
		return "comment" + quoted(e.Comment)
	}
	s := "event"
	if e.Name != "" {
		s += " name" + quoted(e.Name)
	}
	if e.HasID {
		s += " id" + quoted(e.ID)
	}
	if e.Retry != "" {
		s += " retry" + quoted(e.Retry)
	}
	if e.HasData {
		s += " data" + quoted(string(e.Data))
	}
	return s
}

func quoted(s string) string { return "=<" + strings.ReplaceAll(s, "\n", `\n`) + ">" }

func TestReader(t *testing.T) {
	small := Limits{Data: 20, Line: 20, ID: 4}
	for _, c := range []struct {
		name, in string
		want     []string
		err      error
	}{
		{"nothing", "", nil, io.EOF},
		{"one event", "data: {}\n\n", []string{"event data=<{}>"}, io.EOF},
		{"LF, CR and CR LF", "data:a\n\ndata:b\r\rdata:c\r\n\r\ndata:d\n\r\n\n", []string{"event data=<a>", "event data=<b>", "event data=<c>", "event data=<d>"}, io.EOF},
		{"all fields, the last of a kind counts", "id:0\nevent: message\nid: 1\nretry: 0500\ndata: x\n\n", []string{"event name=<message> id=<1> retry=<0500> data=<x>"}, io.EOF},
		{"data fields are joined", "data: {\ndata:  1}\ndata\n\n", []string{`event data=<{\n 1}\n>`}, io.EOF},
		{"one space goes, no more", "data:  x \n\n", []string{"event data=< x >"}, io.EOF},
		{"an event of a priming server", "id: 7\ndata:\n\n", []string{"event id=<7> data=<>"}, io.EOF},
		{"an id alone, and one that resets", "id: 7\n\nid\n\n", []string{"event id=<7>", "event id=<>"}, io.EOF},
		{"retry alone", "retry: 5\n\n", []string{"event retry=<5>"}, io.EOF},
		{"a retry that is no number", "retry: 5s\nretry: -1\nretry\n\n", nil, io.EOF},
		{"a name alone, and no name", "event: ping\n\nevent:\n\n", []string{"event name=<ping>"}, io.EOF},
		{"comments come at once, wherever they stand", ": ping\n\ndata: 1\n:\n:x:y\ndata: 2\n\n", []string{"comment=< ping>", "comment=<>", "comment=<x:y>", `event data=<1\n2>`}, io.EOF},
		{"unknown fields and cases", "Data: 1\nfoo: bar\nbaz\ndata : 3\n\n", nil, io.EOF},
		{"empty lines", "\n\n\r\n\rdata: 1\n\n\n\n", []string{"event data=<1>"}, io.EOF},
		{"a byte order mark", "\uFEFFdata: 1\n\n\uFEFFdata: 2\n\n", []string{"event data=<1>"}, io.EOF},
		{"a byte order mark alone", "\uFEFF\n\n", nil, io.EOF},
		{"an id with NUL", "id: a\x00\ndata: 1\n\n", []string{"event data=<1>"}, io.EOF},
		{"a name with NUL", "data:0\n\nevent: a\x00\ndata: 1\n\n", []string{"event data=<0>"}, ErrMalformed},
		{"cut in an event", "data: 1\n\ndata: 2\n", []string{"event data=<1>"}, io.ErrUnexpectedEOF},
		{"cut in a line", "data: 1\n\nda", []string{"event data=<1>"}, io.ErrUnexpectedEOF},
		{"an id too long", "id: 12345\n\n", nil, ErrMalformed},
		{"an id as long as may be", "id: 1234\n\n", []string{"event id=<1234>"}, io.EOF},
		{"a comment too long", ":" + strings.Repeat("x", 20) + "\ndata:1\n\n", nil, ErrMalformed},
		{"a comment too long without an end", ":" + strings.Repeat("x", 9000), nil, ErrMalformed},
		{"a comment as long as may be", ":" + strings.Repeat("x", 19) + "\n", []string{"comment=<" + strings.Repeat("x", 19) + ">"}, io.EOF},
		{"data as long as may be", "data: " + strings.Repeat("x", 20) + "\n\n", []string{"event data=<" + strings.Repeat("x", 20) + ">"}, io.EOF},
		{"data too long", "id: 9\ndata: {\"id\":1,\"result\":\"" + strings.Repeat("x", 9000) + "\"}\nretry: 1\n\ndata: 1\n\n", []string{"event id=<9> retry=<1> data=<> TOO LONG response 1", "event data=<1>"}, io.EOF},
		{"a little too long", "data: {\"id\":1,\"method\":123}\n\ndata: 1\n\n", []string{"event data=<> TOO LONG request 1", "event data=<1>"}, io.EOF},
		{"data too long together", "data: {\"method\":\n" + strings.Repeat("data: 1\n", 40) + "data: }\n\ndata: 1\n\n", []string{"event data=<> TOO LONG notification ", "event data=<1>"}, io.EOF},
		{"empty data fields add up", strings.Repeat("data\n", 22) + "\n", []string{"event data=<> TOO LONG unknown "}, io.EOF},
		{"too long and cut", "data: " + strings.Repeat("x", 9000), nil, io.ErrUnexpectedEOF},
		{"a byte order mark before data too long", "\uFEFFdata: " + strings.Repeat("x", 9000) + "\r\n\r\ndata:1\n\n", []string{"event data=<> TOO LONG unknown ", "event data=<1>"}, io.EOF},
	} {
		t.Run(c.name, func(t *testing.T) {
			for how, r := range map[string]io.Reader{
				"whole":            strings.NewReader(c.in),
				"byte by byte":     iotest.OneByteReader(strings.NewReader(c.in)),
				"half":             iotest.HalfReader(strings.NewReader(c.in)),
				"data and the end": iotest.DataErrReader(strings.NewReader(c.in)),
			} {
				items, err := all(r, small)
				require.ErrorIs(t, err, c.err, how)
				require.Equal(t, c.want, items, how)
			}
		})
	}
}

// An event is given when its empty line has begun, a comment when its line has:
// not one byte more is waited for.
func TestNothingIsWaitedFor(t *testing.T) {
	r, w := io.Pipe()
	in := NewReader(r, Limits{})
	for _, c := range []struct{ sent, want string }{
		{": ping\n", "comment=< ping>"},
		{":cr\r", "comment=<cr>"},
		{"\ndata: 1\n\n", "event data=<1>"},
		{"data: 2\r\r", "event data=<2>"},
		{"data: 3\r\n\r", "event data=<3>"},
		{"\n: x\n", "comment=< x>"},
	} {
		go io.WriteString(w, c.sent)
		e, err := in.Next()
		require.NoError(t, err)
		require.Equal(t, c.want, spell(&e))
	}
}

func TestErrorsOfTheStreamArePassedOn(t *testing.T) {
	items, err := all(io.MultiReader(strings.NewReader("data: 1\n\ndata: 2"), iotest.ErrReader(io.ErrClosedPipe)), Limits{})
	require.Equal(t, []string{"event data=<1>"}, items)
	require.Equal(t, io.ErrClosedPipe, err)
	_, err = all(stuck{}, Limits{})
	require.Equal(t, io.ErrNoProgress, err)
}

type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

// What Next gives belongs to the caller: nothing that is read later changes it.
func TestDataBelongToTheCaller(t *testing.T) {
	var in strings.Builder
	var want []string
	for i := range 40 {
		data := strings.Repeat(string(rune('a'+i%26)), 1<<(i%18))
		want = append(want, data)
		in.WriteString("data: " + data + "\n\n")
	}
	r := NewReader(strings.NewReader(in.String()), Limits{})
	var got [][]byte
	for range want {
		e, err := r.Next()
		require.NoError(t, err)
		got = append(got, e.Data)
	}
	for i := range want {
		require.Equal(t, want[i], string(got[i]))
		_ = append(got[i], "overwritten"...)
	}
	for i := range want {
		require.Equal(t, want[i], string(got[i]))
	}
}

// A stream that never ends an event costs no more than the limit.
func TestMemoryIsBounded(t *testing.T) {
	endless := io.LimitReader(repeat("data: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n"), 64<<20)
	r := NewReader(endless, Limits{Data: 1 << 20})
	_, err := r.Next()
	require.Equal(t, io.ErrUnexpectedEOF, err)
	require.LessOrEqual(t, len(r.buf), largeBuffer)

	r = NewReader(io.LimitReader(repeat("x"), 64<<20), Limits{})
	_, err = r.Next()
	require.ErrorIs(t, err, ErrMalformed)
	require.LessOrEqual(t, len(r.buf), 32<<20)
}

type repeat string

func (r repeat) Read(p []byte) (int, error) {
	for n := 0; n < len(p); {
		n += copy(p[n:], r)
	}
	return len(p), nil
}

// FuzzReader: any text in any pieces gives the same items, in the bounds, and
// what can be written back reads as it was.
func FuzzReader(f *testing.F) {
	f.Add([]byte("\uFEFFid: 1\r\nevent: message\rdata: {}\n\n:x\ndata\n\n"), uint8(2))
	f.Add([]byte("data: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\ndata:\n\nretry: 1\n\n"), uint8(7))
	f.Fuzz(func(t *testing.T, in []byte, step uint8) {
		l := Limits{Data: 32, Line: 40, ID: 8}
		whole, err := all(bytes.NewReader(in), l)
		pieces, err2 := all(&stepReader{in, int(step) + 1}, l)
		require.Equal(t, whole, pieces)
		require.Equal(t, err == nil, err2 == nil)
		require.ErrorIs(t, err2, rootOf(err))

		r := NewReader(bytes.NewReader(in), l)
		for {
			e, err := r.Next()
			var long *wire.TooLong
			if errors.As(err, &long) {
				require.Nil(t, e.Data)
				require.Greater(t, long.Size, long.Max)
				continue
			}
			if err != nil {
				return
			}
			require.LessOrEqual(t, len(e.Data), l.Data)
			require.LessOrEqual(t, len(e.ID), l.ID)
			require.LessOrEqual(t, len(e.Comment)+len(e.Name)+len(e.Retry), 2*l.Line)
			e.Data = wire.Flat(nil, e.Data)
			sameAgain(t, &e)
		}
	})
}

func rootOf(err error) error {
	if errors.Is(err, ErrMalformed) {
		return ErrMalformed
	}
	return err
}

// stepReader gives so many bytes at a time.
type stepReader struct {
	rest []byte
	step int
}

func (s *stepReader) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.rest[:min(s.step, len(s.rest))])
	s.rest = s.rest[n:]
	return n, nil
}

// sameAgain demands that what is written reads as what it was, and as nothing
// else.
func sameAgain(t *testing.T, e *Event) {
	t.Helper()
	out, err := AppendEvent(nil, e)
	require.NoError(t, err)
	items, err := all(bytes.NewReader(out), Limits{})
	require.Equal(t, io.EOF, err)
	require.Equal(t, []string{spell(e)}, items)
}

func TestReaderAllocations(t *testing.T) {
	in := bytes.NewReader(bytes.Repeat([]byte("event: message\nid: 12345\ndata: {\"jsonrpc\":\"2.0\"}\n\n"), 2000))
	r := NewReader(in, Limits{})
	_, err := r.Next()
	require.NoError(t, err)
	require.LessOrEqual(t, testing.AllocsPerRun(1000, func() { _, _ = r.Next() }), 2.0, "the data and the id")
}

func BenchmarkReader(b *testing.B) {
	for name, size := range map[string]int{"1KB": 1 << 10, "64KB": 64 << 10, "1MB": 1 << 20} {
		b.Run(name, func(b *testing.B) {
			event := []byte("event: message\ndata: " + strings.Repeat("x", size) + "\n\n")
			r := NewReader(repeatBytes(event), Limits{})
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Next(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func repeatBytes(event []byte) io.Reader {
	at := 0
	return readerFunc(func(p []byte) (int, error) {
		n := copy(p[:min(len(p), 32<<10)], event[at:])
		at = (at + n) % len(event)
		return n, nil
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
