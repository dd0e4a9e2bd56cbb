package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// CI leaves nothing out: a test skips by package need, which fails where WEIR_CI is
// set, and by nothing else.
func TestOnlyNeedSkips(t *testing.T) {
	skips := func(path string) (at []string) {
		files := token.NewFileSet()
		parsed, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && (s.Sel.Name == "Skip" || s.Sel.Name == "Skipf" || s.Sel.Name == "SkipNow") {
				at = append(at, files.Position(s.Pos()).String())
			}
			return true
		})
		return at
	}
	need := filepath.Join(root, "internal", "need")
	require.NoError(t, filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil || filepath.Dir(path) == need:
			return err
		case d.IsDir() && d.Name() == ".git":
			return filepath.SkipDir
		case strings.HasSuffix(path, ".go"):
			require.Empty(t, skips(path), "call need.Missing instead")
		}
		return nil
	}))
	require.NotEmpty(t, skips(filepath.Join(need, "need.go")), "what is looked for can be found")
	require.Contains(t, read(t, ".ci/run"), "export WEIR_CI=1")
}
