package gateway

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
)

func TestAddress(t *testing.T) {
	long := strings.Repeat("x", 2000)
	for text, want := range map[string]string{
		"file:///srv/a.txt":                               "file:///srv/a.txt",
		"file:///srv/a%2fb%20c":                           "file:///srv/a%2fb%20c",
		"https://host:8443/a/b":                           "https://host:8443/a/b",
		"https://[::1]:80/a":                              "https://[::1]:80/a",
		"https://host/@scope/pkg@1.2":                     "https://host/@scope/pkg@1.2",
		"https://ann:hush@host/a":                         "https://host/a",
		"https://hush@host/a":                             "https://host/a",
		"https://ann@hush@host/a":                         "https://host/a",
		"https://ann:hu%73h@host/a":                       "https://host/a",
		"//ann:hush@host/a":                               "//host/a",
		"https://host/a?token=hush":                       "https://host/a",
		"https://host/a?":                                 "https://host/a",
		"https://host/a#hush":                             "https://host/a",
		"https://host/a%3Ftoken=hush":                     "https://host/a",
		"https://host/a%23hush":                           "https://host/a",
		"https://proxy/https://ann:hush@host/a":           "https://proxy/https://host/a",
		"https://proxy/https://hush@host/a":               "https://proxy/https://host/a",
		"https://proxy/https:%2f%2fann:hush@host%2fa":     "https://proxy/https://host/a",
		"https:/\\ann:hush@host/a":                        "https:/%5Chost/a",
		"https:///ann:hush@host/a":                        "https:///host/a",
		"ann:hush@host/a":                                 "ann:…",
		"hush@host/a":                                     "host/a",
		"hush@host":                                       "host",
		"data:text/plain,hush":                            "data:…",
		"mailto:hush@host":                                "mailto:…",
		"https:hush":                                      "https:…",
		"notes:":                                          "notes:",
		"":                                                "",
		"%zz:hush":                                        "(not a URI)",
		"https://host/\nhush":                             "(not a URI)",
		"https://ann:hu?sh@host/":                         "(not a URI)",
		"https://host/a/" + long + ":hush@x":              "https://host/a/%E2%80%A6",
		"https://host/" + strings.Repeat("a/", 500) + "b": "https://host/" + strings.Repeat("a/", 121) + "a…",
		"https://host/\u202e\u0085":                       "https://host/%E2%80%AE%C2%85",
	} {
		require.Equal(t, want, address(text), text)
	}
}

func FuzzAddress(f *testing.F) {
	f.Add("https://user:pass@host/path?query#fragment")
	f.Add("data:,x")
	f.Add("a@b:c//d@e\\f%2f%3f")
	f.Fuzz(func(t *testing.T, text string) {
		requireFit(t, address(text), longWord)
		requireFit(t, clip(text), longWord)
		// Where the strict reading has secrets, none of them is shown.
		const secret = "S3CR3T"
		if !strings.Contains(text, secret) && !strings.ContainsAny(text, "/?#\\@") {
			got := address("https://" + secret + ":" + secret + "@host/" + text + "?" + secret + "#" + secret)
			require.NotContains(t, got, secret)
		}
	})
}

// requireFit says that a text is fit for a record.
func requireFit(t *testing.T, text string, limit int) {
	t.Helper()
	require.True(t, utf8.ValidString(text))
	require.LessOrEqual(t, len(text), limit+2*len("…"))
	require.Negative(t, strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }), "%q", text)
}

func TestSubject(t *testing.T) {
	for _, tt := range []struct {
		event, params, want string
	}{
		{abi.ToolsCall, `{"name":"send"}`, "send"},
		{abi.ToolsCall, `{"name":"s\u0065nd"}`, "send"},
		{abi.ToolsCall, `{"name":"a\nb\u001b[2J\u0085\u202e\u2028c"}`, "a b\ufffd[2J \ufffd c"},
		{abi.ToolsCall, `{"name":"\ud800x"}`, "x"},
		{abi.ToolsCall, `{"name":7}`, ""},
		{abi.ToolsCall, `{}`, ""},
		{abi.PromptsGet, `{"name":"p"}`, "p"},
		{abi.ResourcesRead, `{"uri":"https://a:b@c/d?e"}`, "https://c/d"},
		{abi.ResourcesSubscribe, `{"uri":"https://a:b@c/d?e"}`, "https://c/d"},
		{abi.ResourcesRead, `{}`, ""},
		{abi.ResourcesRead, `{"uri":[]}`, ""},
		{abi.ToolsList, `{"name":"x","uri":"y"}`, ""},
		{"acme/op", `{"name":"x"}`, ""},
	} {
		require.Equal(t, tt.want, subject(&Operation{Event: tt.event, Phase: abi.Request, Payload: json.RawMessage(tt.params)}), tt.params)
		require.Equal(t, tt.want, subject(&Operation{Event: tt.event, Phase: abi.Response, Request: json.RawMessage(tt.params), Payload: json.RawMessage(`{"name":"other","uri":"other:x"}`)}))
	}
}
