package house

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/internal/config"
)

const root = "../.."

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, name))
	require.NoError(t, err)
	return string(b)
}

// documents are the pages that a person reads.
func documents(t *testing.T) []string {
	t.Helper()
	var pages []string
	require.NoError(t, filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, ".md") {
			rel, err := filepath.Rel(root, path)
			require.NoError(t, err)
			pages = append(pages, rel)
		}
		return err
	}))
	return pages
}

var link = regexp.MustCompile(`\]\(([^)#\s]+)(#[^)]*)?\)`)

func TestLinksLeadSomewhere(t *testing.T) {
	for _, page := range documents(t) {
		for _, m := range link.FindAllStringSubmatch(read(t, page), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			_, err := os.Stat(filepath.Join(root, filepath.Dir(page), m[1]))
			require.NoError(t, err, "%s links to %s", page, m[1])
		}
	}
}

// blocks gives the fenced blocks of a language on a page.
func blocks(page, language string) (found []string) {
	for _, part := range strings.Split(page, "```"+language+"\n")[1:] {
		code, _, _ := strings.Cut(part, "```")
		found = append(found, code)
	}
	return found
}

func TestReadmeShowsTheModuleThatIsTested(t *testing.T) {
	code := blocks(read(t, "README.md"), "go")
	require.Len(t, code, 1)
	_, source, _ := strings.Cut(read(t, "guest/internal/denytools/main.go"), "\npackage main\n")
	require.Equal(t, "package main\n"+source, code[0])
	require.Less(t, strings.Count(code[0], "\n"), 36, "under 30 lines without the blank ones and the braces")
}

// What the pages about the library show stands, line by line, in a test that runs.
func TestTheLibrarysPagesShowCodeThatRuns(t *testing.T) {
	var run strings.Builder
	for _, pattern := range []string{"gateway/example*_test.go", "gateway/middleware/example*_test.go"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, file := range files {
			b, err := os.ReadFile(file)
			require.NoError(t, err)
			run.WriteString(unindented(string(b)))
		}
	}
	for _, page := range []string{"docs/library.md", "gateway/README.md", "gateway/middleware/README.md"} {
		shown := blocks(read(t, page), "go")
		require.NotEmpty(t, shown, page)
		for _, code := range shown {
			require.Contains(t, run.String(), unindented(code), page)
		}
		for _, output := range blocks(read(t, page), "text") {
			require.Contains(t, run.String(), commented(output), page)
		}
	}
}

func unindented(code string) string {
	var b strings.Builder
	for line := range strings.Lines(code) {
		b.WriteString(strings.TrimLeft(line, "\t"))
	}
	return b.String()
}

// commented is a text as the output of an example.
func commented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("// " + line)
	}
	return b.String()
}

// The examples of weir.yaml must load: what is documented is what is served.
func TestDocumentedConfigurationsLoad(t *testing.T) {
	env := func(string) (string, bool) { return "value", true }
	for _, page := range documents(t) {
		for i, yaml := range blocks(read(t, page), "yaml") {
			if !strings.HasPrefix(yaml, "version:") {
				yaml = "version: 1\n" + yaml // a manual page shows its part of the file
			}
			yaml = strings.ReplaceAll(yaml, `"…"`, strings.Repeat("0", 64)) // a digest
			file, err := config.Parse(page, []byte(yaml), env)
			require.NoError(t, err, "%s, block %d", page, i+1)
			_, err = file.With(config.Flags{})
			require.NoError(t, err, "%s, block %d", page, i+1)
		}
	}
}

func TestReadmeShowsTheTwoCommands(t *testing.T) {
	for _, command := range []string{"go run ./cmd/weir demo", "go test ./..."} {
		require.Contains(t, read(t, "README.md"), command)
	}
}

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	for _, p := range packages(t) {
		require.NotEmpty(t, p.Doc, "%s has no package comment", p.ImportPath)
	}
}

// A package comment promises; an example that runs shows.
func TestEveryPackageShowsHowItIsUsed(t *testing.T) {
	without := []string{
		"examples", "internal/house", "internal/parity", // export nothing
		"examples/internal/moduletest", "examples/internal/readme", "internal/need", // are called by a running test only
	}
	for _, p := range packages(t) {
		pkg := strings.TrimPrefix(p.ImportPath, module+"/")
		if p.Name == "main" || slices.Contains(without, pkg) {
			continue
		}
		tests, err := filepath.Glob(filepath.Join(p.Dir, "*_test.go")) // whatever system they are for
		require.NoError(t, err)
		shown := slices.ContainsFunc(tests, func(file string) bool {
			b, err := os.ReadFile(file)
			require.NoError(t, err)
			return strings.Contains(string(b), "\nfunc Example")
		})
		require.True(t, shown, "%s has no Example", p.ImportPath)
	}
}
