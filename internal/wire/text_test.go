package wire

import (
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
)

func TestAppendString(t *testing.T) {
	for in, want := range map[string]string{
		"":                       `""`,
		"plain":                  `"plain"`,
		"<>&/":                   `"<>&/"`,
		`"\`:                     `"\"\\"`,
		"\b\f\n\r\t\x00\x1f\x7f": `"\b\f\n\r\t\u0000\u001f` + "\x7f\"",
		"é水😀\u2028":              "\"é水😀\u2028\"",
		"\ufffd":                 "\"\ufffd\"",
		"a\xffb":                 "\"a\ufffdb\"",
		"\xed\xa0\x80":           `"\ud800"`,
		"\xed\xbf\xbf":           `"\udfff"`,
		"x\xed\xaa\xbc":          `"x\udabc"`,
		"\xed\xa0":               "\"\ufffd\ufffd\"",
		"\xed\x9f\xbf":           "\"\ud7ff\"",
	} {
		got := string(AppendString(nil, in))
		require.Equal(t, want, got)
		require.NoError(t, Strict([]byte(got)))
	}
}

func TestUnquote(t *testing.T) {
	for in, want := range map[string]string{
		`""`: "", `"a"`: "a", `"\"\\\/\b\f\n\r\t"`: "\"\\/\b\f\n\r\t", `"\u00e9\uD83D\uDE00"`: "é😀",
		`"\ud800"`: "\xed\xa0\x80", `"\ud800\ud83d\ude00"`: "\xed\xa0\x80😀", `"\udc00\ud800"`: "\xed\xb0\x80\xed\xa0\x80",
		`"\ud800\n"`: "\xed\xa0\x80\n", `"\ud800\u0041"`: "\xed\xa0\x80A",
	} {
		got, ok := Unquote([]byte(in))
		require.True(t, ok, in)
		require.Equal(t, want, got)
	}
	for _, in := range []string{``, `"`, `a`, `"a`, `"a" `, `1`, `null`, `"\x"`, "\"\xff\"", "\"\n\"", `"a"b"`} {
		_, ok := Unquote([]byte(in))
		require.False(t, ok, in)
	}
}

// FuzzText: what Unquote reads, AppendString writes so that it is read again as
// the same; and both agree with jsontext where that has a view.
func FuzzText(f *testing.F) {
	for _, seed := range []string{`"a\u0000\ud800\ud83d\ude00é"`, `"<\/>"`, "\xff", "\xed\xa0\x80"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		written := AppendString(nil, string(in))
		require.NoError(t, Strict(written))
		if utf8.Valid(in) {
			text, ok := Unquote(written)
			require.True(t, ok)
			require.Equal(t, string(in), text)
		}
		text, ok := Unquote(in)
		if !ok {
			return
		}
		again, ok := Unquote(AppendString(nil, text))
		require.True(t, ok)
		require.Equal(t, text, again)
		if want, err := jsontext.AppendUnquote(nil, in); err == nil {
			require.Equal(t, string(want), text)
		}
	})
}
