package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/internal/guestbuild"
	"github.com/weir-mcp/weir/internal/need"
)

// exampleModules is a folder with modules of examples/, which the built weir
// has compiled once: on a slow machine that may take longer than a gateway waits
// for its modules.
func exampleModules(t testing.TB) string {
	t.Helper()
	examples.Do(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 5*time.Minute)
		defer cancel()
		dir := filepath.Join(built.dir, "examples")
		for _, name := range exampleNames {
			_, err := guestbuild.Copy(ctx, guestbuild.Module+"/examples/"+name, filepath.Join(dir, name+".wasm"))
			require.NoError(t, err, name)
		}
		eventually(t, "the examples are compiled", func() bool {
			o := runBinary(t, "", "list", "--json", dir)
			var listed listing
			require.NoError(t, json.Unmarshal([]byte(o.out), &listed), o.errors)
			for _, f := range listed.Files {
				require.Empty(t, f.Error)
			}
			return len(listed.Interceptors) == len(exampleNames)
		})
		examplesDir = dir
	})
	require.NotEmpty(t, examplesDir, "the examples could not be built; see the first test that asked")
	return examplesDir
}

var (
	examples     sync.Once
	examplesDir  string
	exampleNames = []string{"audit-trail", "pii-redactor", "secret-scanner"}
)

// plainFolder is a new folder without digits in its path, in which a redactor
// could see a number.
func plainFolder(t testing.TB) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(os.TempDir())
	require.NoError(t, err)
	name := []byte("weir-files-")
	for range 12 {
		name = append(name, byte('a'+rand.IntN(26)))
	}
	dir := filepath.Join(root, string(name))
	require.NoError(t, os.Mkdir(dir, 0o700))
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// githubToken has the form of a token, and is none. It is put together here so
// that no scanner of source takes this file for a leak.
func githubToken() string {
	const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	token := []byte("gh" + "p_")
	for i := range 36 {
		token = append(token, alphabet[(i*i*7+i*13+5)%len(alphabet)])
	}
	return string(token)
}

// requireBlocked says that a validator blocked, and returns the error's data.
func requireBlocked(t *testing.T, err error) string {
	t.Helper()
	failure, ok := errors.AsType[*jsonrpc.Error](err)
	require.True(t, ok, "%v", err)
	require.EqualValues(t, -32602, failure.Code)
	require.Contains(t, string(failure.Data), `"reason":"validation_failed"`)
	return string(failure.Data)
}

// TestFilesystemServer is the main job: the example modules in a folder, the
// gateway, and npm's filesystem server behind it.
func TestFilesystemServer(t *testing.T) {
	t.Parallel()
	server := need.NPM(t, "mcp-server-filesystem")
	modules := exampleModules(t)
	dir := plainFolder(t)
	backend := append(server, dir)
	c := connect(t, append([]string{weirBinary(t), "gateway", "--hosts", modules, "--"}, backend...), "2025-06-18")
	at := func(name string) string { return filepath.Join(dir, name) }
	onDisk := func(name string) string {
		b, err := os.ReadFile(at(name))
		require.NoError(t, err)
		return string(b)
	}
	save := func(name, content string) (*mcp.CallToolResult, error) {
		return c.CallTool(t.Context(), &mcp.CallToolParams{Name: "write_file", Arguments: map[string]any{"path": at(name), "content": content}})
	}

	t.Run("a payment card arrives redacted on disk", func(t *testing.T) {
		card := "4111 1111" + " 1111 1111"
		_, err := save("order.txt", "Ann paid with "+card+".\nThanks & <bye>\n")
		require.NoError(t, err)
		require.Equal(t, "Ann paid with [payment card].\nThanks & <bye>\n", onDisk("order.txt"))
		require.NotContains(t, c.errs.String(), card)
	})

	t.Run("a token is refused before the backend sees it", func(t *testing.T) {
		token := githubToken()
		_, err := save("deploy.sh", "export T="+token+"\n")
		blocked := requireBlocked(t, err)
		require.Contains(t, blocked, `"interceptor":"secret-scanner"`)
		require.Contains(t, blocked, "arguments.content", "where it lies")
		require.NotContains(t, blocked, token)
		require.NoFileExists(t, at("deploy.sh"))
		require.NotContains(t, c.errs.String(), token, "nor does the log say it")
	})

	t.Run("a read comes back redacted, in content and structuredContent", func(t *testing.T) {
		write(t, dir, "mail.txt", "Write to ann@example.com, please.\n")
		result, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "read_text_file", Arguments: map[string]any{"path": at("mail.txt")}})
		require.NoError(t, err)
		require.Equal(t, "Write to [email], please.\n", result.Content[0].(*mcp.TextContent).Text)
		structured, err := json.Marshal(result.StructuredContent)
		require.NoError(t, err)
		require.JSONEq(t, `{"content":"Write to [email], please.\n"}`, string(structured))
	})

	t.Run("a secret on disk does not come back", func(t *testing.T) {
		write(t, dir, "token.txt", githubToken()+"\n")
		_, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "read_text_file", Arguments: map[string]any{"path": at("token.txt")}})
		require.Contains(t, requireBlocked(t, err), `"mayHaveRun":true`)
	})

	t.Run("ordinary files pass untouched", func(t *testing.T) {
		content := "line <1> & \"two\"\r\n\ttab \\ / é 😀 \u2028 1.0 1e400\n" + long(100<<10)
		_, err := save("plain.txt", content)
		require.NoError(t, err)
		require.Equal(t, content, onDisk("plain.txt"))
		require.Equal(t, content, c.call("read_text_file", map[string]any{"path": at("plain.txt")}, nil))
	})

	t.Run("the trail says who called what, without payloads", func(t *testing.T) {
		eventually(t, "the audit trail", func() bool { return strings.Contains(c.errs.String(), "write_file") })
		require.NotContains(t, c.errs.String(), "ann@example.com")
	})
}

// TestUntouchedByExamples compares what the real modules leave alone with a
// direct run, byte by byte.
func TestUntouchedByExamples(t *testing.T) {
	t.Parallel()
	server := need.NPM(t, "mcp-server-filesystem")
	modules := exampleModules(t)
	dir := plainFolder(t)
	write(t, dir, "a.txt", "caf\u00e9 <b> & \u2028 9007199254740993 1e400 \"quoted\" \\ /\n")
	exchange := conversation{clientReplies, func(s *rawSession) {
		s.call(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"raw","version":"0"}}}`)
		s.send(initializedNote)
		s.call(rpc(1, "tools/list", ""))
		for i, call := range []string{
			toolParams("read_text_file", `{"path":"`+dir+`/a.txt","head":1.0}`),
			toolParams("read_text_file", `{"path":"`+dir+`/none.txt"}`),
			toolParams("list_directory", `{"path":"`+dir+`"}`),
			toolParams("search_files", `{"path":"`+dir+`","pattern":"*.txt"}`),
			toolParams("list_allowed_directories", `{}`),
			toolParams("read_text_file", `{"path":"/etc/passwd"}`),
			toolParams("no_such_tool", `{"a":{"b":[1.0,"\u003c"]}}`),
		} {
			s.call(rpc(fmt.Sprint(10+i), "tools/call", call))
		}
	}}
	backend := append(server, dir)
	direct := exchange.hold(t, backend)
	direct.kill()
	through := exchange.hold(t, append([]string{weirBinary(t), "gateway", "--hosts", modules, "--"}, backend...))
	through.end()
	requireSame(t, direct.masked(), through.masked())
}
