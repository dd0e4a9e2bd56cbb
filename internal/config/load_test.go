package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"
)

var environment = map[string]string{"TOKEN": "s3cret", "T": "250ms", "YES": "true", "MODULES": "mods", "EMPTY": "",
	"LINES": "a\r\nb: c", "LATIN": "\xe4", "QUOTE": `"}`}

func lookup(name string) (string, bool) {
	v, ok := environment[name]
	return v, ok
}

const v1 = "version: 1\n"

// onHost is a document with one host that has the given members.
func onHost(members string) string { return v1 + "hosts:\n  - {name: h, " + members + "}\n" }

func onFolder(members string) string { return onHost("modules: ./m, " + members) }

func entry(members string) string {
	return v1 + "interceptors:\n  - {interceptor: x, " + members + "}\n"
}

// documents is what the file may say and what not. Where the loader and the
// schema cannot agree, since a schema does not see far enough, beyond says so.
var documents = []struct {
	name, text string
	want       string // part of the error; empty: it is fine
	beyond     bool
}{
	{name: "the least", text: v1},
	{name: "in quotes", text: `version: "1"`},
	{name: "comments and a header", text: "# hello\n---\n" + v1},
	{name: "JSON is YAML", text: `{"version": 1, "boundary": "server"}`},
	{name: "nothing", text: "", want: "f.yaml:1:1: version is missing"},
	{name: "comments only", text: "# hello\n", want: "version is missing"},
	{name: "another version", text: "version: 2\n", want: "f.yaml:1:10: version is 2"},
	{name: "no version", text: "timeout: 1s\n", want: `version is missing; begin the file with "version: 1"`},
	{name: "a list", text: "- version\n", want: "the file is a list, not a mapping"},
	{name: "a word", text: "version\n", want: "the file is a single value"},

	{name: "unknown key", text: v1 + "boundry: client\n", want: `f.yaml:2:1: there is no key "boundry"; did you mean "boundary"?`},
	{name: "unknown key far from all", text: v1 + "frobnicate: 1\n", want: "known are backend, blocked, boundary"},
	{name: "other case", text: v1 + "Timeout: 1s\n", want: `did you mean "timeout"?`},
	{name: "swapped letters", text: onHost("modlues: ./m"), want: `f.yaml:3:15: there is no key "hosts[0].modlues"; did you mean "modules"?`},
	{name: "unknown deep", text: onFolder("files: {a.wasm: {grants: {clok: true}}}"), want: `did you mean "clock"?`},
	{name: "twice", text: v1 + "timeout: 1s\ntimeout: 2s\n", want: `f.yaml:3:1: "timeout" is there twice, first in line 2`, beyond: true},
	{name: "no value", text: v1 + "timeout:\n", want: "timeout is empty"},

	{name: "listen", text: v1 + "listen: {http: '127.0.0.1:8414', admin: 'localhost:8415', auth: {tokens: [{name: ci, env: TOKEN}, {name: ops, file: ops.token}]}, tls: {cert: c.pem, key: k.pem}, limits: {body: 1MiB, sessions: 10, concurrency: 5, rate: 100}, insecure: false}\n"},
	{name: "listen at all addresses", text: v1 + "listen: {http: ':8414'}\n"},
	{name: "listen at a name", text: v1 + "listen: {http: 'gw.internal:80'}\n"},
	{name: "listen without a port", text: v1 + "listen: {http: '127.0.0.1'}\n", want: `f.yaml:2:16: listen.http is "127.0.0.1", which is not a host and a port; it can be an address such as 127.0.0.1:8414`},
	{name: "listen at a URL", text: v1 + "listen: {http: 'http://127.0.0.1:80'}\n", want: "is not a host and a port"},
	{name: "listen at port 70000", text: v1 + "listen: {admin: '127.0.0.1:70000'}\n", want: "has no port from 0 to 65535", beyond: true},
	{name: "listen to nobody", text: v1 + "listen: {auth: {tokens: []}}\n", want: "f.yaml:2:16: listen.auth has no tokens: nobody could call"},
	{name: "listen to nothing", text: v1 + "listen: {auth: {}}\n", want: "listen.auth has no tokens"},
	{name: "a token without a name", text: v1 + "listen: {auth: {tokens: [{env: TOKEN}]}}\n", want: "listen.auth.tokens[0] has no name"},
	{name: "a token from nowhere", text: v1 + "listen: {auth: {tokens: [{name: a}]}}\n", want: "has 0 of env and file; give it exactly one"},
	{name: "a token from two places", text: v1 + "listen: {auth: {tokens: [{name: a, env: TOKEN, file: f}]}}\n", want: "has 2 of env and file"},
	{name: "a token in the file", text: v1 + "listen: {auth: {tokens: [{name: a, token: abc}]}}\n", want: `there is no key "listen.auth.tokens[0].token"`},
	{name: "a token that is not set", text: v1 + "listen: {auth: {tokens: [{name: a, env: NONE}]}}\n", want: "the environment variable NONE is not set; set it to the token", beyond: true},
	{name: "a token that is empty", text: v1 + "listen: {auth: {tokens: [{name: a, env: EMPTY}]}}\n", want: "the environment variable EMPTY is empty", beyond: true},
	{name: "two tokens of a name", text: v1 + "listen: {auth: {tokens: [{name: a, env: TOKEN}, {name: a, env: T}]}}\n", want: `another token is called "a"`, beyond: true},
	{name: "a certificate without a key", text: v1 + "listen: {tls: {cert: c.pem}}\n", want: "listen.tls needs both cert and key"},
	{name: "a body of 1 GiB", text: v1 + "listen: {limits: {body: 1GiB}}\n", want: "it can be a size from 1KiB to 64MiB", beyond: true},
	{name: "no sessions", text: v1 + "listen: {limits: {sessions: 0}}\n", want: "it can be a whole number from 1"},
	{name: "expose", text: v1 + "expose: false\n"},
	{name: "expose a little", text: v1 + "expose: some\n", want: "it can be true or false"},
	{name: "passthrough", text: v1 + "passthrough: {errors: generic, notifications: ['notifications/progress', 'notifications/*', '*']}\n"},
	{name: "passthrough of nothing", text: v1 + "passthrough: {notifications: []}\n"},
	{name: "passthrough of some errors", text: v1 + "passthrough: {errors: some}\n", want: "it can be raw or generic"},
	{name: "passthrough of a strange pattern", text: v1 + "passthrough: {notifications: ['*/progress']}\n", want: `passthrough.notifications[0] is "*/progress"; a pattern is "*" or ends in "/*"`},
	{name: "trust", text: v1 + "trust: {keys: [ops.pub, '/etc/weir/team.pub'], requireSigned: true}\n"},
	{name: "trust alone", text: v1 + "trust: {}\n", want: "f.yaml:2:8: trust has no keys; list files of public keys, such as keys: [ops.pub]"},
	{name: "trust in nobody", text: v1 + "trust: {keys: [], requireSigned: true}\n", want: "trust has no keys"},
	{name: "trust without a list", text: v1 + "trust: {keys: ops.pub}\n", want: "trust.keys is a single value, not a list"},
	{name: "trust in nothing", text: v1 + "trust: {keys: ['']}\n", want: "trust.keys[0] is empty; name the file of a public key"},
	{name: "trust misspelled", text: v1 + "trust: {keys: [a], requiresigned: true}\n", want: `did you mean "requireSigned"?`},
	{name: "trust a little", text: v1 + "trust: {keys: [a], requireSigned: maybe}\n", want: "it can be true or false"},
	{name: "backend url", text: v1 + "backend: {url: 'https://b/mcp', headers: {Authorization: 'Bearer ${TOKEN}'}}\n"},
	{name: "backend url and command", text: v1 + "backend: {url: 'https://b/mcp', command: [x]}\n", want: "f.yaml:2:11: backend has both command and url; give it one"},
	{name: "backend url with env", text: v1 + "backend: {url: 'https://b/mcp', env: {A: b}}\n", want: "backend.env has no meaning without command"},
	{name: "backend command with headers", text: v1 + "backend: {command: [x], headers: {A: b}}\n", want: "backend.headers has no meaning without url"},
	{name: "backend at a file", text: v1 + "backend: {url: 'file:///x'}\n", want: "backend.url is not an http or https URL"},
	{name: "kv", text: onFolder("files: {a.wasm: {grants: {kv: {}}}}")},
	{name: "kv of a scope", text: onFolder("files: {a.wasm: {grants: {kv: {scope: session}}, sha256: " + strings.Repeat("0a", 32) + "}}")},
	{name: "kv of no such scope", text: onFolder("files: {a.wasm: {grants: {kv: {scope: tenant}}}}"), want: "it can be principal, session or module"},
	{name: "kv switched on", text: onFolder("files: {a.wasm: {grants: {kv: true}}}"), want: "grants.kv is a single value, not a mapping"},
	{name: "kv left open", text: onFolder("files: {a.wasm: {grants: {kv: }}}"), want: "grants.kv is empty, not a mapping"},
	{name: "kv with a TTL", text: onFolder("files: {a.wasm: {grants: {kv: {ttl: 1s}}}}"), want: "there is no key"},
	{name: "http", text: onFolder("files: {a.wasm: {grants: {http: []}}}"), want: "grants.http is known, but not in this version"},

	{name: "backend", text: v1 + "backend: {command: [npx, -y, '@x/y', 1, true], env: {A: b, C: 1}}\n"},
	{name: "backend without", text: v1 + "backend: {}\n", want: "backend has no command and no url"},
	{name: "backend command text", text: v1 + "backend: {command: npx -y}\n", want: "backend.command is a single value, not a list"},
	{name: "backend command empty", text: v1 + "backend: {command: []}\n", want: "backend.command is empty"},
	{name: "backend without a program", text: v1 + "backend: {command: ['']}\n", want: "the program has no name", beyond: true},
	{name: "bad variable name", text: v1 + "backend: {command: [x], env: {'A-B': c}}\n", want: `"A-B" is not the name of an environment variable`},

	{name: "boundary", text: v1 + "boundary: server\n"},
	{name: "boundary both", text: v1 + "boundary: both\n", want: `boundary is "both"; it can be client or server`},
	{name: "timeout", text: v1 + "timeout: 1m30s\n"},
	{name: "timeout from a variable", text: v1 + "timeout: ${T}\n"},
	{name: "timeout without unit", text: v1 + "timeout: 10\n", want: "f.yaml:2:10: timeout is 10; it can be a time with a unit from 1ms to 1h"},
	{name: "timeout 0", text: v1 + "timeout: 0s\n", want: "timeout is 0s", beyond: true},
	{name: "timeout negative", text: v1 + "timeout: -1s\n", want: "timeout is -1s"},
	{name: "timeout for ever", text: v1 + "timeout: 2h\n", want: "timeout is 2h", beyond: true},
	{name: "cache on", text: v1 + "cache: on\n"},
	{name: "cache off", text: v1 + "cache: off\n"},
	{name: "cache true", text: v1 + "cache: true\n", want: "it can be on or off"},
	{name: "blocked", text: v1 + "blocked: {details: always, toolResult: true}\n"},
	{name: "blocked details", text: v1 + "blocked: {details: some}\n", want: "it can be auto, always or never"},
	{name: "a boolean in quotes", text: v1 + "blocked: {toolResult: 'true'}\n", want: `blocked.toolResult is "true"; it can be true or false`},
	{name: "yes", text: v1 + "log: {messages: yes}\n", want: "log.messages is yes; it can be true or false"},
	{name: "a boolean from a variable", text: v1 + "log: {messages: '${YES}'}\n"},

	{name: "folder", text: onHost("modules: ./interceptors")},
	{name: "host by URL", text: onHost(`url: "https://sec.internal/mcp", headers: {Authorization: "Bearer ${TOKEN}"}, payload: envelope, request: true, failOpen: true`)},
	{name: "host by command", text: onHost("command: [./legacy], env: {MODE: prod}, payload: bare")},
	{name: "hosts no list", text: v1 + "hosts: {name: h}\n", want: "hosts is a mapping, not a list"},
	{name: "host without a kind", text: onHost("failOpen: true"), want: "hosts[0] has none of modules, url and command; give it exactly one"},
	{name: "host of two kinds", text: onHost("modules: ./m, url: 'http://x/'"), want: "has modules and url of modules, url and command"},
	{name: "host without a name", text: v1 + "hosts: [{modules: ./m}]\n", want: "hosts[0] has no name"},
	{name: "host name", text: v1 + "hosts: [{name: My Host, modules: ./m}]\n", want: "a host's name is made of a-z, 0-9 and -"},
	{name: "same host name", text: v1 + "hosts:\n- {name: a, modules: ./m}\n- {name: a, modules: ./n}\n", want: `f.yaml:4:10: another host is called "a", in line 3`, beyond: true},
	{name: "headers on a folder", text: onFolder("headers: {A: b}"), want: "hosts[0].headers has no meaning beside modules; it belongs to a host with url"},
	{name: "request on a folder", text: onFolder("request: true"), want: "it belongs to a host with url or command"},
	{name: "payload on a folder", text: onFolder("payload: bare"), want: "it belongs to a host with url or command"},
	{name: "limits on a URL", text: onHost("url: 'http://x/', limits: {memory: 1MiB}"), want: "limits has no meaning beside url"},
	{name: "env on a URL", text: onHost("url: 'http://x/', env: {A: b}"), want: "env has no meaning beside url"},
	{name: "ftp", text: onHost("url: 'ftp://x/'"), want: "hosts[0].url is not an http or https URL"},
	{name: "user info", text: onHost("url: 'https://me:pw@x/'"), want: "hosts[0].url holds a user name or password"},
	{name: "no host in the URL", text: onHost("url: 'https:///x'"), want: "names no host", beyond: true},
	{name: "fragment", text: onHost("url: 'https://x/#y'"), want: "has a fragment"},
	{name: "header name", text: onHost("url: 'http://x/', headers: {'A B': c}"), want: `"A B" is not the name of a header`},
	{name: "header of the transport", text: onHost("url: 'http://x/', headers: {content-type: c}"), want: "the header Content-Type is written by the transport", beyond: true},
	{name: "header twice", text: onHost("url: 'http://x/', headers: {X-A: c, x-a: d}"), want: "the header X-A is there twice", beyond: true},
	{name: "header smuggling", text: onHost(`url: 'http://x/', headers: {X-A: "${LINES}"}`), want: "holds a control character", beyond: true},
	{name: "an empty folder name", text: onHost("modules: ''"), want: "modules is empty; name a folder"},

	{name: "all limits", text: onFolder("limits: {module: 1MiB, memory: 64MiB, table: 10, timeout: 50ms, load: 5s, input: 4096, output: 4KiB, logLines: 5, logLine: 1KiB, calls: 2, queue: 8, fuel: 1000000000}")},
	{name: "no fuel", text: onFolder("limits: {fuel: 0}"), want: "limits.fuel is 0"},
	{name: "a size in KB", text: onFolder("limits: {memory: 64MB}"), want: "limits.memory is 64MB; it can be a size from 64KiB to 4GiB, in KiB, MiB, GiB or bytes"},
	{name: "a size too small", text: onFolder("limits: {memory: 1KiB}"), want: "limits.memory is 1KiB", beyond: true},
	{name: "a size past counting", text: onFolder("limits: {memory: 9223372036854775807GiB}"), want: "limits.memory is", beyond: true},
	{name: "a negative size", text: onFolder("limits: {memory: -1}"), want: "limits.memory is -1"},
	{name: "a count in quotes", text: onFolder("limits: {calls: '2'}"), want: `limits.calls is "2"; it can be a whole number from 1 to 10000`},
	{name: "half a call", text: onFolder("limits: {calls: 1.5}"), want: "limits.calls is 1.5"},
	{name: "files", text: onFolder("files: {quota.wasm: {sha256: " + strings.Repeat("aB", 32) + ", grants: {clock: true, env: [A, B_2]}, limits: {timeout: 50ms}}}")},
	{name: "a path for a file", text: onFolder("files: {../x.wasm: {}}"), want: `"../x.wasm" is not the name of a module`},
	{name: "a hidden file", text: onFolder("files: {.x.wasm: {}}"), want: "is not hidden"},
	{name: "another file", text: onFolder("files: {x.txt: {}}"), want: "ends in .wasm"},
	{name: "short digest", text: onFolder("files: {x.wasm: {sha256: abc}}"), want: "is not 64 hexadecimal digits"},
	{name: "grant of a bad name", text: onFolder("files: {x.wasm: {grants: {env: ['A=B']}}}"), want: `"A=B" is not the name`},

	{name: "an entry with all", text: entry("host: h, as: y, enabled: true, mode: audit, failOpen: false, priorityHint: {request: -2000}, timeout: 200ms, config: {a: [1, {b: c}]}, hooks: [{events: [tools/call, 'x/*'], phase: request}], required: true, type: sink")},
	{name: "a scalar hint", text: entry("priorityHint: -2147483648")},
	{name: "a hint too large", text: entry("priorityHint: 2147483648"), want: "it can be a whole number from -2147483648 to 2147483647"},
	{name: "a hint of no integer", text: entry("priorityHint: 1.5"), want: "priorityHint is 1.5"},
	{name: "a hint for another phase", text: entry("priorityHint: {both: 1}"), want: `there is no key "interceptors[0].priorityHint.both"`},
	{name: "mode enforce", text: entry("mode: enforce"), want: "it can be active or audit"},
	{name: "config no mapping", text: entry("config: [1]"), want: "config is a list, not a mapping"},
	{name: "no hooks", text: entry("hooks: []")},
	{name: "hooks without a phase", text: entry("hooks: [{events: [x]}]"), want: "hooks[0] has no phase"},
	{name: "hooks without events", text: entry("hooks: [{phase: request}]"), want: "hooks[0] has no events"},
	{name: "phase both", text: entry("hooks: [{events: [x], phase: both}]"), want: "it can be request or response"},
	{name: "a type", text: entry("type: guard"), want: "it can be validation, mutation or sink"},
	{name: "an entry for all", text: v1 + "interceptors: [{interceptor: '*', mode: audit}]\n"},
	{name: "an entry for nothing", text: v1 + "interceptors: [{mode: audit}]\n", want: "interceptors[0] names no interceptor"},
	{name: "an empty name", text: v1 + "interceptors: [{interceptor: ''}]\n", want: "interceptors[0].interceptor is empty"},
	{name: "a copy of all", text: v1 + "interceptors: [{interceptor: '*', as: x}]\n", want: `makes a copy of "*"`},
	{name: "requiring all", text: v1 + "interceptors: [{interceptor: '*', required: true}]\n", want: `requires "*"`},
	{name: "a copy called *", text: entry("as: '*'"), want: "give the copy a name of its own"},

	{name: "unset variable", text: v1 + "backend: {command: [x, '${NOPE}']}\n", want: "f.yaml:2:24: the environment variable NOPE is not set", beyond: true},
	{name: "an unclosed variable", text: v1 + "backend: {command: [x, '${NOPE']}\n", want: `write "$${" for a literal "${"`, beyond: true},
	{name: "a bad variable", text: v1 + "backend: {command: [x, '${a b}']}\n", want: `"${" is not followed by a variable's name`, beyond: true},
	{name: "dollars", text: v1 + "backend: {command: [x, '$${NOPE} $HOME $ 5$']}\n"},
	{name: "variables make no structure", text: v1 + "boundary: ${LINES}\n", want: `boundary is "${LINES}"`, beyond: true},
	{name: "none in keys", text: v1 + "backend: {command: [x], env: {'${TOKEN}': y}}\n", want: "is not the name of an environment variable"},

	{name: "an anchor", text: v1 + "timeout: &t 1s\n", want: "f.yaml:2:10: anchors, aliases and merge keys are not supported", beyond: true},
	{name: "a tag", text: v1 + "timeout: !!str 1s\n", want: "tags are not supported", beyond: true},
	{name: "two documents", text: v1 + "---\nversion: 1\n", want: "the file has several documents", beyond: true},
	{name: "a directive", text: "%YAML 1.2\n---\nversion: 1\n", want: "directives are not supported", beyond: true},
	{name: "no YAML", text: v1 + "hosts: [a\nb: c\n", want: "f.yaml:3:1: this is not YAML", beyond: true},
	{name: "another encoding", text: v1 + "hosts: # \u00e4\n- {name: m\xfcller}\n", want: "f.yaml:3:11: the file is not UTF-8 from here on; save it as UTF-8", beyond: true},
	{name: "UTF-16", text: "\xff\xfev\x00e\x00", want: "f.yaml:1:1: the file is not UTF-8", beyond: true},
	{name: "half a character", text: v1 + "hosts: # \xf0\x9f\x98\n", want: "f.yaml:2:10: the file is not UTF-8", beyond: true},
	{name: "an escape sequence", text: v1 + "timeout: \x1b[31m\n", want: `f.yaml:2:10: the character U+001B cannot stand in YAML; write it in double quotes as "\x1b"`, beyond: true},
	{name: "a control character of Latin-1", text: v1 + "timeout: \u009b31m\n", want: "the character U+009B cannot", beyond: true},
	{name: "a NUL", text: v1 + "\x00", want: "f.yaml:2:1: the character U+0000 cannot", beyond: true},
	{name: "writing from right to left", text: v1 + "timeout: \u202e1s\n", want: `timeout is "\u202e1s"; it can be`, beyond: true},
	{name: "the character for what cannot be read", text: entry("config: {a: \ufffd}")},
	{name: "a byte order mark and CR LF", text: "\ufeffversion: 1\r\ntimeout: 1s\r\n"},
	{name: "a variable of another encoding in config", text: entry("config: {a: 'x${LATIN}'}"), want: `a variable in "x${LATIN}" is not UTF-8`, beyond: true},
	{name: "a number for a key", text: v1 + "1: x\n", want: "a key must be a string", beyond: true},
	{name: "a date in config", text: entry("config: {d: 2026-07-28}"), want: "2026-07-28 has no counterpart in JSON", beyond: true},
	{name: "infinity in config", text: entry("config: {d: .inf}"), want: ".inf has no counterpart in JSON", beyond: true},
	{name: "hexadecimal in config", text: entry("config: {d: 0x1F}"), want: "0x1F has no counterpart in JSON", beyond: true},
	{name: "underscores in config", text: entry("config: {d: 1_000}"), want: "1_000 has no counterpart in JSON", beyond: true},
	{name: "a number for a key in config", text: entry("config: {1: x}"), want: "a key must be a string", beyond: true},
	{name: "twice in config", text: entry("config: {a: 1, a: 2}"), want: `"a" is there twice`, beyond: true},
}

func TestParse(t *testing.T) {
	for _, d := range documents {
		t.Run(d.name, func(t *testing.T) {
			f, err := Parse("f.yaml", []byte(d.text), lookup)
			if d.want == "" {
				require.NoError(t, err)
				require.NotNil(t, f)
				return
			}
			require.ErrorContains(t, err, d.want)
			require.Nil(t, f)
			require.NotContains(t, err.Error(), "s3cret")
			var all Errors
			require.ErrorAs(t, err, &all)
			require.Len(t, strings.Split(err.Error(), "\n"), len(all), "one line each")
		})
	}
}

// The schema and the loader agree, as far as a schema sees.
func TestSchema_agreesWithTheLoader(t *testing.T) {
	var schema jsonschema.Schema
	require.NoError(t, json.Unmarshal(Schema, &schema))
	resolved, err := schema.Resolve(nil)
	require.NoError(t, err)
	for _, d := range documents {
		if d.beyond {
			continue // what a schema sees; the loader's own test has it
		}
		t.Run(d.name, func(t *testing.T) {
			l := &loader{lookup: lookup, consumed: map[string]struct{}{}}
			root := l.readTree([]byte(d.text))
			require.Empty(t, l.errs)
			var value any
			require.NoError(t, json.Unmarshal([]byte(l.json(root).String()), &value))
			err := resolved.Validate(value)
			if d.want == "" {
				require.NoError(t, err)
			} else {
				require.Error(t, err)
			}
		})
	}
}

func TestParse_tellsAllErrorsInOrder(t *testing.T) {
	_, err := Parse("f.yaml", []byte("version: 1\ntimeout: 5\nboundry: client\nhosts:\n- {name: A}\n- 7\ncache: maybe\n"), lookup)
	lines := strings.Split(err.Error(), "\n")
	require.Len(t, lines, 6)
	for i, at := range []string{"2:10", "3:1", "5:3", "5:10", "6:3", "7:8"} {
		require.True(t, strings.HasPrefix(lines[i], "f.yaml:"+at+": "), lines[i])
	}
	_, err = Parse("f.yaml", []byte(strings.Repeat("x: 1\n", 1000)), lookup)
	require.Len(t, err.(Errors), maxErrors)
}

func TestParse_bounds(t *testing.T) {
	for name, text := range map[string]string{
		"a file too large":   strings.Repeat("#", MaxFileBytes+1),
		"flow lists":         "version: " + strings.Repeat("[", 100_000),
		"flow mappings":      strings.Repeat("{a: ", 100_000),
		"lists in a line":    strings.Repeat("- ", 100_000),
		"mappings in a line": strings.Repeat("a: ", 100_000),
		"keys":               strings.Repeat("? ", 100_000),
		"anchors":            strings.Repeat("&a ", 100_000),
		"tags":               strings.Repeat("!a\n", 100_000),
		"laughs":             "a: &a [x]\nb: &b [*a,*a]\nc: [*b,*b]\n",
		"in config":          entry("config: {a: " + strings.Repeat("[", 70) + strings.Repeat("]", 70) + "}"),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("f.yaml", []byte(text), lookup)
			require.Error(t, err)
			require.Less(t, len(err.Error()), 16<<10)
		})
	}
	var steps strings.Builder
	for i := range 400 {
		steps.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	_, err := Parse("f.yaml", []byte(steps.String()), lookup)
	require.ErrorContains(t, err, "nested too deeply")

	big := strings.Repeat("x", 1<<20)
	_, err = Parse("f.yaml", []byte(v1+"backend: {command: [x, '"+strings.Repeat("${B}", 100)+"']}\n"),
		func(string) (string, bool) { return big, true })
	require.ErrorContains(t, err, "expand to more than")
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "weir.yaml")
	require.NoError(t, os.WriteFile(path, []byte(onHost("modules: './${MODULES}/x'")+"backend: {command: [./b]}\ntrust: {keys: [ops.pub, /etc/team.pub], requireSigned: true}\n"), 0o600))
	f, err := Load(path, lookup)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "mods", "x"), f.Hosts[0].Modules.Reveal())
	require.Equal(t, "./${MODULES}/x", f.Hosts[0].Modules.String())
	require.Equal(t, dir, f.Backend.Dir)
	require.Equal(t, &Trust{
		Keys:          []Text{{written: "ops.pub", value: filepath.Join(dir, "ops.pub")}, Plain("/etc/team.pub")},
		RequireSigned: true, Source: Source(path + ":5:1"),
	}, f.Trust)
	require.Equal(t, Source(path+":3:5"), f.Hosts[0].Source)
	_, err = Load(filepath.Join(dir, "none.yaml"), lookup)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "none.yaml")
}
