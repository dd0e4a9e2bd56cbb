package wire_test

import (
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/internal/wire"
)

func TestClip(t *testing.T) {
	for name, c := range map[string]struct {
		s     string
		limit int
		want  string
	}{
		"nothing":                       {"", 3, ""},
		"shorter":                       {"ab", 3, "ab"},
		"as long as it may be":          {"abc", 3, "abc"},
		"longer":                        {"abcd", 3, "abc…"},
		"a character is kept whole":     {"aé", 3, "aé"},
		"or left off":                   {"abé", 3, "ab…"},
		"one of four bytes":             {"😀😀", 7, "😀…"},
		"no room for the first":         {"😀", 3, "…"},
		"no room at all":                {"abc", 0, "…"},
		"less than no room":             {"abc", -1, "…"},
		"nothing in no room":            {"", -1, ""},
		"not UTF-8":                     {"a\xffb", 3, "ab"},
		"not UTF-8, and longer":         {"a\xff\xfebcd", 4, "ab…"},
		"nothing but parts of a letter": {"\x80\x80\x80\x80", 2, "…"},
		"a letter that has no end":      {"ab\xf0\x9f\x98", 5, "ab"},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, wire.Clip(c.s, c.limit)) })
	}
}

func FuzzClip(f *testing.F) {
	f.Add("abc", 2)
	f.Add("a\xf0\x9f\x98\x80\xff", 3)
	f.Add("", -1)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		got := wire.Clip(s, limit)
		require.True(t, utf8.ValidString(got))
		require.LessOrEqual(t, len(got), max(limit, 0)+len("…"))
		if utf8.ValidString(s) && len(s) <= limit {
			require.Equal(t, s, got)
		}
	})
}
