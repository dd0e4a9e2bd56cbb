package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/examples/internal/moduletest"
)

// asServer makes the test binary be the server, so that tests start a process
// without building one.
const asServer = "NATIVE_HOST_IS_THE_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(asServer) != "" {
		main()
	}
	os.Exit(m.Run())
}

const patience = 30 * time.Second

type params struct {
	mcp.ParamsBase
	raw json.RawMessage
}

func (p *params) MarshalJSON() ([]byte, error) { return p.raw, nil }

type result struct {
	mcp.ResultBase
	raw json.RawMessage
}

func (r *result) UnmarshalJSON(b []byte) error {
	r.raw = bytes.Clone(b)
	return nil
}

// session is a client of go-sdk that has started the server.
type session struct{ *mcp.ClientSession }

func start(t *testing.T, args ...string) session {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asServer+"=1")
	cmd.Stderr = t.Output()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "0"}, nil)
	require.NoError(t, mcp.AddSendingCustomMethod[*params, *result](client, abi.MethodList))
	require.NoError(t, mcp.AddSendingCustomMethod[*params, *result](client, abi.MethodInvoke))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s, err := client.Connect(ctx, &mcp.CommandTransport{Command: cmd}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return session{s}
}

func (s session) call(t *testing.T, method, raw string) json.RawMessage {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := mcp.CallCustomMethod[*params, *result](ctx, s.ClientSession, method, &params{raw: json.RawMessage(raw)})
	require.NoError(t, err)
	return r.raw
}

func (s session) invoke(t *testing.T, inv abi.Invocation) abi.Result {
	t.Helper()
	r, err := abi.ReadResult(s.call(t, abi.MethodInvoke, string(inv.AppendJSON(nil))))
	require.NoError(t, err)
	return r
}

func TestOverStdio(t *testing.T) {
	s := start(t)
	capabilities, err := json.Marshal(s.InitializeResult().Capabilities)
	require.NoError(t, err)
	require.JSONEq(t, `{"extensions":{"io.modelcontextprotocol/interceptors":{"supportedEvents":["prompts/get","resources/read","tools/call"]}}}`, string(capabilities))

	page, err := abi.ReadPage(s.call(t, abi.MethodList, `{}`))
	require.NoError(t, err)
	require.Empty(t, page.Skipped)
	require.Len(t, page.Interceptors, 2)
	require.Equal(t, "deny-list", page.Interceptors[0].Name)
	require.Equal(t, "stamp-meta", page.Interceptors[1].Name)
	require.Equal(t, int32(1000), page.Interceptors[1].PriorityHint.For(abi.Response))

	for _, c := range []struct{ payload, config, path string }{
		{`{"name":"echo","arguments":{"text":"hello"}}`, ``, ``},
		{`{"name":"echo"}`, ``, ``},
		{`{"name":"shell"}`, ``, `$.name`},
		{`{"name":"sh\u0065ll"}`, ``, `$.name`},
		{`{"method":"tools/call","params":{"name":"shell"}}`, ``, `$.name`},
		{`{"arguments":{}}`, ``, `$.name`},
		{`{"name":"q","arguments":{"a":[{"b":"x; Drop Table y"}]}}`, ``, `$.arguments.a[0].b`},
		{`{"name":"q","arguments":{"rm -rf /":1}}`, ``, `$.arguments["rm -rf /"]`},
		{`{"name":"shell"}`, `{}`, ``},
		{`{"name":"shell"}`, `{"tools":["echo"]}`, ``},
		{`{"name":"echo"}`, `{"tools":["echo"]}`, `$.name`},
		{`{"name":"x","arguments":{"y":"ÄRGER"}}`, `{"text":["ärger"]}`, `$.arguments.y`},
	} {
		inv := abi.Invocation{Name: "deny-list", Event: abi.ToolsCall, Phase: abi.Request, Payload: json.RawMessage(c.payload)}
		if c.config != "" {
			inv.Config = json.RawMessage(c.config)
		}
		r := s.invoke(t, inv)
		require.Equal(t, c.path == "", r.Valid, c.payload)
		if c.path != "" {
			require.True(t, r.Blocks())
			require.Len(t, r.Messages, 1)
			require.Equal(t, c.path, r.Messages[0].Path)
		}
	}

	const stamp = `"example.com/governed-by":"native-host"`
	for _, c := range []struct{ payload, want string }{
		{`{}`, `{"_meta":{` + stamp + `}}`},
		{`{"name":"x","n":1.0,"big":9007199254740993,"s":"<>&\u0041"}`, `{"name":"x","n":1.0,"big":9007199254740993,"s":"<>&\u0041","_meta":{` + stamp + `}}`},
		{`{"_meta":{"progressToken":7},"name":"x"}`, `{"_meta":{"progressToken":7,` + stamp + `},"name":"x"}`},
		{`{"_meta":{"example.com/governed-by":"somebody"}}`, `{"_meta":{` + stamp + `}}`},
		{`{"method":"tools/call"}`, `{"method":"tools/call","params":{"_meta":{` + stamp + `}}}`},
		{`{"method":"tools/call","params":{"name":"x"}}`, `{"method":"tools/call","params":{"name":"x","_meta":{` + stamp + `}}}`},
		{`{"_meta":{` + stamp + `}}`, ``},
	} {
		r := s.invoke(t, abi.Invocation{Name: "stamp-meta", Event: abi.ToolsCall, Phase: abi.Request, Payload: json.RawMessage(c.payload)})
		require.Equal(t, c.want != "", r.Modified, c.payload)
		if r.Modified {
			require.Equal(t, c.want, string(r.Payload))
		}
	}
	r := s.invoke(t, abi.Invocation{Name: "stamp-meta", Event: abi.ToolsCall, Phase: abi.Response, Payload: json.RawMessage(`{"content":[]}`)})
	require.Equal(t, `{"content":[],"_meta":{`+stamp+`}}`, string(r.Payload))
}

func TestManualPage(t *testing.T) {
	s := start(t)
	moduletest.ManualPage(t, func(_ context.Context, inv abi.Invocation) (abi.Result, error) {
		return s.invoke(t, inv), nil
	}, func() []string { return nil })
}

func TestFlags(t *testing.T) {
	s := start(t, "-deny-tools", "echo,,sum", "-deny-text", "", "-governed-by", `the "team"`)
	for tool, valid := range map[string]bool{"echo": false, "sum": false, "shell": true} {
		r := s.invoke(t, abi.Invocation{Name: "deny-list", Event: abi.ToolsCall, Phase: abi.Request, Payload: json.RawMessage(`{"name":"` + tool + `","arguments":{"a":"rm -rf"}}`)})
		require.Equal(t, valid, r.Valid, tool)
	}
	r := s.invoke(t, abi.Invocation{Name: "stamp-meta", Event: abi.ToolsCall, Phase: abi.Request, Payload: json.RawMessage(`{}`)})
	require.Equal(t, `{"_meta":{"example.com/governed-by":"the \"team\""}}`, string(r.Payload))
}

func TestWrongUsage(t *testing.T) {
	for want, args := range map[string][]string{
		"loopback":     {"-http", "0.0.0.0:0"},
		"no arguments": {"serve"},
		"not defined":  {"-listen", "x"},
	} {
		var errs bytes.Buffer
		require.Equal(t, 2, run(t.Context(), args, strings.NewReader(""), io.Discard, &errs), args)
		require.Contains(t, errs.String(), want)
	}
	var errs bytes.Buffer
	require.Equal(t, 2, run(t.Context(), []string{"-http", ":0"}, nil, io.Discard, &errs), "all addresses are not the loopback")
	require.Equal(t, 0, run(t.Context(), []string{"-help"}, nil, io.Discard, &errs))
	require.Equal(t, 1, run(t.Context(), []string{"-http", "127.0.0.1:no-such-port"}, nil, io.Discard, &errs))
}

// TestOverHTTP learns the address from what the server says on stderr, as a
// script would.
func TestOverHTTP(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	read, write := io.Pipe()
	code := make(chan int, 1)
	go func() { code <- run(ctx, []string{"-http", "127.0.0.1:0"}, nil, io.Discard, write) }()
	buffer := make([]byte, 256)
	n, err := read.Read(buffer)
	require.NoError(t, err)
	go func() { _, _ = io.Copy(io.Discard, read) }()
	url := regexp.MustCompile(`http://\S+/mcp`).FindString(string(buffer[:n]))
	require.NotEmpty(t, url, "%s", buffer[:n])

	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(
		`{"jsonrpc":"2.0","id":1,"method":"interceptor/invoke","params":{"name":"stamp-meta","event":"tools/call","phase":"request","payload":{}}}`))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Contains(t, string(body), `"payload":{"_meta":{"example.com/governed-by":"native-host"}}`)

	http.DefaultClient.CloseIdleConnections()
	stop()
	select {
	case got := <-code:
		require.Equal(t, 0, got)
	case <-time.After(patience):
		t.Fatal("it does not end")
	}
	_ = write.Close()
}
