package config

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
)

func parsed(t *testing.T, text string) *File {
	t.Helper()
	f, err := Parse("weir.yaml", []byte(text), lookup)
	require.NoError(t, err)
	return f
}

func TestFile_defaults(t *testing.T) {
	f := parsed(t, v1)
	f.Path = ""
	require.Equal(t, Default(), f)
	require.Equal(t, 10*time.Second, f.Timeout)
	require.Equal(t, Client, f.Boundary)
	require.True(t, f.Cache)
}

func TestFile_theExampleOfTheDocument(t *testing.T) {
	f := parsed(t, `
version: 1
backend:
  command: [npx, -y, "@modelcontextprotocol/server-everything"]
boundary: client
timeout: 10s
hosts:
  - name: local
    modules: ./interceptors
    limits: {memory: 64MiB, timeout: 1s}
    files:
      quota.wasm: {grants: {clock: true, env: [B, A, B], kv: {scope: session}}, limits: {timeout: 50ms}}
  - {name: security, url: "https://sec.internal/mcp", headers: {Authorization: "Bearer ${TOKEN}"}}
  - {name: legacy, command: [./legacy-interceptors], env: {MODE: prod}, payload: envelope, failOpen: true}
interceptors:
  - {interceptor: pii-redactor, mode: audit, priorityHint: {request: -2000}, timeout: 200ms}
  - {interceptor: noisy, host: legacy, enabled: false}
  - {interceptor: secret-scanner, required: true, type: validation}
  - {interceptor: regex-guard, as: no-drop-table, config: {deny: ["(?i)drop table"]}}
  - {interceptor: regex-guard, as: no-rm, config: {deny: ["rm -rf"]}, hooks: [{events: [tools/call], phase: request}]}
blocked: {details: auto, toolResult: false}
trust: {keys: [ops.pub], requireSigned: false}
log: {messages: false}
cache: on
`)
	require.Len(t, f.Hosts, 3)
	local := f.Hosts[0]
	require.Equal(t, "interceptors", local.Modules.Reveal())
	quota := local.Files["quota.wasm"]
	require.Equal(t, Grants{Clock: true, Env: []string{"A", "B"}, KV: ScopeSession}, quota.Grants)
	require.Equal(t, Limits{Memory: 64 << 20, Timeout: 50 * time.Millisecond}, quota.Limits.Over(local.Limits))
	require.Equal(t, "Bearer s3cret", f.Hosts[1].Headers["Authorization"].Reveal())
	require.Equal(t, Envelope, f.Hosts[2].Payload)
	require.True(t, f.Hosts[2].FailOpen)
	require.Equal(t, []string{"A", "B", "TOKEN"}, f.ConsumedEnv)
	require.Equal(t, &Trust{Keys: []Text{Plain("ops.pub")}, Source: "weir.yaml:22:1"}, f.Trust)

	redactor := f.Interceptors[0]
	require.Equal(t, abi.Audit, *redactor.Mode)
	require.Equal(t, int32(-2000), redactor.PriorityHint.For(abi.Request))
	require.Equal(t, int32(0), redactor.PriorityHint.For(abi.Response))
	require.Equal(t, `{"request":-2000}`, string(redactor.PriorityHint.AppendJSON(nil)), "given phase by phase")
	require.Equal(t, 200*time.Millisecond, *redactor.Timeout)
	require.Nil(t, redactor.Enabled)
	require.Nil(t, redactor.Hooks)
	require.Equal(t, Source("weir.yaml:16:5"), redactor.Source)
	require.False(t, *f.Interceptors[1].Enabled)
	require.True(t, f.Interceptors[2].Required)
	require.Equal(t, `{"deny":["(?i)drop table"]}`, string(f.Interceptors[3].Config.Reveal()))
	require.Equal(t, abi.On(abi.Request, abi.ToolsCall), f.Interceptors[4].Hooks)
}

func TestEntry_hooksSetToNothingAreSet(t *testing.T) {
	require.NotNil(t, parsed(t, entry("hooks: []")).Interceptors[0].Hooks)
}

func TestConfig_keepsSpellingAndOrder(t *testing.T) {
	for yaml, want := range map[string]string{
		`{n: 9007199254740993, f: 1.0, e: 1e400, z: -0, m: 1.50E+3}`:      `{"n":9007199254740993,"f":1.0,"e":1e400,"z":-0,"m":1.50E+3}`,
		`{z: 1, a: 2, "m m": 3}`:                                          `{"z":1,"a":2,"m m":3}`,
		`{h: "<>&", u: "é\u00e9\U0001F600", t: 'it''s'}`:                  `{"h":"<>&","u":"éé😀","t":"it's"}`,
		`{s: "1", d: "2026-07-28", on: on, y: yes, v: 1.2.3, x: 1st}`:     `{"s":"1","d":"2026-07-28","on":"on","y":"yes","v":"1.2.3","x":"1st"}`,
		`{a: null, b: ~, c: , d: True, e: [], f: {}, g: [[1, [2]], 3]}`:   `{"a":null,"b":null,"c":null,"d":true,"e":[],"f":{},"g":[[1,[2]],3]}`,
		`{v: "${TOKEN}", q: "a${QUOTE}b", l: "$${TOKEN}", "${TOKEN}": 1}`: `{"v":"s3cret","q":"a\"}b","l":"${TOKEN}","${TOKEN}":1}`,
		`{t: ${YES}}`: `{"t":"true"}`,
	} {
		t.Run(yaml, func(t *testing.T) {
			if strings.Contains(yaml, "{t: ${YES}}") {
				yaml = "\n      t: ${YES}"
			}
			f := parsed(t, v1+"interceptors:\n  - interceptor: x\n    config: "+yaml+"\n")
			got := f.Interceptors[0].Config.Reveal()
			require.Equal(t, want, string(got))
			require.True(t, json.Valid(got))
			require.NotContains(t, f.Interceptors[0].Config.String(), "s3cret")
		})
	}
	f := parsed(t, v1+"interceptors:\n- interceptor: x\n  config:\n    text: |\n      two\n      lines\n    folded: >-\n      one\n      line\n")
	require.Equal(t, `{"text":"two\nlines\n","folded":"one line"}`, f.Interceptors[0].Config.String())
}

// Whoever prints a configuration prints no secret.
func TestValues_printAsWritten(t *testing.T) {
	f := parsed(t, onHost(`url: "https://x/${TOKEN}", headers: {A: "Bearer ${TOKEN}"}`)+
		"backend: {command: [x, '--key=${TOKEN}'], env: {K: '${TOKEN}'}}\ninterceptors: [{interceptor: x, config: {k: '${TOKEN}'}}]\n")
	var log strings.Builder
	logger := slog.New(slog.NewJSONHandler(&log, nil))
	logger.Info("x", "header", f.Hosts[0].Headers["A"], "config", f.Interceptors[0].Config, "hosts", f.Hosts, "backend", f.Backend)
	asJSON, err := json.Marshal(f)
	require.NoError(t, err)
	for _, printed := range []string{fmt.Sprint(f), fmt.Sprintf("%v %+v %#v", f.Hosts, f.Hosts, f.Hosts), fmt.Sprintf("%s %q %d %t %+v", f.Hosts[0].URL, f.Hosts[0].URL, f.Hosts[0].URL, f.Interceptors[0].Config, f.Interceptors[0]),
		fmt.Sprintf("%#v %+v", *f.Backend, *f.Backend), fmt.Sprintf("%#v %v", f.Interceptors, f.Interceptors), string(asJSON), log.String()} {
		require.NotContains(t, printed, "s3cret")
		require.Contains(t, printed, "${TOKEN}")
	}
	require.Equal(t, "https://x/s3cret", f.Hosts[0].URL.Reveal())
	require.Equal(t, "--key=s3cret", f.Backend.Command[1].Reveal())
	require.Equal(t, "plain", Plain("plain").Reveal())
}

func TestWith(t *testing.T) {
	base := parsed(t, onFolder("failOpen: true")+"backend: {command: [b]}\ninterceptors: [{interceptor: x, host: team}]\n")
	got, err := base.With(Flags{Hosts: []string{"./mods", "team=https://team/mcp", "a b=./c", "http://x/?a=b", "C:=d"}, Command: []string{"npx", "-y"}, Boundary: "server"})
	require.NoError(t, err)
	type row struct{ name, modules, url string }
	var rows []row
	for _, h := range got.Hosts {
		rows = append(rows, row{h.Name, h.Modules.Reveal(), h.URL.Reveal()})
	}
	require.Equal(t, []row{{"h", "m", ""}, {"host1", "./mods", ""}, {"team", "", "https://team/mcp"}, {"host3", "a b=./c", ""},
		{"host4", "", "http://x/?a=b"}, {"host5", "C:=d", ""}}, rows)
	require.Equal(t, []Text{Plain("npx"), Plain("-y")}, got.Backend.Command)
	require.Equal(t, Server, got.Boundary)
	require.Len(t, base.Hosts, 1, "the file is as it was")
	require.Equal(t, "b", base.Backend.Command[0].Reveal())

	for _, c := range []struct {
		flags Flags
		want  string
	}{
		{Flags{}, `weir.yaml:5:16: no host is called "team"; there are h`},
		{Flags{Hosts: []string{"h=./x"}}, `--hosts h=./x: another host is called "h" (weir.yaml:3:5); give it a name: --hosts NAME=./x`},
		{Flags{Hosts: []string{"h="}}, "names no folder and no URL"},
		{Flags{Hosts: []string{""}}, "names no folder and no URL"},
		{Flags{Hosts: []string{"s=https://u:p@x/"}}, `the URL of "s" holds a user name or password`},
		{Flags{Backend: new("ftp://b")}, "the URL of --backend is not an http or https URL"},
		{Flags{Backend: new("")}, "the URL of --backend is not an http or https URL"},
		{Flags{Backend: new("https://u:p@x/")}, "the URL of --backend holds a user name or password"},
		{Flags{Backend: new("https://b"), Command: []string{"x"}}, "there are two backends: --backend and the command after --; give one"},
		{Flags{HTTP: new("127.0.0.1")}, `--http is "127.0.0.1", which is not a host and a port`},
		{Flags{HTTP: new("0.0.0.0:1")}, "the address to serve at, 0.0.0.0:1, can be reached from other machines, and callers are not authenticated; give listen.auth"},
		{Flags{HTTP: new(":1")}, "can be reached from other machines"},
		{Flags{Boundary: "both"}, "it can be client or server"},
		{Flags{Command: []string{""}}, "the command after -- has no name"},
	} {
		_, err := base.With(c.flags)
		require.ErrorContains(t, err, c.want)
		require.NotContains(t, err.Error(), "u:p")
	}
	none, err := (*File)(nil).With(Flags{Hosts: []string{"./m"}})
	require.NoError(t, err)
	require.Equal(t, "host1", none.Hosts[0].Name)
}

func TestWith_servesOverHTTP(t *testing.T) {
	base := parsed(t, v1+"listen: {http: 'localhost:1'}\nbackend: {command: [b]}\n")
	got, err := base.With(Flags{Backend: new("https://b/mcp"), HTTP: new("[::1]:2")})
	require.NoError(t, err)
	require.Equal(t, "https://b/mcp", got.Backend.URL.Reveal())
	require.Empty(t, got.Backend.Command)
	require.Equal(t, "[::1]:2", got.Listen.HTTP)
	require.Equal(t, "localhost:1", base.Listen.HTTP)
	require.Equal(t, ListenLimits{Body: 4 << 20, Sessions: 1000, Concurrency: 256}, got.Listen.Limits)
	require.Equal(t, []string{"*"}, got.Passthrough.Notifications)
	got, err = parsed(t, v1+"listen: {limits: {body: 1MiB}}\n").With(Flags{})
	require.NoError(t, err)
	require.Equal(t, ListenLimits{Body: 1 << 20, Sessions: 1000, Concurrency: 256}, got.Listen.Limits)
	token := parsed(t, v1+"listen: {auth: {tokens: [{name: ci, env: TOKEN}, {name: ops, file: ops.token}]}}\n")
	require.Equal(t, "s3cret", token.Listen.Tokens[0].Value.Reveal())
	require.Equal(t, "ops.token", token.Listen.Tokens[1].File.Reveal())
	require.Equal(t, []string{"TOKEN"}, token.ConsumedEnv, "the backend does not inherit it")
	require.NotContains(t, fmt.Sprintf("%+v %#v", token, token.Listen), "s3cret")
}

// What strangers can reach is served to callers who are known, or on the
// operator's word.
func TestWith_whatStandsOpen(t *testing.T) {
	const tokens = "auth: {tokens: [{name: ci, env: TOKEN}]}"
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", ""},
		{"on this machine", "listen: {http: '127.0.0.1:1', admin: '[::1]:2'}", ""},
		{"by name", "listen: {http: 'localhost:1'}", ""},
		{"to all", "listen: {http: ':1'}", "the address to serve at, :1, can be reached from other machines"},
		{"by another name", "listen: {http: 'gw.internal:1'}", "can be reached"},
		{"metrics to all", "listen: {admin: '0.0.0.0:1'}", "listen.admin, 0.0.0.0:1, can be reached"},
		{"to all with tokens", "listen: {http: ':1', admin: ':2', " + tokens + "}", ""},
		{"to all on the operator's word", "listen: {http: ':1', admin: ':2', insecure: true}", ""},
		{"exposed to strangers", "listen: {http: '127.0.0.1:1', insecure: true}\nexpose: true", "expose needs listen.auth"},
		{"exposed to known callers", "listen: {http: '127.0.0.1:1', " + tokens + "}\nexpose: true", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := parsed(t, v1+c.text+"\n").With(Flags{})
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}

func FuzzLoad(f *testing.F) {
	for _, d := range documents {
		f.Add([]byte(d.text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := Parse("f.yaml", text, lookup)
		if err != nil {
			require.NotEmpty(t, err.(Errors))
			return
		}
		for _, e := range file.Interceptors {
			if !e.Config.IsZero() && !json.Valid(e.Config.Reveal()) {
				t.Fatalf("config is no JSON: %s", e.Config)
			}
		}
		_, _ = file.With(Flags{})
	})
}
