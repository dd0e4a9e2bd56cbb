package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
)

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"pii-redactor":           "pii-redactor",
		`say "hi" \o/`:           `say "hi" \o/`,
		"größer, 大":              "größer, 大",
		"a\x1b[31mred":           `a\x1b[31mred`,
		"\x1b]0;title\a":         `\x1b]0;title\a`,
		"one\ntwo":               `one\ntwo`,
		"tab\there":              `tab\there`,
		"right\u202eleft":        `right\u202eleft`,
		"c1\u009b31m":            `c1\u009b31m`,
		"not\xffutf8":            `not\xffutf8`,
		"back\\slash and \x1b[m": `back\slash and \x1b[m`,
	} {
		require.Equal(t, want, printable(in))
	}
}

// A server elsewhere chooses its interceptors' names and descriptions; they may
// not paint on the terminal of whoever looks.
func TestListShowsNoTerminalEscapes(t *testing.T) {
	var out buffer
	evil := "g\x1b[31m\nspoofed"
	target := target{
		interceptors: []abi.Descriptor{{Name: evil, Version: evil, Type: abi.Validation, Description: evil, Hooks: abi.On(abi.Request, evil)}},
		skipped:      []abi.Skipped{{Name: evil, Err: abi.UnknownName(evil)}},
	}
	require.NoError(t, target.print(streams{out: &out}))
	require.False(t, bytes.ContainsRune([]byte(out.String()), '\x1b'), out.String())
	require.NotContains(t, out.String(), "\nspoofed")
}
