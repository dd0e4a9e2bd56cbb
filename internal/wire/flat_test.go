package wire

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
)

// smuggled_lines: a pretty-printed body holds, alone on a line, a complete
// message; on a line-framed reader it must be one message all the same.
func TestFlatLeavesOneMessage(t *testing.T) {
	const call = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"evil"}}`
	for _, eol := range []string{"\n", "\r\n", "\r"} {
		body := strings.ReplaceAll(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"safe","arguments":{"x":
`+call+`
}, "text": "line\nbreak\r\u000a" }}
`, "\n", eol)
		m, err := Read([]byte(body))
		require.NoError(t, err)
		flat := Flat(nil, m.Raw)
		require.NotContains(t, string(flat), "\n")
		require.NotContains(t, string(flat), "\r")
		require.Contains(t, string(flat), `"line\nbreak\r\u000a" }`, "nothing but line breaks goes")
		require.True(t, Equal(m.Raw, flat))

		lines := NewLineReader(bytes.NewReader(append(flat, '\n')), 1<<20)
		line, err := lines.Next()
		require.NoError(t, err)
		require.Equal(t, string(flat), string(line))
		_, err = lines.Next()
		require.Equal(t, io.EOF, err)
	}
}

func TestFlat(t *testing.T) {
	same := []byte(`{ "a":	1 }`)
	got := Flat(nil, same)
	require.Same(t, &same[0], &got[0], "nothing to drop: no copy")
	require.Equal(t, len(got), cap(got), "and appending to it writes elsewhere")

	require.Equal(t, "data: [1, 2]", string(Flat([]byte("data: "), []byte("[1,\r\n 2]\n"))))
	require.Equal(t, "data: [1]", string(Flat([]byte("data: "), []byte("[1]"))))
	require.Equal(t, `"ab"`, string(Flat(nil, []byte("\"a\nb\""))), "no line break survives in what is no JSON either")
	require.Empty(t, Flat(nil, []byte("\r\n\n")))
	require.Empty(t, Flat(nil, nil))
	in := []byte("[1,\n2]")
	Flat(nil, in)
	require.Equal(t, "[1,\n2]", string(in), "the input stays")
}

func FuzzFlat(f *testing.F) {
	for _, seed := range []string{"{\n\"a\":\r\n[1,\n2]}", `"a\nb"`, "\r", "[1\n,2]\n", "1\n2"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		flat := Flat(nil, in)
		require.False(t, bytes.ContainsAny(flat, "\r\n"))
		require.True(t, bytes.Equal(flat, Flat(nil, flat)), "idempotent")
		require.Equal(t, "x"+string(flat), string(Flat([]byte("x"), in)))
		if !jsontext.Value(in).IsValid(jsontext.AllowDuplicateNames(true)) {
			return
		}
		a, b := jsontext.Value(bytes.Clone(in)), jsontext.Value(bytes.Clone(flat))
		require.NoError(t, a.Compact(jsontext.AllowDuplicateNames(true), jsontext.PreserveRawStrings(true)))
		require.NoError(t, b.Compact(jsontext.AllowDuplicateNames(true), jsontext.PreserveRawStrings(true)))
		require.Equal(t, string(a), string(b), "every token is spelled and ordered as before")
	})
}
