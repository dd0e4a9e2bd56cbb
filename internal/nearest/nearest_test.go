package nearest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOf(t *testing.T) {
	keys := []string{"hosts", "host", "modules", "tls", "interceptors", "cache", "ops"}
	for _, c := range []struct{ name, want string }{
		{"modlues", "modules"},
		{"MODULES", "modules"},
		{"interzeptorz", "interceptors"},
		{"host", "host"},
		{"hos", "host"}, // of two that are near, the nearer one
		{"cash", "cache"},
		{"xyz", ""}, // three changes are all of tls, and of ops
		{"", ""},
		{"nothing like it", ""},
		{strings.Repeat("x", 1<<20), ""},
	} {
		require.Equal(t, c.want, Of(c.name, keys), c.name)
	}
	require.Empty(t, Of("a", nil))
	require.Equal(t, "abcd", Of("abcx", []string{"abcd", "abce"}), "the first of equals")
}

func TestEdits(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"hosts", "host", 1}, {"modlues", "modules", 1}, {"cache", "cash", 2}, {"abc", "xyz", 3}} {
		require.Equal(t, c.want, edits(c.a, c.b), c)
		require.Equal(t, c.want, edits(c.b, c.a), c)
	}
}
