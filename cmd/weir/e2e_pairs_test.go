package main

import (
	"net"
	"net/http"
	"os/exec"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// pair is what the gateway speaks to its clients and to its backend.
type pair struct {
	name                  string
	frontHTTP, behindHTTP bool
}

var pairs = []pair{
	{"stdio to stdio", false, false},
	{"HTTP to stdio", true, false},
	{"stdio to HTTP", false, true},
	{"HTTP to HTTP", true, true},
}

// everything is a backend on the pair's own side, for [pair.start].
func (p pair) everything(t *testing.T) string {
	if p.behindHTTP {
		return everythingOverHTTP(t, "-stateless=false")
	}
	return everythingServer(t)
}

// gateway starts the built gateway with a configuration (none when empty) and
// gives what leads a client to it. backend is the command of a server over stdio
// or the URL of one over HTTP, as the pair has it.
func (p pair) gateway(t testing.TB, conf string, backend ...string) mcp.Transport {
	t.Helper()
	if p.frontHTTP {
		return &mcp.StreamableClientTransport{Endpoint: found(t, p.start(t, conf, nil, backend...), servesAt)}
	}
	command := p.command(t, conf, backend)
	cmd := exec.Command(command[0], command[1:]...)
	errs := &buffer{}
	cmd.Stderr = errs
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("stderr of the gateway:\n%.20000s", errs)
		}
	})
	return &mcp.CommandTransport{Command: cmd}
}

// start starts the built gateway as a raw session.
func (p pair) start(t testing.TB, conf string, env []string, backend ...string) *rawSession {
	t.Helper()
	s := startRaw(t, p.command(t, conf, backend), clientReplies, env...)
	if p.frontHTTP {
		t.Cleanup(s.kill)
	}
	return s
}

func (p pair) command(t testing.TB, conf string, backend []string) []string {
	t.Helper()
	command := []string{weirBinary(t), "gateway"}
	if conf != "" {
		command = append(command, "--config", write(t, t.TempDir(), "weir.yaml", "version: 1\n"+conf))
	}
	if p.frontHTTP {
		command = append(command, "--http", "127.0.0.1:0")
	}
	if p.behindHTTP {
		return append(command, "--backend", backend[0])
	}
	return append(append(command, "--"), backend...)
}

// everythingOverHTTP starts the SDK's everything-server over HTTP and gives its
// URL.
func everythingOverHTTP(t testing.TB, more ...string) string {
	t.Helper()
	address := freeAddress(t)
	s := startRaw(t, append([]string{everythingServer(t), "-http", address}, more...), nil)
	t.Cleanup(s.kill)
	eventually(t, "it listens", func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return "http://" + address
}

// TestClientBehavesOverEachPair does what TestClientBehaves does, over HTTP.
func TestClientBehavesOverEachPair(t *testing.T) {
	t.Parallel()
	for _, c := range clientCases {
		if !c.overHTTP {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			url := everythingOverHTTP(t, map[bool][]string{false: {"-stateless=false"}}[c.version >= "2026-07-28"]...)
			direct := connectOver(t, &mcp.StreamableClientTransport{Endpoint: url}, c.version)
			c.do(t, direct)
			for _, p := range pairs[1:] {
				t.Run(p.name, func(t *testing.T) {
					backend := everythingServer(t)
					if p.behindHTTP {
						backend = url
					}
					through := connectOver(t, p.gateway(t, allowingHosts(t), backend), c.version)
					c.do(t, through)
					require.Equal(t, direct.once(), through.once())
				})
			}
		})
	}
}

// TestBlockedOverEachPair: the requester is told on its own id, whatever stands
// between (protocol.md §6 "Blocked").
func TestBlockedOverEachPair(t *testing.T) {
	t.Parallel()
	for _, p := range pairs {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			backend := everythingServer(t)
			if p.behindHTTP {
				backend = everythingOverHTTP(t)
			}
			c := connectOver(t, p.gateway(t, denying(t, "prompts/get"), backend), "2025-06-18")
			_, err := c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "test_simple_prompt"})
			require.ErrorContains(t, err, "blocked")
			require.Equal(t, "This is a simple text response for testing.", c.call("test_simple_text", nil, nil))
		})
	}
}

// httpSession speaks raw HTTP to a gateway within one session.
type httpSession struct {
	t       testing.TB
	client  *http.Client
	url     string
	headers []string
}

// openSession shakes hands; more are headers of each request.
func openSession(t testing.TB, client *http.Client, url string, more ...string) *httpSession {
	t.Helper()
	s := &httpSession{t, client, url, append(append([]string{}, rawHTTP...), more...)}
	answer := s.post(initialize("2025-06-18"))
	require.Equal(t, 200, answer.status, answer.body)
	if id := answer.header.Get("Mcp-Session-Id"); id != "" {
		s.headers = append(s.headers, "Mcp-Session-Id: "+id, "Mcp-Protocol-Version: 2025-06-18")
	}
	require.Equal(t, 202, s.post(initializedNote).status)
	return s
}

func (s *httpSession) post(message string) httpAnswer {
	s.t.Helper()
	return exchange(s.t, s.client, http.MethodPost, s.url, message, s.headers...)
}
