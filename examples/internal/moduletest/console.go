package moduletest

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Console is the output that README.md shows of a command, in a console block
// that has the command behind "$ " and what follows up to the next command.
func Console(t *testing.T, command string) string {
	t.Helper()
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	for _, block := range blocks(string(page), "console") {
		if _, after, ok := strings.Cut("\n"+block, "\n$ "+command+"\n"); ok {
			shown, _, _ := strings.Cut("\n"+after, "\n$ ")
			return strings.TrimPrefix(shown, "\n")
		}
	}
	t.Fatalf("README.md shows no output of %q", command)
	return ""
}
