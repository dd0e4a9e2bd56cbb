package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/wasmtest"
	"github.com/weir-mcp/weir/internal/wire"
)

// A server under test, as a caller reaches it: raw requests of one era over one
// transport.
type interceptorServer struct {
	t   testing.TB
	ask func(method, params string) string
	log func() string
	// opening is the answer with the capability.
	opening string
}

const callerMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
	`"io.modelcontextprotocol/clientInfo":{"name":"raw","version":"0"},"io.modelcontextprotocol/clientCapabilities":{}}`

func withMeta(params string) string {
	if params == "{}" {
		return "{" + callerMeta + "}"
	}
	return "{" + callerMeta + "," + params[1:]
}

// serveOverStdio starts weir serve and opens a session of 2025-06-18.
func serveOverStdio(t testing.TB, args ...string) *interceptorServer {
	t.Helper()
	s := startRaw(t, append([]string{weirBinary(t), "serve"}, args...), nil)
	opening := s.call(initialize("2025-06-18"))
	s.send(initializedNote)
	id := 0
	return &interceptorServer{t: t, opening: opening, log: s.errs.String, ask: func(method, params string) string {
		t.Helper()
		id++
		return s.call(rpc(id, method, params))
	}}
}

var servedAt = regexp.MustCompile(`http://127\.0\.0\.1:\d+/mcp`)

// serveOverHTTP starts weir serve and speaks to it in one of the two eras.
func serveOverHTTP(t testing.TB, stateless bool, args ...string) *interceptorServer {
	t.Helper()
	s := startRaw(t, append(append([]string{weirBinary(t), "serve"}, args...), "--http", "127.0.0.1:0"), nil)
	var url string
	eventually(t, "it says where it serves", func() bool {
		url = servedAt.FindString(s.errs.String())
		return url != ""
	})
	post := func(method, body string) string {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if stateless {
			r.Header.Set("Mcp-Protocol-Version", "2026-07-28")
			r.Header.Set("Mcp-Method", method)
		} else if method != "initialize" {
			r.Header.Set("Mcp-Protocol-Version", "2025-06-18")
		}
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return string(answer)
	}
	server := &interceptorServer{t: t, log: s.errs.String, ask: func(method, params string) string {
		t.Helper()
		if stateless {
			params = withMeta(params)
		}
		return post(method, rpc(1, method, params))
	}}
	if stateless {
		server.opening = server.ask("server/discover", "{}")
	} else {
		server.opening = post("initialize", initialize("2025-06-18"))
	}
	t.Cleanup(func() {
		s.kill()
		require.Empty(t, s.seen, "over HTTP stdout stays empty")
	})
	return server
}

// names is what it lists, as "name" or "name version".
func (s *interceptorServer) names() []string {
	s.t.Helper()
	answer := s.ask(abi.MethodList, "{}")
	result, ok := wire.Get([]byte(answer), "result")
	require.True(s.t, ok, answer)
	page, err := abi.ReadPage(result)
	require.NoError(s.t, err)
	names := []string{}
	for _, d := range page.Interceptors {
		names = append(names, strings.TrimSpace(d.Name+" "+d.Version))
	}
	return names
}

func (s *interceptorServer) await(names ...string) {
	s.t.Helper()
	var now []string
	defer func() {
		if s.t.Failed() {
			s.t.Logf("listed: %q", now)
		}
	}()
	eventually(s.t, strings.Join(names, ", ")+" are served", func() bool {
		now = s.names()
		return strings.Join(now, ",") == strings.Join(names, ",")
	})
}

func (s *interceptorServer) invoke(name, payload string) string {
	s.t.Helper()
	return s.ask(abi.MethodInvoke, `{"name":"`+name+`","event":"tools/call","phase":"request","payload":`+payload+`}`)
}

// eras runs a test over stdio and over HTTP in both eras.
func eras(t *testing.T, test func(t *testing.T, serve func(args ...string) *interceptorServer)) {
	t.Run("stdio", func(t *testing.T) {
		t.Parallel()
		test(t, func(args ...string) *interceptorServer { return serveOverStdio(t, args...) })
	})
	t.Run("HTTP, 2025-06-18", func(t *testing.T) {
		t.Parallel()
		test(t, func(args ...string) *interceptorServer { return serveOverHTTP(t, false, args...) })
	})
	t.Run("HTTP, 2026-07-28", func(t *testing.T) {
		t.Parallel()
		test(t, func(args ...string) *interceptorServer { return serveOverHTTP(t, true, args...) })
	})
}

// TestServe is weir serve over every transport and era: capability, list, invoke
// and the error table.
func TestServe(t *testing.T) {
	t.Parallel()
	dir := onlyAllowing(t)
	write(t, dir, "notes.txt", "no module")
	write(t, dir, "broken.wasm", "no module either")
	eras(t, func(t *testing.T, serve func(args ...string) *interceptorServer) {
		s := serve(dir)
		capabilities, ok := wire.Get([]byte(s.opening), "result", "capabilities")
		require.True(t, ok, s.opening)
		require.Equal(t, `{"extensions":{"io.modelcontextprotocol/interceptors":{"supportedEvents":["*"]}}}`, string(capabilities))
		require.Equal(t, []string{"wasm-mutation", "wasm-sink", "wasm-validation"}, s.names())
		require.Contains(t, s.log(), "broken.wasm", "the one that does not load is named")
		require.NotContains(t, s.log(), "notes.txt")

		const payload = `{"name":"t","arguments":{"n":9007199254740993,"s":"<&>"}}`
		require.Contains(t, s.invoke("wasm-validation", payload), `"valid":true`)
		require.Contains(t, s.invoke("wasm-mutation", payload), `"payload":`+payload, "the host fills in what is unchanged")
		require.Contains(t, s.invoke("wasm-sink", payload), `"recorded":true`)
		require.Contains(t, s.invoke("nobody", payload), `"code":-32602`)
		require.Contains(t, s.ask(abi.MethodInvoke, `{"name":"wasm-sink","event":"initialize","phase":"request","payload":{}}`), `"error"`)
		require.Contains(t, s.ask("tools/list", "{}"), `"error"`, "no tools")
	})
}

// TestServeWatches drops modules in, replaces and removes them while weir serve
// runs.
func TestServeWatches(t *testing.T) {
	t.Parallel()
	eras(t, func(t *testing.T, serve func(args ...string) *interceptorServer) {
		dir := t.TempDir()
		s := serve(dir)
		require.Empty(t, s.names())
		eventually(t, "one warning of an empty folder", func() bool { return strings.Count(s.log(), `"WARN"`) == 1 })
		require.Contains(t, s.log(), dir)

		versioned := func(version, answer string) []byte {
			d := wasmtest.Validator("guard")
			d.Version = version
			return answering(d, answer)
		}
		const yes, no = `{"result":{"valid":true}}`, `{"result":{"valid":false}}`
		placeModule(t, dir, "guard", versioned("1", yes))
		s.await("guard 1")
		require.Contains(t, s.invoke("guard", "{}"), `"valid":true`)

		placeModule(t, dir, "guard", versioned("2", no))
		s.await("guard 2")
		require.Contains(t, s.invoke("guard", "{}"), `"valid":false`)

		// A bad new version leaves the good one.
		placeModule(t, dir, "guard", []byte("\x00asm\x01\x00\x00\x00 and then nonsense"))
		eventually(t, "the bad version is reported", func() bool {
			return strings.Contains(s.log(), "guard.wasm") && strings.Contains(s.log(), `"ERROR"`) || strings.Count(s.log(), `"WARN"`) > 1
		})
		require.Equal(t, []string{"guard 2"}, s.names())
		require.Contains(t, s.invoke("guard", "{}"), `"valid":false`)

		placeModule(t, dir, "other", wasmtest.Allowing("other"))
		s.await("guard 2", "other")
		placeModule(t, dir, "guard", versioned("3", yes))
		s.await("guard 3", "other")
		require.NoError(t, os.Remove(filepath.Join(dir, "other.wasm")))
		s.await("guard 3")
		require.Contains(t, s.invoke("other", "{}"), `"code":-32602`)
	})
}

// The custom methods of an interceptor server, as a client of go-sdk calls them.
type customParams struct {
	mcp.ParamsBase
	raw json.RawMessage
}

func (p *customParams) MarshalJSON() ([]byte, error) { return p.raw, nil }

type customResult struct {
	mcp.ResultBase
	raw json.RawMessage
}

func (r *customResult) UnmarshalJSON(b []byte) error {
	r.raw = bytes.Clone(b)
	return nil
}

// TestServeToSDKClient lists and invokes with go-sdk's own custom methods.
func TestServeToSDKClient(t *testing.T) {
	t.Parallel()
	client := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil)
	for _, method := range []string{abi.MethodList, abi.MethodInvoke} {
		require.NoError(t, mcp.AddSendingCustomMethod[*customParams, *customResult](client, method))
	}
	cmd := exec.Command(weirBinary(t), "serve", onlyAllowing(t))
	session, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-06-18"})
	require.NoError(t, err)
	defer session.Close()
	require.Contains(t, session.InitializeResult().Capabilities.Extensions, "io.modelcontextprotocol/interceptors")

	call := func(method, params string) string {
		t.Helper()
		r, err := mcp.CallCustomMethod[*customParams, *customResult](t.Context(), session, method, &customParams{raw: json.RawMessage(params)})
		require.NoError(t, err)
		return string(r.raw)
	}
	require.Contains(t, call(abi.MethodList, `{"event":"prompts/get"}`), "wasm-sink")
	require.Contains(t, call(abi.MethodInvoke, `{"name":"wasm-validation","event":"tools/call","phase":"request","payload":{}}`), `"valid":true`)
	_, err = mcp.CallCustomMethod[*customParams, *customResult](t.Context(), session, abi.MethodInvoke,
		&customParams{raw: json.RawMessage(`{"name":"nobody","event":"tools/call","phase":"request","payload":{}}`)})
	require.Error(t, err)
}
