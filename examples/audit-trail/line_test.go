package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/guest"
	"github.com/weir-mcp/weir/guest/guesttest"
)

func TestLines(t *testing.T) {
	who := guest.Context{
		Principal: &guest.Principal{Type: "service", ID: "ci", Claims: json.RawMessage(`{"secret":1}`)},
		SessionID: "s-1", TraceID: "4bf9", Timestamp: "2026-10-08T12:34:56Z",
	}
	for _, c := range []struct {
		op   guest.Operation
		want string
	}{
		{
			guest.Operation{Event: guest.ToolsCall, Phase: guest.Request, Payload: json.RawMessage(`{"name":"send","arguments":{"to":"x"}}`), Context: who},
			`{"time":"2026-10-08T12:34:56Z","event":"tools/call","phase":"request","principalType":"service","principal":"ci","session":"s-1","trace":"4bf9","tool":"send","requestBytes":38}`,
		},
		{
			guest.Operation{Event: guest.ToolsCall, Phase: guest.Response, Payload: json.RawMessage(`{"content":[]}`), Request: json.RawMessage(`{"name":"send"}`)},
			`{"event":"tools/call","phase":"response","tool":"send","requestBytes":15,"responseBytes":14}`,
		},
		{
			guest.Operation{Event: guest.ToolsCall, Phase: guest.Response, Payload: json.RawMessage(`{"isError" : true}`)},
			`{"event":"tools/call","phase":"response","responseBytes":18,"isError":true}`,
		},
		{
			guest.Operation{Event: guest.PromptsGet, Phase: guest.Request, Payload: json.RawMessage(`{"name":"greet"}`)},
			`{"event":"prompts/get","phase":"request","prompt":"greet","requestBytes":16}`,
		},
		{
			guest.Operation{Event: guest.ResourcesRead, Phase: guest.Response, Payload: json.RawMessage(`{}`), Request: json.RawMessage(`{"uri":"file:///a?b#c"}`)},
			`{"event":"resources/read","phase":"response","uri":"file:///a","requestBytes":23,"responseBytes":2}`,
		},
		{ // what is malformed is recorded all the same
			guest.Operation{Event: guest.ToolsCall, Phase: guest.Request, Payload: json.RawMessage(`{"name":7}`)},
			`{"event":"tools/call","phase":"request","requestBytes":10}`,
		},
		{ // a name cannot write members of its own
			guest.Operation{Event: guest.ToolsCall, Phase: guest.Request, Payload: json.RawMessage(`{"name":"a\",\"principal\":\"root\n"}`)},
			`{"event":"tools/call","phase":"request","tool":"a\",\"principal\":\"root\n","requestBytes":37}`,
		},
	} {
		require.Equal(t, c.want, string(line(&c.op)))
		require.True(t, json.Valid(line(&c.op)))
	}
}

func TestALineFitsIntoTheLog(t *testing.T) {
	for _, unit := range []string{"a", "\"", "\x01", "é", "😀", "\xff", "\n"} {
		long := strings.Repeat(unit, 5000)
		name := guest.AppendText(nil, long)
		op := guest.Operation{
			Event: guest.ToolsCall, Phase: guest.Response, Payload: json.RawMessage(`{"isError":true}`),
			Request: json.RawMessage(`{"name":` + string(name) + `}`),
			Context: guest.Context{Principal: &guest.Principal{Type: long, ID: long}, SessionID: long, TraceID: long, Timestamp: long},
		}
		got := line(&op)
		require.LessOrEqual(t, len(got), 4<<10)
		require.True(t, json.Valid(got), "%s", got)
		require.Contains(t, string(got), "…")
	}
}

func TestURIs(t *testing.T) {
	for in, want := range map[string]string{
		"https://user:pw@example.com/a/b?c=d#e": "https://example.com/a/b",
		"https://user:p@w@example.com/a":        "https://example.com/a",
		"https://example.com":                   "https://example.com",
		"https://example.com/@user":             "https://example.com/@user",
		"https://u:p?w@example.com/":            "https://u:p", // a "?" ends the authority
		"file:///home/a.txt":                    "file:///home/a.txt",
		"FILE:///a?b":                           "FILE:///a",
		"data:text/plain;base64,c2VjcmV0":       "data:text/plain;base64",
		"DATA:,secret":                          "DATA:",
		"urn:isbn:123?x":                        "urn:isbn:123",
		"/relative?x=y":                         "/relative",
		"a/b:c?d":                               "a/b:c",
		"":                                      "",
		"?secret":                               "",
	} {
		require.Equal(t, want, barePart(in), in)
	}
}

func TestTheManualsLine(t *testing.T) {
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	cases, err := guesttest.ReadCases("testdata")
	require.NoError(t, err)
	inv, err := cases[0].Invocation()
	require.NoError(t, err)
	log := guesttest.CaptureLog(t)
	guesttest.Invoke(t, inv)
	require.Len(t, log.Lines(), 1)
	require.Contains(t, string(page), "\n"+strings.TrimPrefix(log.Lines()[0], "info: ")+"\n")
}

func FuzzLine(f *testing.F) {
	f.Add("send", "ci", "https://u:p@h/p?q", uint8(0))
	f.Add("\"\n\x00\xff", "\u2028", "data:,x", uint8(1))
	f.Fuzz(func(t *testing.T, name, who, uri string, which uint8) {
		raw := guest.AppendText([]byte(`{"name":`), name)
		raw = append(guest.AppendText(append(raw, `,"uri":`...), uri), '}')
		events := []string{guest.ToolsCall, guest.ResourcesRead, guest.PromptsGet, guest.RootsList}
		op := guest.Operation{
			Event: events[which%4], Phase: abi.Request, Payload: raw,
			Context: guest.Context{Principal: &guest.Principal{Type: "user", ID: who}},
		}
		got := line(&op)
		require.True(t, json.Valid(got), "%s", got)
		require.NotContains(t, string(got), "\n")
		require.LessOrEqual(t, len(got), 4<<10)
		require.NotContains(t, barePart(uri), "?")
	})
}
