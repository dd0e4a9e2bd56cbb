package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// weir version names every engine in the build, with its version; the first is
// the one that modules run on.
func TestVersionNamesTheEngines(t *testing.T) {
	out := weir(t, "", "version")
	require.Zero(t, out.code, out.errors)
	lines := strings.Split(strings.TrimSuffix(out.out, "\n"), "\n")
	require.Regexp(t, `^weir \S+$`, lines[0])
	require.Regexp(t, `^engine wazero \d+\.\d+\.\d+ \((compiler|interpreter)\)$`, lines[1])
	engines := lines[1 : 1+len(builtIn)]
	for _, line := range engines[1:] {
		require.Regexp(t, `^engine wasmtime \d+\.\d+\.\d+$`, line)
	}
	require.Equal(t, "module ABI 1", lines[1+len(builtIn)])
	require.Regexp(t, `^go\S+ \w+/\w+$`, lines[2+len(builtIn)])
	require.Len(t, lines, 3+len(builtIn))
}
