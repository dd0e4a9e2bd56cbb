package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/internal/need"
)

// The demo with only Go installed: everything in it is real, the backend
// included, and what it prints shows each of the four things it promises.
func TestDemoWithoutNPM(t *testing.T) {
	t.Parallel()
	goTool, err := exec.LookPath("go")
	require.NoError(t, err)
	cmd := exec.Command(weirBinary(t), "demo")
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(goTool))
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	require.NoError(t, err, "%s%s", out, &errs)
	text := string(out)

	require.Contains(t, text, "npm is not here")
	calls := strings.Split(text, "\n\n")
	call := func(n string) string {
		for _, c := range calls {
			if strings.HasPrefix(c, n+". ") {
				return c
			}
		}
		t.Fatalf("call %s is not in\n%s", n, text)
		return ""
	}

	card := call("1")
	require.Contains(t, card, "4111 1111 1111 1111")
	_, saw, _ := strings.Cut(card, "   backend  ")
	require.NotContains(t, saw, "4111", "the backend saw the number")
	require.NotContains(t, saw, "ann@example.com")
	require.Contains(t, saw, "Successfully wrote")
	require.Contains(t, saw, `"example.com/governed-by"`, "the other team's mutation is in the same chain")

	key := call("2")
	require.Contains(t, key, "backend  saw nothing")
	require.Contains(t, key, `"interceptor":"secret-scanner"`)
	_, answer, _ := strings.Cut(key, "   out ")
	require.NotContains(t, answer, "IOSFODNN7", "an error repeats no secret")

	read := call("3")
	_, answer, _ = strings.Cut(read, "   out ")
	require.Contains(t, answer, "Bob")
	require.NotContains(t, answer, "bob@example.org")

	script := call("4")
	require.Contains(t, script, "backend  saw nothing")
	require.Contains(t, script, `"interceptor":"deny-list"`)

	require.Contains(t, text, "To go on:")
	require.NotContains(t, text, os.TempDir()+"/weir-demo", "the demo's folder is nobody's business")
}

// What stays running is there by the time it is announced, and goes when told.
func TestDemoServe(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		need.Missing(t, "a way to interrupt a process from outside", "run it elsewhere than on Windows")
	}
	cmd := exec.Command(weirBinary(t), "demo", "--serve", "--http", "127.0.0.1:0")
	var errs buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	defer cmd.Process.Kill()

	text := ""
	for lines := bufio.NewReader(out); !strings.Contains(text, "go install"); {
		line, err := lines.ReadString('\n')
		require.NoError(t, err, "%s%s", text, &errs)
		text += line
	}
	url := regexp.MustCompile(`http://127\.0\.0\.1:[1-9]\d*/mcp`).FindString(text)
	require.NotEmpty(t, url, text)
	require.Contains(t, text, "weir list "+url)
	_, config, _ := strings.Cut(text, "configuration:\n")
	config, _, _ = strings.Cut(config, "\"go install")
	var client struct {
		MCPServers map[string]struct{ Args []string }
	}
	require.NoError(t, json.Unmarshal([]byte(config), &client), config)
	require.Equal(t, []string{"gateway", "--hosts", url, "--"}, client.MCPServers["governed-files"].Args[:4])

	list := weir(t, "", "list", url)
	require.Zero(t, list.code, list.errors)
	for _, name := range demoModules {
		require.Contains(t, list.out, name)
	}
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	require.NoError(t, cmd.Wait(), "%s", &errs)
}
