package abi_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
)

func TestAppendStringEscapesWhatItMust(t *testing.T) {
	for text, want := range map[string]string{
		"":               `""`,
		"plain":          `"plain"`,
		`a "b" \c`:       `"a \"b\" \\c"`,
		"\n\r\t":         `"\n\r\t"`,
		"\x00\b\f\x1f":   `"\u0000\u0008\u000c\u001f"`,
		"<>&'/":          `"<>&'/"`,
		"\x7f\u2028ü😀":   "\"\x7f\u2028ü😀\"",
		"\xffa\xc3":      "\"\uFFFDa\uFFFD\"",
		"\uFFFD is text": "\"\uFFFD is text\"",
	} {
		require.Equal(t, "x"+want, string(abi.AppendString([]byte("x"), text)))
	}
}

func FuzzAppendString(f *testing.F) {
	for _, seed := range []string{"", "a", "\x00", "\"\\", "ü\xff", "\xed\xa0\x80"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var read string
		require.NoError(t, json.Unmarshal(abi.AppendString(nil, text), &read))
		require.Equal(t, []rune(text), []rune(read)) // each byte that is no UTF-8 is one U+FFFD in both
	})
}
