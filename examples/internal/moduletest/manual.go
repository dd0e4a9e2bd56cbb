package moduletest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
)

// sections are what a manual page has, in this order.
var sections = []string{"Name", "What it does", "Configuration", "Hooks", "Examples", "Bugs"}

// example is a command of a manual page and what it prints.
type example struct {
	inv  abi.Invocation
	want string
}

// ManualPage checks that a README.md has its sections, and that its examples print
// what it says they print. Examples stand in "console" blocks:
//
//	$ printf %s 'PAYLOAD' | weir invoke NAME --event E --phase P --payload - examples/interceptors
//	RESULT
//
// with --config 'JSON' where wanted, and --settings, which is not looked at. The milliseconds of durationMs are not
// compared. What the examples log stands, all together, in a "log" block.
//
// Invoke calls an interceptor; logged returns what has been logged since it was
// asked last.
func ManualPage(t *testing.T, invoke func(context.Context, abi.Invocation) (abi.Result, error), logged func() []string) {
	t.Helper()
	const file = "README.md"
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	page := string(raw)
	from := 0
	for _, title := range sections {
		at := strings.Index(page[from:], "\n## "+title+"\n")
		require.GreaterOrEqual(t, at, 0, "%s has no section %q after the one before it", file, title)
		from += at
	}
	var log []string
	n := 0
	for _, block := range blocks(page, "console") {
		examples, err := readExamples(block)
		require.NoError(t, err)
		for _, e := range examples {
			logged()
			got, err := invoke(t.Context(), e.inv)
			require.NoError(t, err)
			require.Equal(t, undated(e.want), undated(string(got.AppendJSON(nil))))
			log = append(log, logged()...)
			n++
		}
	}
	require.Positive(t, n, "%s has no example", file)
	var said []string
	for _, block := range blocks(page, "log") {
		for line := range strings.Lines(block) {
			said = append(said, "info: "+strings.TrimSuffix(line, "\n"))
		}
	}
	require.Equal(t, said, log)
}

var duration = regexp.MustCompile(`"durationMs":\d+`)

func undated(result string) string { return duration.ReplaceAllString(result, `"durationMs":0`) }

// blocks returns the fenced blocks of a language.
func blocks(page, language string) (all []string) {
	for {
		_, after, ok := strings.Cut(page, "```"+language+"\n")
		if !ok {
			return all
		}
		block, rest, _ := strings.Cut(after, "```")
		all = append(all, block)
		page = rest
	}
}

// readExamples reads the commands of a block that call an interceptor; others,
// such as the one that builds, are left alone.
func readExamples(block string) (all []example, err error) {
	rows := strings.Split(strings.TrimSpace(block), "\n")
	for i, row := range rows {
		command, ok := strings.CutPrefix(row, "$ ")
		if !ok || !strings.Contains(command, "weir invoke ") {
			continue
		}
		inv, err := readCommand(command)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", command, err)
		}
		if i+1 == len(rows) {
			return nil, fmt.Errorf("%s: no output follows", command)
		}
		all = append(all, example{inv, rows[i+1]})
	}
	return all, nil
}

func readCommand(command string) (abi.Invocation, error) {
	var inv abi.Invocation
	words, err := shellWords(command)
	if err != nil {
		return inv, err
	}
	if len(words) < 7 || words[0] != "printf" || words[1] != "%s" || words[3] != "|" || words[4] != "weir" || words[5] != "invoke" {
		return inv, errors.New("it is not printf %s PAYLOAD | weir invoke NAME …")
	}
	inv.Payload, inv.Name = json.RawMessage(words[2]), words[6]
	for rest := words[7:]; len(rest) > 1 && rest[0] != "--"; rest = rest[2:] {
		switch rest[0] {
		case "--event":
			inv.Event = rest[1]
		case "--phase":
			inv.Phase = abi.Phase(rest[1])
		case "--config":
			inv.Config = json.RawMessage(rest[1])
		case "--payload", "--settings":
		default:
			return inv, fmt.Errorf("%s is not a flag that is known here", rest[0])
		}
	}
	return inv, nil
}

// shellWords splits a command at spaces. Single quotes keep what is in them.
func shellWords(s string) (words []string, err error) {
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimSpace(s) {
		word, rest, ok := s, "", true
		if quoted, is := strings.CutPrefix(s, "'"); is {
			word, rest, ok = strings.Cut(quoted, "'")
		} else {
			word, rest, _ = strings.Cut(s, " ")
		}
		if !ok {
			return nil, errors.New("a quote is not closed")
		}
		words, s = append(words, word), rest
	}
	return words, nil
}
