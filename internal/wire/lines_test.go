package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// transcript reads all lines and writes what came: a line, or its refusal.
func transcript(r io.Reader, limit int) (out []string, last error) {
	l := NewLineReader(r, limit)
	for {
		line, err := l.Next()
		var long *TooLong
		switch {
		case err == nil:
			out = append(out, string(line))
		case errors.As(err, &long):
			out = append(out, fmt.Sprintf("!%d %s %s", long.Size, long.Kind, long.ID))
		default:
			return out, err
		}
	}
}

func TestLineReader(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     []string
	}{
		{"nothing", "", nil},
		{"lines", "a\nb\n", []string{"a", "b"}},
		{"CRLF", "a\r\nb\r\n", []string{"a", "b"}},
		{"last line without end", "a\nb", []string{"a", "b"}},
		{"last line with CR only", "a\nb\r", []string{"a", "b"}},
		{"blank lines", "\n\r\n \t\n\na\n\n  \r\n", []string{"a"}},
		{"a CR inside stays", "a\rb\n", []string{"a\rb"}},
		{"one CR of two goes", "a\r\r\n", []string{"a\r"}},
		{"at the limit", "0123456789\n0123456789\r\n0123456789", []string{"0123456789", "0123456789", "0123456789"}},
		{"one over", "0123456789x\na\n", []string{"!11 unknown ", "a"}},
		{"one over with CR", "0123456789x\r\na\n", []string{"!11 unknown ", "a"}},
		{"one over at the end", "a\n0123456789x", []string{"a", "!11 unknown "}},
		{"blanks over the limit", strings.Repeat(" ", 11) + "\na", []string{"!11 unknown ", "a"}},
		{"blanks over the limit at the end", "a\n" + strings.Repeat(" ", 11), []string{"a", "!11 unknown "}},
		{"far over", strings.Repeat("x", 10000) + "\nb\n" + strings.Repeat("x", 5000) + "\nc", []string{"!10000 unknown ", "b", "!5000 unknown ", "c"}},
		{"id in front", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"x":"` + strings.Repeat("x", 9000) + `"}}` + "\nb\n", []string{"!9064 request 7", "b"}},
		{"id at the end", `{"jsonrpc":"2.0","method":"tools/call","params":{"id":8,"x":["` + strings.Repeat(`\"`, 5000) + `"]},"id":"s\u0041"}` + "\r\nb", []string{`!10081 request "s\u0041"`, "b"}},
		{"notification", `{"method":"notifications/message","params":{"id":1,"x":"` + strings.Repeat("x", 9000) + `"}}`, []string{"!9059 notification "}},
		{"response", `{"result":{"method":"x","id":3,"x":"` + strings.Repeat("x", 9000) + `"},"id":4}` + "\n", []string{"!9046 response 4"}},
		{"two ids", `{"id":1,"method":"` + strings.Repeat("x", 9000) + `","id":2}` + "\n", []string{"!9027 request "}},
	} {
		for how, r := range map[string]io.Reader{
			"at once":             strings.NewReader(c.in),
			"byte by byte":        iotest.OneByteReader(strings.NewReader(c.in)),
			"halves":              iotest.HalfReader(strings.NewReader(c.in)),
			"error with the data": iotest.DataErrReader(strings.NewReader(c.in)),
		} {
			t.Run(c.name+"/"+how, func(t *testing.T) {
				got, err := transcript(r, 10)
				require.Equal(t, io.EOF, err)
				require.Equal(t, c.want, got)
			})
		}
	}
}

func TestLineReaderErrors(t *testing.T) {
	boom := errors.New("boom")
	got, err := transcript(io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(boom)), 10)
	require.Equal(t, []string{"a"}, got, "half a line before a failure is no line")
	require.Equal(t, boom, err)

	got, err = transcript(io.MultiReader(strings.NewReader(strings.Repeat("x", 99)), iotest.ErrReader(boom)), 10)
	require.Equal(t, []string{"!99 unknown "}, got)
	require.Equal(t, boom, err)

	_, err = transcript(stuck{}, 10)
	require.Equal(t, io.ErrNoProgress, err)

	l := NewLineReader(strings.NewReader(""), 0)
	for range 3 {
		_, err = l.Next()
		require.Equal(t, io.EOF, err, "the end is final")
	}
	require.Contains(t, (&TooLong{Max: 10, Size: 11}).Error(), "11 bytes is over the limit of 10")
}

type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

// A buffer that a refused line has made large does not stay.
func TestLargeBuffersAreGivenBack(t *testing.T) {
	l := NewLineReader(strings.NewReader(strings.Repeat("x", 5<<20)+"\n"), 4<<20)
	_, err := l.Next()
	var long *TooLong
	require.ErrorAs(t, err, &long)
	require.EqualValues(t, 5<<20, long.Size)
	require.EqualValues(t, 4<<20, long.Max)
	_, err = l.Next()
	require.Equal(t, io.EOF, err)
	require.LessOrEqual(t, len(l.buf), largeBuffer)
}

// Large lines in a row are each read into memory that is asked for once.
func TestTheNextLineIsTakenToBeLikeTheLast(t *testing.T) {
	line := strings.Repeat("x", 3<<20) + "\n"
	l := NewLineReader(strings.NewReader(line+line+"{}\n"), 4<<20)
	_, err := l.Next()
	require.NoError(t, err)
	second, err := l.Next()
	require.NoError(t, err)
	require.Len(t, second, len(line)-1)
	require.LessOrEqual(t, len(l.buf), largeBuffer)
	last, err := l.Next()
	require.NoError(t, err)
	require.Equal(t, "{}", string(last))
	require.LessOrEqual(t, len(l.buf), largeBuffer, "and is not kept for a small one")
}

func TestReadersThatLieAboutTheirCount(t *testing.T) {
	_, err := NewLineReader(liar{}, 10).Next()
	require.Equal(t, io.ErrNoProgress, err)
}

type liar struct{}

func (liar) Read(p []byte) (int, error) { return len(p) + 1, nil }

func TestLinesBelongToTheCaller(t *testing.T) {
	var in []string
	for i := range 200 {
		in = append(in, strings.Repeat(string(rune('a'+i%26)), 1+i*i*7))
	}
	l := NewLineReader(strings.NewReader(strings.Join(in, "\n")), 1<<20)
	var got [][]byte
	for {
		line, err := l.Next()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		got = append(got, line)
		_ = append(line, "overwritten"...)
	}
	require.Len(t, got, len(in))
	for i := range in {
		require.True(t, in[i] == string(got[i]), i)
	}
}

// big_body: a line far over the limit is not held.
func TestLongLinesAreNotHeld(t *testing.T) {
	const limit, size = 64 << 10, 32 << 20
	head := `{"jsonrpc":"2.0","method":"tools/call","params":{"x":"`
	r := io.MultiReader(strings.NewReader(head), io.LimitReader(filler{}, size), strings.NewReader("\"},\"id\":5}\n{}\n"))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := transcript(r, limit)
	runtime.ReadMemStats(&after)
	require.Equal(t, io.EOF, err)
	require.Equal(t, []string{fmt.Sprintf("!%d request 5", len(head)+size+10), "{}"}, got)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(8*limit))
}

type filler struct{}

func (filler) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// FuzzLineReader holds the reader against bufio and a model of the rules, at
// any limit and any size of reads.
func FuzzLineReader(f *testing.F) {
	f.Add([]byte("a\r\n\nbb\n  \ncccc"), uint16(3), uint8(1))
	f.Add([]byte(`{"id":1,"method":"x"}`+"\n\r\n"), uint16(5), uint8(7))
	f.Add([]byte(" \t"), uint16(0), uint8(2))
	f.Add(bytes.Repeat([]byte("0123456789\n"), 400), uint16(10), uint8(255))
	f.Add(append(bytes.Repeat([]byte("x"), 4300), "\ny"...), uint16(4200), uint8(0))
	f.Fuzz(func(t *testing.T, in []byte, limit uint16, step uint8) {
		bound := max(1, int(limit))
		var want []string
		ref := bufio.NewReader(bytes.NewReader(in))
		for {
			line, err := ref.ReadBytes('\n')
			line = bytes.TrimSuffix(line, []byte("\n"))
			line = bytes.TrimSuffix(line, []byte("\r"))
			if len(line) > bound {
				kind, id := Peek(line)
				want = append(want, fmt.Sprintf("!%d %s %s", len(line), kind, id))
			} else if len(bytes.Trim(line, " \t\r\n")) > 0 {
				want = append(want, string(line))
			}
			if err != nil {
				break
			}
		}
		got, err := transcript(&steps{bytes.NewReader(in), int(step)}, bound)
		require.Equal(t, io.EOF, err)
		require.Equal(t, want, got)
	})
}

// steps reads at most n bytes at once, or as many as fit when n is 0.
type steps struct {
	r io.Reader
	n int
}

func (s *steps) Read(p []byte) (int, error) {
	if s.n > 0 && len(p) > s.n {
		p = p[:s.n]
	}
	return s.r.Read(p)
}
