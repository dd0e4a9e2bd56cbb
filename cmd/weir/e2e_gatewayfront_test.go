package main

import (
	"bufio"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
)

// denying is a configuration with a folder of one module that denies requests of
// an event.
func denying(t testing.TB, event string) string {
	t.Helper()
	dir := t.TempDir()
	writeModule(t, dir, "deny", abi.Descriptor{
		Name: "deny", Type: abi.Validation, Hooks: abi.Hooks{{Events: []string{event}, Phase: abi.Request}},
	}, `{"result":{"valid":false,"messages":[{"message":"never","severity":"error"}]}}`)
	return "hosts:\n" + modulesEntry("local", dir)
}

const twoTokens = `listen:
  admin: 127.0.0.1:0
  auth: {tokens: [{name: ann, env: WEIR_E2E_ANN}, {name: bob, env: WEIR_E2E_BOB}]}
`

var (
	tokensEnv = []string{"WEIR_E2E_ANN=token-of-ann", "WEIR_E2E_BOB=token-of-bob"}
	asAnn     = "Authorization: Bearer token-of-ann"
	asBob     = "Authorization: Bearer token-of-bob"
)

// A session belongs to the principal that opened it, and its token goes no further
// than the door.
func TestGatewaySessionsBelongToTheirPrincipal(t *testing.T) {
	t.Parallel()
	for _, p := range pairs {
		if !p.frontHTTP {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			g := p.start(t, twoTokens, tokensEnv, p.everything(t))
			url := found(t, g, servesAt)
			require.Equal(t, 401, exchange(t, http.DefaultClient, http.MethodPost, url, initialize("2025-06-18"), rawHTTP...).status)
			ann := openSession(t, http.DefaultClient, url, asAnn)
			require.Equal(t, 200, ann.post(rpc(1, "ping", "")).status)
			stolen := *ann
			stolen.headers = append(append([]string{}, ann.headers...), asBob)
			require.Equal(t, 404, stolen.post(rpc(2, "ping", "")).status)
			stolen.headers = append(append([]string{}, ann.headers...), "Authorization: Bearer guessed")
			require.Equal(t, 401, stolen.post(rpc(2, "ping", "")).status)
			require.Equal(t, 200, ann.post(rpc(3, "ping", "")).status, "it goes on")
			require.NotContains(t, g.errs.String(), "token-of-")
		})
	}
}

// config.md, expose, with the built gateway.
func TestGatewayExposes(t *testing.T) {
	t.Parallel()
	one, two := t.TempDir(), t.TempDir()
	d := abi.Descriptor{Name: "pii", Type: abi.Validation, Hooks: abi.Hooks{{Events: []string{"tools/call"}, Phase: abi.Request}}}
	writeModule(t, one, "a", d, `{"result":{"valid":true}}`)
	writeModule(t, two, "b", d, `{"result":{"valid":false}}`)
	d.Name, d.Hooks = "quiet", abi.OnBoth("prompts/get")
	writeModule(t, two, "c", d, `{"result":{"valid":true}}`)
	for _, p := range pairs {
		if !p.frontHTTP {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			g := p.start(t, twoTokens+"expose: true\nhosts:\n"+modulesEntry("one", one)+modulesEntry("two", two), tokensEnv, p.everything(t))
			url := found(t, g, servesAt)
			opened := exchange(t, http.DefaultClient, http.MethodPost, url, initialize("2025-06-18"), append(rawHTTP, asAnn)...)
			require.Contains(t, opened.body, abi.ExtensionKey)
			require.Contains(t, opened.body, `"supportedEvents":["prompts/get","tools/call"]`)
			require.Contains(t, opened.body, `"logging"`, "what the backend declares is there, too")

			s := openSession(t, http.DefaultClient, url, asAnn)
			list := s.post(rpc(1, "interceptors/list", "{}")).body
			for _, name := range []string{`"one/pii"`, `"two/pii"`, `"quiet"`} {
				require.Contains(t, list, name)
			}
			invoke := func(name string) string {
				return s.post(rpc(1, "interceptor/invoke", `{"name":"`+name+`","event":"tools/call","phase":"request","payload":{"name":"t"}}`)).body
			}
			require.Contains(t, invoke("one/pii"), `"valid":true`)
			require.Contains(t, invoke("one/pii"), `"interceptor":"one/pii"`)
			require.Contains(t, invoke("two/pii"), `"valid":false`)
			require.Contains(t, invoke("pii"), `-32602`)
			require.Contains(t, invoke("three/pii"), `-32602`)

			// The chain still stands before the backend.
			blocked := s.post(rpc(2, "tools/call", toolParams("test_simple_text", "{}"))).body
			require.Contains(t, blocked, `"error"`)
		})
	}
}

// A gateway takes another one's interceptors as those of a host.
func TestGatewayBehindWhatAnotherExposes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeModule(t, dir, "deny", abi.Descriptor{
		Name: "deny", Type: abi.Validation, Hooks: abi.Hooks{{Events: []string{"prompts/get"}, Phase: abi.Request}},
	}, `{"result":{"valid":false,"severity":"error"}}`)
	for _, p := range pairs {
		if !p.frontHTTP {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			first := p.start(t, twoTokens+"expose: true\nhosts:\n"+modulesEntry("one", dir), tokensEnv, p.everything(t))
			conf := `hosts:
  - {name: first, url: "` + found(t, first, servesAt) + `", headers: {Authorization: "Bearer ${WEIR_E2E_ANN}"}}
`
			second := pairs[0].start(t, conf, tokensEnv, everythingServer(t))
			hello(second, "2025-06-18")
			require.Contains(t, second.call(rpc(1, "prompts/get", `{"name":"test_simple_prompt"}`)), `"reason":"validation_failed"`)
			require.Contains(t, second.call(rpc(2, "tools/call", toolParams("test_simple_text", "{}"))), `"result"`)
			require.NotContains(t, first.errs.String()+second.errs.String(), "token-of-")
		})
	}
}

// config.md, passthrough.
func TestGatewayNarrowsWhatPassesUngoverned(t *testing.T) {
	t.Parallel()
	const narrow = "passthrough: {errors: generic, notifications: [notifications/progress]}\n"
	for conf, narrowed := range map[string]bool{"": false, narrow: true} {
		s := pairs[0].start(t, conf, nil, everythingServer(t))
		hello(s, "2025-06-18")
		s.call(rpc(1, "logging/setLevel", `{"level":"debug"}`))
		s.call(rpc(2, "tools/call", `{"_meta":{"progressToken":"tok"},"name":"test_tool_with_progress","arguments":{}}`))
		s.call(rpc(3, "tools/call", toolParams("test_tool_with_logging", "{}")))
		failed := s.call(rpc(4, "prompts/get", `{"name":"no-such-prompt"}`))
		seen := strings.Join(s.seen, "\n")
		require.Contains(t, seen, "notifications/progress")
		require.Equal(t, !narrowed, strings.Contains(seen, "notifications/message"), seen)
		require.Equal(t, !narrowed, strings.Contains(failed, "no-such-prompt"), failed)
		require.Contains(t, failed, `"code":-32602`)
	}
}

// What operators see of a gateway: readiness with its cause for them alone, and
// metrics.
func TestGatewaySeen(t *testing.T) {
	t.Parallel()
	p := pairs[3]
	nobody := "http://" + freeAddress(t) + "/mcp"
	g := p.start(t, "listen: {admin: 127.0.0.1:0}\n"+denying(t, "prompts/get"), nil, nobody)
	root := strings.TrimSuffix(found(t, g, servesAt), "/mcp")
	operators := "http://" + found(t, g, operatorsAt)
	get := func(url string) httpAnswer { return exchange(t, http.DefaultClient, http.MethodGet, url, "") }
	require.Equal(t, 200, get(root+"/healthz").status)
	ready := get(root + "/readyz")
	require.Equal(t, 503, ready.status)
	require.NotContains(t, ready.body, nobody, "callers are not told what is missing")
	ready = get(operators + "/readyz")
	require.Equal(t, 503, ready.status)
	require.Contains(t, ready.body, "cannot be reached")
	require.Equal(t, 404, get(root+"/metrics").status)

	g = p.start(t, "listen: {admin: 127.0.0.1:0}\n"+denying(t, "prompts/get"), nil, everythingOverHTTP(t))
	url := found(t, g, servesAt)
	operators = "http://" + found(t, g, operatorsAt)
	eventually(t, "it is ready", func() bool { return get(operators+"/readyz").status == 200 })
	s := openSession(t, http.DefaultClient, url)
	require.Contains(t, s.post(rpc(1, "prompts/get", `{"name":"test_simple_prompt"}`)).body, `"error"`)
	metrics := get(operators + "/metrics").body
	for _, line := range []string{
		`weir_host_up{host="local"} 1`,
		`weir_invocation_seconds_count{`,
		`weir_blocked_total{`,
		`weir_messages_total{`,
	} {
		require.Contains(t, metrics, line)
	}
}

// A call that runs ends before the gateway does, and no process is left.
func TestGatewayDrains(t *testing.T) {
	t.Parallel()
	notes := filepath.Join(t.TempDir(), "notes")
	g := pairs[1].start(t, "", nil, role(t, "backend", notes)...)
	url := found(t, g, servesAt)
	s := openSession(t, http.DefaultClient, url)
	answered := make(chan httpAnswer, 1)
	file := filepath.Join(t.TempDir(), "file")
	go func() {
		answered <- s.post(rpc(7, "tools/call", toolParams("until", `{"file":"`+filepath.ToSlash(file)+`"}`)))
	}()
	eventually(t, "the call runs", func() bool {
		b, _ := os.ReadFile(notes)
		return strings.Contains(string(b), "waiting")
	})
	g.signal(syscall.SIGTERM)
	eventually(t, "nobody new is let in", func() bool {
		conn, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/mcp"))
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
	write(t, filepath.Dir(file), "file", "")
	answer := <-answered
	require.Equal(t, 200, answer.status)
	require.Contains(t, answer.body, "it is there")
	g.end()
	require.Zero(t, g.code)
}

// What is missing is for those only whom the door before the admin address lets in;
// a probe of anybody's gets the status.
func TestReadinessTellsOperatorsAlone(t *testing.T) {
	t.Parallel()
	nobody := "http://" + freeAddress(t) + "/mcp"
	get := func(url string, headers ...string) httpAnswer {
		return exchange(t, http.DefaultClient, http.MethodGet, url, "", headers...)
	}
	t.Run("on the loopback, not by another name or from a page", func(t *testing.T) {
		g := pairs[3].start(t, "listen: {admin: 127.0.0.1:0}\n", nil, nobody)
		operators := "http://" + found(t, g, operatorsAt)
		require.Contains(t, get(operators+"/readyz").body, "cannot be reached")
		for _, header := range []string{"Host: evil.example", "Origin: http://evil.example"} {
			answer := get(operators+"/readyz", header)
			require.Equal(t, 503, answer.status)
			require.Equal(t, "not ready\n", answer.body)
		}
	})
	t.Run("from other machines, with a token", func(t *testing.T) {
		g := pairs[3].start(t, strings.Replace(twoTokens, "admin: 127.0.0.1:0", "admin: 0.0.0.0:0", 1), tokensEnv, nobody)
		_, port, _ := strings.Cut(found(t, g, operatorsAt), "]:")
		operators := "http://127.0.0.1:" + port
		require.Equal(t, "not ready\n", get(operators+"/readyz").body)
		require.Equal(t, "not ready\n", get(operators+"/readyz", "Authorization: Bearer guessed").body)
		require.Contains(t, get(operators+"/readyz", asAnn).body, "cannot be reached")
	})
}

// A client that listens by a POST (2026-07-28) is not waited for.
func TestGatewayDoesNotWaitForThoseWhoListen(t *testing.T) {
	t.Parallel()
	for _, p := range pairs {
		if !p.frontHTTP {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			backend := everythingServer(t)
			if p.behindHTTP {
				backend = everythingOverHTTP(t)
			}
			g := p.start(t, "", nil, backend)
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, found(t, g, servesAt),
				strings.NewReader(rpc(1, "subscriptions/listen", `{"notifications":{"toolsListChanged":true},`+callerMeta+`}`)))
			require.NoError(t, err)
			for _, h := range append(rawHTTP, "Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: subscriptions/listen") {
				name, value, _ := strings.Cut(h, ": ")
				r.Header.Set(name, value)
			}
			res, err := http.DefaultClient.Do(r)
			require.NoError(t, err)
			defer res.Body.Close()
			first, err := bufio.NewReader(res.Body).ReadString('\n')
			require.NoError(t, err)
			require.NotEmpty(t, first, "it listens")
			g.signal(syscall.SIGTERM)
			g.end()
			require.Zero(t, g.code, g.errs)
		})
	}
}
