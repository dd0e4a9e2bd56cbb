package server_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/leak"
	"github.com/weir-mcp/weir/runtime/library"
	"github.com/weir-mcp/weir/runtime/server"
)

// desk is what the tests serve: one interceptor for each row of the error table,
// and some that answer.
func desk(t testing.TB) *library.Library {
	t.Helper()
	lib := library.New(library.Options{})
	calls := abi.On(abi.Request, abi.ToolsCall)
	fails := func(name string, reason abi.Reason) library.Native {
		return library.Validator(name, calls, func(context.Context, *abi.Invocation) (library.Verdict, error) {
			return library.Verdict{}, abi.Failed(name, abi.Request, reason, errors.New("secret words of the guest"))
		})
	}
	echo := library.Mutator("echo", abi.OnBoth("*"), func(_ context.Context, inv *abi.Invocation) (json.RawMessage, error) {
		return inv.Payload, nil
	})
	echo.RequestPriority = new(int32(-5))
	natives := []library.Native{
		library.Check("no-rm", calls, func(payload json.RawMessage) bool { return !bytes.Contains(payload, []byte("rm -rf")) }),
		echo,
		library.Mutator("leave", calls, nilMutation),
		library.Sink("book", abi.On(abi.Response, "tools/*"), func(context.Context, *abi.Invocation) error { return nil }),
		library.Validator("whoami", calls, func(_ context.Context, inv *abi.Invocation) (library.Verdict, error) {
			who, _ := json.Marshal(inv.Context)
			return library.Verdict{Valid: true, Info: who}, nil
		}),
		library.Validator("sleeper", calls, func(ctx context.Context, _ *abi.Invocation) (library.Verdict, error) {
			<-ctx.Done()
			return library.Verdict{}, ctx.Err()
		}),
		library.Check("crasher", calls, func(json.RawMessage) bool { panic("secret words of the guest") }),
		{
			Name: "strict-config", Type: abi.Validation, Hooks: calls,
			ConfigSchema: json.RawMessage(`{"type":"object","properties":{"deny":{"type":"array","items":{"type":"string"}}},"additionalProperties":false}`),
			Handler: func(context.Context, *abi.Invocation) (abi.Result, error) {
				return abi.Result{Valid: true}, nil
			},
		},
	}
	for _, reason := range []abi.Reason{
		abi.ReasonTrap, abi.ReasonExit, abi.ReasonMemory, abi.ReasonStack, abi.ReasonFuel, abi.ReasonBusy,
		abi.ReasonPayloadTooLarge, abi.ReasonOutputTooLarge, abi.ReasonBadOutput, abi.ReasonGuest,
		abi.ReasonUnavailable, abi.ReasonCancelled,
	} {
		natives = append(natives, fails("fails-"+string(reason), reason))
	}
	for _, n := range natives {
		require.NoError(t, lib.Register(n))
	}
	return lib
}

func nilMutation(context.Context, *abi.Invocation) (json.RawMessage, error) { return nil, nil }

// fixedList lists what a test says.
type fixedList struct {
	all    []abi.Descriptor
	invoke func(ctx context.Context, inv abi.Invocation) (abi.Result, error)
}

func (f *fixedList) List() []abi.Descriptor { return append([]abi.Descriptor(nil), f.all...) }

func (f *fixedList) Invoke(ctx context.Context, inv abi.Invocation) (abi.Result, error) {
	return f.invoke(ctx, inv)
}

// wireClient speaks raw JSON to a server, one message at a time.
type wireClient interface {
	// call sends a message and gives the answer to it.
	call(t testing.TB, message string) string
}

// lines is a raw stdio connection.
type lines struct {
	in   io.WriteCloser
	raw  io.ReadCloser
	out  *bufio.Scanner
	done chan error
	stop context.CancelFunc
}

func dialLines(t testing.TB, s *server.Server) *lines {
	t.Helper()
	toServer, in := io.Pipe()
	out, fromServer := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	l := &lines{in: in, raw: out, out: bufio.NewScanner(out), done: make(chan error, 1), stop: cancel}
	l.out.Buffer(nil, 64<<20)
	go func() {
		err := s.ServeStdio(ctx, toServer, fromServer)
		_ = fromServer.Close()
		l.done <- err
	}()
	t.Cleanup(func() {
		cancel()
		_ = in.Close()
		_ = out.Close()
	})
	return l
}

func (l *lines) send(t testing.TB, message string) {
	t.Helper()
	_, err := io.WriteString(l.in, message+"\n")
	require.NoError(t, err)
}

func (l *lines) receive(t testing.TB) string {
	t.Helper()
	require.True(t, l.out.Scan(), "the server closed the connection: %v", l.out.Err())
	return l.out.Text()
}

func (l *lines) call(t testing.TB, message string) string {
	t.Helper()
	l.send(t, message)
	return l.receive(t)
}

func (l *lines) handshake(t testing.TB) string {
	t.Helper()
	answer := l.call(t, `{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"0"}}}`)
	l.send(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return answer
}

// transport is the connection for a client of go-sdk.
func (l *lines) transport() mcp.Transport {
	return &mcp.IOTransport{Reader: l.raw, Writer: l.in}
}

// posts is a raw HTTP client.
type posts struct {
	url     string
	headers map[string]string
	client  *http.Client
}

func dialHTTP(t testing.TB, s *server.Server) *posts {
	t.Helper()
	web := httptest.NewServer(s.Handler())
	t.Cleanup(web.Close)
	return &posts{url: web.URL, client: web.Client(), headers: map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
	}}
}

func (p *posts) post(ctx context.Context, message string, headers map[string]string) (*http.Response, string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, strings.NewReader(message))
	if err != nil {
		return nil, "", err
	}
	for _, set := range []map[string]string{p.headers, headers} {
		for name, value := range set {
			if name == "Host" {
				r.Host = value
			}
			r.Header.Set(name, value)
		}
	}
	response, err := p.client.Do(r)
	if err != nil {
		return nil, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response, string(body), err
}

func (p *posts) call(t testing.TB, message string) string {
	t.Helper()
	_, body, err := p.post(t.Context(), message, nil)
	require.NoError(t, err)
	return body
}

// everywhere runs a test over each transport in each era, raw.
func everywhere(t *testing.T, set server.Interceptors, o server.Options, test func(t *testing.T, c wireClient)) {
	t.Helper()
	t.Run("stdio", func(t *testing.T) {
		l := dialLines(t, server.New(set, o))
		l.handshake(t)
		test(t, l)
	})
	t.Run("http", func(t *testing.T) { test(t, dialHTTP(t, server.New(set, o))) })
	t.Run("http 2026-07-28", func(t *testing.T) {
		test(t, &statelessPosts{dialHTTP(t, server.New(set, o))})
	})
	t.Run("stdio 2026-07-28", func(t *testing.T) {
		test(t, &statelessLines{dialLines(t, server.New(set, o))})
	})
}

const statelessMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// stateless puts the metadata of 2026-07-28 into a message.
func stateless(message string) string {
	if strings.Contains(message, `"params":{}`) {
		return strings.Replace(message, `"params":{}`, `"params":{`+statelessMeta+`}`, 1)
	}
	if strings.Contains(message, `"params":{`) {
		return strings.Replace(message, `"params":{`, `"params":{`+statelessMeta+`,`, 1)
	}
	return strings.TrimSuffix(message, "}") + `,"params":{` + statelessMeta + `}}`
}

func methodOf(message string) string {
	var m struct{ Method string }
	_ = json.Unmarshal([]byte(message), &m)
	return m.Method
}

type statelessPosts struct{ *posts }

func (p *statelessPosts) call(t testing.TB, message string) string {
	t.Helper()
	_, body, err := p.post(t.Context(), stateless(message), map[string]string{
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": methodOf(message),
	})
	require.NoError(t, err)
	return body
}

type statelessLines struct{ *lines }

func (l *statelessLines) call(t testing.TB, message string) string {
	t.Helper()
	return l.lines.call(t, stateless(message))
}

// The custom methods as a client of go-sdk sees them.
type rawParams struct {
	mcp.ParamsBase
	raw json.RawMessage
}

// MarshalJSON puts the metadata in, which the SDK sets for 2026-07-28.
func (p *rawParams) MarshalJSON() ([]byte, error) {
	if len(p.GetMeta()) == 0 {
		return p.raw, nil
	}
	meta, err := json.Marshal(p.GetMeta())
	if err != nil {
		return nil, err
	}
	comma := ","
	if string(p.raw) == "{}" {
		comma = ""
	}
	return []byte(`{"_meta":` + string(meta) + comma + string(p.raw[1:])), nil
}

type rawResult struct {
	mcp.ResultBase
	raw json.RawMessage
}

func (r *rawResult) UnmarshalJSON(b []byte) error {
	r.raw = bytes.Clone(b)
	return nil
}

func sdkClient(t testing.TB) *mcp.Client {
	t.Helper()
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "0"}, nil)
	require.NoError(t, mcp.AddSendingCustomMethod[*rawParams, *rawResult](c, abi.MethodList))
	require.NoError(t, mcp.AddSendingCustomMethod[*rawParams, *rawResult](c, abi.MethodInvoke))
	return c
}

func invokeSDK(ctx context.Context, s *mcp.ClientSession, inv abi.Invocation) (abi.Result, error) {
	r, err := mcp.CallCustomMethod[*rawParams, *rawResult](ctx, s, abi.MethodInvoke, &rawParams{raw: inv.AppendJSON(nil)})
	if err != nil {
		return abi.Result{}, err
	}
	return abi.ReadResult(r.raw)
}

// noLeaks fails the test when goroutines of this package or the SDK are left.
func noLeaks(t testing.TB) {
	t.Helper()
	leak.Goroutines(t, "runtime/server.(", "internal/jsonrpc2.")
}
