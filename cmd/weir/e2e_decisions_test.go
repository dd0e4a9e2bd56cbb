package main

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
)

// records are the decisions in what a gateway has logged. Every line of the log is
// one record by whatever measure.
func records(t testing.TB, log string) (decisions []map[string]any) {
	t.Helper()
	for line := range strings.Lines(log) {
		line = strings.TrimSuffix(line, "\n")
		var record map[string]any
		if !strings.HasPrefix(line, "{") {
			continue // the backend's own
		}
		require.NoError(t, json.Unmarshal([]byte(line), &record), line)
		require.Negative(t, strings.IndexFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }), "%q", line)
		if record["plan"] != nil {
			require.Less(t, len(line), 8<<10)
			decisions = append(decisions, record)
		}
	}
	return decisions
}

// anonymous is a caller with no principal, who is on record as none.
const anonymous = ""

var referenceOf = regexp.MustCompile(`"reference":"([A-Z2-7]{26})"`)

// The decision log of the built gateway, over each pair of transports.
func TestDecisionsAreOnRecord(t *testing.T) {
	t.Parallel()
	dir := onlyAllowing(t)
	writeModule(t, dir, "deny", abi.Descriptor{
		Name: "deny", Type: abi.Validation, Hooks: abi.Hooks{{Events: []string{abi.PromptsGet}, Phase: abi.Request}},
	}, `{"result":{"valid":false,"messages":[{"message":"GUARDS-WORDS","severity":"error"}]}}`)
	const forged = `x\"}\n{\"msg\":\"released\",\"reference\":\"FORGED\",\"plan\":[]}\r\n\u001b[2J\u0085\u2028\u202e`
	for _, p := range pairs {
		for _, messages := range []string{"", "log: {messages: true}\n"} {
			t.Run(p.name+", "+messages, func(t *testing.T) {
				t.Parallel()
				backend := everythingServer(t)
				if p.behindHTTP {
					backend = everythingOverHTTP(t, "-stateless=false")
				}
				conf := messages + "hosts:\n" + modulesEntry("local", dir)
				who := anonymous
				if p.frontHTTP {
					conf, who = twoTokens+conf, "service:ann"
				}
				g := p.start(t, conf, tokensEnv, backend)
				var ask func(message string) string
				if p.frontHTTP {
					s := openSession(t, http.DefaultClient, found(t, g, servesAt), asAnn)
					ask = func(message string) string { return s.post(message).body }
				} else {
					hello(g, "2025-06-18")
					ask = g.call
				}
				ask(rpc(1, abi.ToolsCall, toolParams("test_simple_text", `{"PAYLOADS-NAME":"PAYLOADS-WORDS"}`)))
				refused := ask(rpc(2, abi.PromptsGet, `{"name":"test_simple_prompt","arguments":{"PAYLOADS-NAME":"PAYLOADS-WORDS"}}`))
				ask(rpc(3, abi.ResourcesRead, `{"uri":"test://ann:PAYLOADS-WORDS@host/x?token=PAYLOADS-WORDS#PAYLOADS-WORDS"}`))
				ask(rpc(4, abi.ToolsCall, `{"name":"`+forged+long(100_000)+`"}`))
				ask(rpc(5, "ping", ""))

				log := g.errs.String()
				require.NotContains(t, log, "PAYLOADS")
				require.NotContains(t, log, `"reference":"FORGED"`)
				require.NotContains(t, log, "token-of-")
				require.Equal(t, messages != "", strings.Contains(log, "GUARDS-WORDS"))
				told := referenceOf.FindStringSubmatch(refused)
				require.NotNil(t, told, refused)

				var calls, reads, forgeries, finds int
				sessions := map[any]bool{}
				for _, r := range records(t, log) {
					require.NotEmpty(t, r["time"])
					require.Regexp(t, `^[A-Z2-7]{26}$`, r["reference"])
					require.Regexp(t, `^[0-9a-f]{12}$`, r["session"])
					sessions[r["session"]] = true
					if who == anonymous {
						require.NotContains(t, r, "principal")
					} else {
						require.Equal(t, who, r["principal"])
					}
					for _, step := range r["plan"].([]any) {
						require.Subset(t, step, map[string]any{"host": "local"})
						for _, name := range []string{"interceptor", "type", "effect", "ms"} {
							require.Contains(t, step, name)
						}
					}
					switch name, _ := r["name"].(string); {
					case r["reference"] == told[1]:
						finds++
						require.Subset(t, r, map[string]any{
							"msg": "blocked", "event": abi.PromptsGet, "phase": "request", "name": "test_simple_prompt", "status": "validation_failed",
							"interceptor": "deny", "host": "local", "reason": "rejected", "severity": "error",
						})
					case name == "test_simple_text":
						calls++
						require.Equal(t, "released", r["msg"])
						require.Len(t, r["plan"], 3)
					case name == "test://host/x":
						reads++
					case strings.HasPrefix(name, `x"} {"msg":`):
						forgeries++
						require.LessOrEqual(t, len(name), 256+2*len("…"))
					default:
						t.Errorf("a record that nobody expects: %v", r)
					}
				}
				require.Equal(t, 1, finds, "the reference that a client is told finds the record")
				require.Equal(t, 2, calls, "one for the request, one for the response")
				require.Equal(t, 1, reads, "an error of the backend is not governed")
				require.NotZero(t, forgeries)
				require.Len(t, sessions, 1)
			})
		}
	}
}
