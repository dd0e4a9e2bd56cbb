package main

import (
	b64 "encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/guest"
	"github.com/weir-mcp/weir/guest/guesttest"
)

// No string in this file is a token as it stands: each is put together when the
// test runs, so that the scanners of code hosts leave the file alone.

// body makes n characters of a set, enough of them different.
func body(s *set, n int) string {
	var all []byte
	for c := range s {
		if s[c] && (c != '=' && c != '%' && c != '.' && c != '/') {
			all = append(all, byte(c))
		}
	}
	b := make([]byte, n)
	for i := range b {
		b[i] = all[(i*7+3)%len(all)]
	}
	return string(b)
}

func token(f *format) string { return f.prefix + body(f.body, f.min) }

func kindsIn(s string) (found []string) {
	findSecrets(s, "", func(x secret) { found = append(found, x.kind) })
	return found
}

func TestEveryFormat(t *testing.T) {
	for _, f := range formats {
		t.Run(f.prefix, func(t *testing.T) {
			require.Contains(t, kindNames, f.kind)
			whole := token(&f)
			for _, around := range []string{"%s", "token=%s;", "\"%s\"", "Bearer %s\n", `{"a":"x\n%s"}`, "TOKEN_%s,", "https://x:%s@h/"} {
				s := fmt.Sprintf(around, whole)
				var found []secret
				findSecrets(s, "", func(x secret) { found = append(found, x) })
				require.Equal(t, []secret{{f.kind, f.what, guest.SeverityError}}, found, around)
			}
			for _, s := range []string{
				whole[:len(whole)-1],                   // too short
				"x" + whole,                            // not where a word begins
				f.prefix + strings.Repeat("x", f.min),  // a placeholder
				f.prefix,                               //
				f.prefix + " " + whole[len(f.prefix):], // cut in two
				f.prefix + "!" + whole[len(f.prefix):], // likewise
			} {
				require.NotContains(t, kindsOnly(s, f.what), f.kind, s)
			}
			if n := len(whole) + f.max - f.min + 1; f.min == f.max {
				require.Empty(t, kindsOnly(f.prefix+body(f.body, f.max+1), f.what), "%d is too long", n)
			}
		})
	}
}

// kindsOnly are the kinds of the findings with one wording.
func kindsOnly(s, what string) (found []string) {
	findSecrets(s, "", func(x secret) {
		if x.what == what {
			found = append(found, x.kind)
		}
	})
	return found
}

func TestEveryKindHasAFormat(t *testing.T) {
	var have []string
	for _, f := range formats {
		have = append(have, f.kind)
	}
	have = append(have, "jwt", "private-key", "telegram")
	slices.Sort(have)
	require.Equal(t, kindNames, slices.Compact(have))
	require.True(t, json.Valid(schema))
}

func TestTelegram(t *testing.T) {
	tail := "AA" + body(&base64url, 33)
	require.Equal(t, []string{"telegram"}, kindsIn("bot "+"123456789"+":"+tail))
	for _, s := range []string{"1234567:" + tail, "12345678901:" + tail, "123456789:" + tail + "x", "123456789:B" + tail[1:], "123456789:", "12:34:56"} {
		require.Empty(t, kindsIn(s), s)
	}
}

func jwt(header string) string {
	return b64.RawURLEncoding.EncodeToString([]byte(header)) + "." + b64.RawURLEncoding.EncodeToString([]byte(`{"sub":"1"}`)) + "." + "c2lnbmF0dXJl"
}

func TestJWT(t *testing.T) {
	var severity guest.Severity
	findSecrets("Bearer "+jwt(`{"alg":"RS256","typ":"JWT"}`), "", func(s secret) { severity = s.severity })
	require.Equal(t, guest.SeverityWarn, severity)
	for _, s := range []string{
		jwt(`{"typ":"JWT"}`), jwt(`{"alg":1}`), jwt(`{"alg":"x"`), "x" + jwt(`{"alg":"x"}`), jwt(`{"alg":"x"}`)[:30], "eyJ.eyJ.eyJ", "eyJhbGci",
		strings.TrimSuffix(jwt(`{"alg":"x"}`), "c2lnbmF0dXJl"),
	} {
		require.Empty(t, kindsIn(s), s)
	}
}

func TestPrivateKeys(t *testing.T) {
	material := strings.Repeat("MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", 2)
	for _, label := range []string{"", "RSA ", "EC ", "DSA ", "OPENSSH ", "ENCRYPTED ", "PGP "} {
		block := ""
		if label == "PGP " {
			block = " BLOCK"
		}
		first := "-----BEGIN " + label + "PRIVATE " + "KEY" + block + "-----"
		for _, s := range []string{
			first + "\n" + material + "\n",
			first + `\n` + material + `\n`,
			first + `\r\n` + material,
			first + " " + material,
			first + "\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123456789ABCDEF\n\n" + material,
			first + "\n" + material[:16] + "\n" + material[16:32] + "\n",
			first, first + "\n", // the rest is in another string
		} {
			require.Equal(t, []string{"private-key"}, kindsIn(s), s)
		}
		for _, s := range []string{
			first + "\n...\n-----END " + label + "PRIVATE " + "KEY-----",
			first + " is how the file begins, and what follows is base64 in lines of sixty-four characters.",
			strings.Replace(first, "PRIVATE", "PUBLIC", 1) + "\n" + material,
			strings.Replace(first, "-----BEGIN", "----BEGIN", 1) + "\n" + material,
			"-----BEGIN CERTIFICATE-----\n" + material,
		} {
			require.Empty(t, kindsIn(s), s)
		}
	}
}

func TestAWSSecretKeys(t *testing.T) {
	key := "wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYEXAMPLEKEY"
	id := "AK" + "IAIOSFODNN7EXAMPLE"
	both := []string{"aws", "aws"}
	for s, want := range map[string][]string{
		id + " " + key:                                 both,
		key + " " + id:                                 both,
		id + strings.Repeat(" ", 300) + key:            {"aws"}, // too far away
		"aws_secret_access_key = " + key:               {"aws"},
		`"SecretAccessKey":"` + key + `"`:              {"aws"},
		`{\"SecretAccessKey\":\"` + key + `\"}`:        {"aws"},
		"AWS_SECRET_ACCESS_KEY=" + key:                 {"aws"},
		"secret-key: " + key:                           {"aws"},
		key:                                            nil,
		"aws_secret_access_key = " + key + "x":         nil,
		"secret_key = " + strings.Repeat("a1", 20):     nil, // a digest
		"path: " + key:                                 nil,
		"secret_key " + strings.Repeat("x", 260) + key: nil,
	} {
		require.Equal(t, want, kindsIn(s), s)
	}
	named := 0
	findSecrets(key, "secretAccessKey", func(secret) { named++ })
	require.Equal(t, 1, named)
}

func TestInnocentStrings(t *testing.T) {
	for _, s := range []string{
		"123e4567-e89b-12d3-a456-426614174000", "2026-10-08T12:34:56Z", "v1.22.333", "sk-learn", "scikit-learn", "task-force",
		"d41d8cd98f00b204e9800998ecf8427e", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		"https://example.com/?sig=abc", "https://hooks.slack.com/services/", "npm_config_registry=https://registry.npmjs.org",
		"SKU 0123456789", "hf_hub_download(repo_id)", "half_life", "AKIA", "AIza", "xoxo-hugs", "SG.", "pypi-server", "ghp_", "Bearer <token>",
		"glpat" + "-XXXXXXXXXXXXXXXXXXXX", "sk_" + "live_xxxxxxxxxxxxxxxxxxxxxxxx", "12:34:56", "-----", "----------------", "-----BEGIN PUBLIC KEY-----",
		"sk-this-is-a-rather-long-name-of-a-branch-in-a-repository", "AccountKey=", "{\"eyJ\":1}",
	} {
		require.Empty(t, kindsIn(s), s)
		require.Empty(t, kindsIn("("+s+") \\n"+s+"\n"+s), s)
	}
}

func scanPayload(t testing.TB, payload string) abi.Result {
	return guesttest.Invoke(t, abi.Invocation{Name: "secret-scanner", Event: abi.ToolsCall, Phase: abi.Request, Payload: json.RawMessage(payload)})
}

func TestFindingsAreBounded(t *testing.T) {
	id := `"AK` + `IAIOSFODNN7EXAMPLE"`
	r := scanPayload(t, `{"name":"x","arguments":{"all":[`+strings.Repeat(id+",", maxFindings+4)+id+`]}}`)
	require.Len(t, r.Messages, maxFindings+1)
	require.Equal(t, abi.Message{Path: "$", Message: "and 5 more", Severity: abi.SeverityError}, r.Messages[maxFindings])
	require.True(t, r.Blocks())

	warning := `"` + jwt(`{"alg":"x"}`) + `"`
	r = scanPayload(t, `{"name":"x","arguments":{"all":[`+strings.Repeat(warning+",", maxFindings)+id+`]}}`)
	require.True(t, r.Blocks(), "an error among those that are only counted still blocks")
	r = scanPayload(t, `{"name":"x","arguments":{"all":[`+strings.Repeat(warning+",", maxFindings)+warning+`]}}`)
	require.False(t, r.Blocks())
}

func TestPathsHideSecrets(t *testing.T) {
	id := "AK" + "IAIOSFODNN7EXAMPLE"
	for path, want := range map[string]string{
		"$.a[0].b":                          "$.a[0].b",
		"$." + id:                           `$["***"]`,
		"$.a." + id + "[3].c":               `$.a["***"][3].c`,
		`$["a b ` + id + `"].c["d]\".e[f"]`: `$["***"].c["d]\".e[f"]`,
		`$["-----BEGIN PRIVATE ` + `KEY-----\n` + strings.Repeat("MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", 2) + `"]`: `$["***"]`,
	} {
		require.Equal(t, want, safePath(path), path)
	}
}

// Strings that make a careless scanner quadratic: at this size such a one needs
// many minutes.
func TestHostileStringsAreLinear(t *testing.T) {
	units := []string{
		"-", "-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY----- ", "eyJ", "eyJ.", "eyJ-", "eyJh.a.", "\\neyJ", "a", "a ", "a/", "/",
		"A1a/", "123456789:AA", "1", "secret_key ", "secret-", "AKIA ", "\\n", strings.Repeat("wJalrXUtn1", 4) + " ",
	}
	for _, f := range formats {
		units = append(units, f.prefix, f.prefix+"-", token(&f)+" ")
	}
	for _, unit := range units {
		for _, tail := range []string{strings.Repeat(" ", 1<<17) + "x", strings.Repeat("A", 1<<17)} {
			kindsIn(strings.Repeat(unit, (1<<17)/len(unit)) + tail)
		}
	}
}

// Whatever is in a payload, no finding tells a secret, and white space in front
// of a payload changes nothing.
func FuzzScan(f *testing.F) {
	for _, x := range formats {
		f.Add(token(&x), "name", "text")
		f.Add("text", token(&x), "a.b[0]\"")
	}
	f.Add(jwt(`{"alg":"x"}`), "secret_access_key", "123456789:AA"+body(&base64url, 33))
	f.Add("-----BEGIN PRIVATE "+"KEY-----", "\\", "\xff")
	f.Fuzz(func(t *testing.T, value, name, inner string) {
		raw := []byte(`{"name":"x","arguments":{`)
		raw = append(guest.AppendText(raw, name), ':', '{')
		raw = append(guest.AppendText(raw, inner), ':')
		raw = append(guest.AppendText(raw, value), '}', '}', '}')
		r := scanPayload(t, string(raw))
		require.LessOrEqual(t, len(r.Messages), maxFindings+1)
		require.Equal(t, r.Valid, len(r.Messages) == 0)
		for _, m := range r.Messages {
			require.False(t, hasSecret(m.Path), "%q", m.Path)
			require.False(t, hasSecret(m.Message), "%q", m.Message)
		}
		require.Equal(t, r.Messages, scanPayload(t, " "+string(raw)).Messages)
	})
}

func BenchmarkScan(b *testing.B) {
	item := `{"type":"text","text":"Dear Jane, your order 1234567 of 2026-10-08 is on its way; commit 9f86d081884c7d65 of sk-learn has the rest <&>."},`
	for name, n := range map[string]int{"1KB": 1 << 10, "100KB": 100 << 10} {
		raw := `{"content":[` + strings.Repeat(item, n/len(item)) + `{"type":"text","text":""}]}`
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				if r := scanPayload(b, raw); !r.Valid {
					b.Fatal("found something")
				}
			}
		})
	}
}
